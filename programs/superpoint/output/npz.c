/* A folder with a NAME.npz for each picture: keypoints, scores, descriptors [N,256], image_size. */
#include "common/npz.h"

#include "output/text.h"

static sp_status create(const char *path, const char *identity, const camera_options *camera, writer **w,
                        sp_error *err) {
    (void)camera;
    return folder_create(path, identity, w, err);
}

static sp_status add(writer *w, const record *r, sp_error *err) {
    const int64_t size[2] = {r->width, r->height};
    npz_array arrays[4] = {
        {"keypoints", "<f4", 4, 2, {r->count, 2}, r->keypoints},
        {"scores", "<f4", 4, 1, {r->count}, r->scores},
        {"image_size", "<i8", 8, 1, {2}, size},
        {"descriptors", npz_dtype(r->dtype), sp_dtype_size(r->dtype), 2, {r->count, SP_DESCRIPTOR_DIM}, r->descriptors},
    };
    sp_status status = npz_write(&w->scratch, arrays, r->described ? 4 : 3, err);
    return status == SP_OK ? folder_put(w, r->name, ".npz", err) : status;
}

const output_format output_npz = {.name = "npz",
                                  .suffixes = "",
                                  .folder = true,
                                  .coordinates = SP_COORDINATES_CORNER,
                                  .about = "a folder with a NAME.npz for each picture",
                                  .create = create,
                                  .add = add,
                                  .close = text_close,
                                  .abandon = text_abandon,
                                  .identity = folder_identity};
