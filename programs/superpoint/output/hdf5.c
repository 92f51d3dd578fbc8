/*
 * HDF5 as hloc lays it out: a group for each picture, by its name, where a slash opens a group inside;
 * in it keypoints [N,2] float32 with the attribute `uncertainty`, scores [N] float32, descriptors
 * [256,N] and image_size [2] int64 (width, height). The file's attribute `superpoint` says what made
 * it. No times are stored: the same features give the same bytes.
 */
#include <hdf5.h>
#include <stdlib.h>
#include <string.h>

#include "common/fail.h"
#include "output/hdf5.h"
#include "output/output.h"

/* hloc's figure for this network: two pixels of the frame. */
static const double detection_noise = 2.0;

struct writer {
    char *path;
    hid_t file, data_list;
    hid_t half;
    uint8_t *transposed;
    size_t room;
};

/* What libhdf5 says of its last failure; it prints nothing by itself once hdf5_quiet was called. */
static herr_t deepest(unsigned n, const H5E_error2_t *e, void *text) {
    (void)n;
    if (e->desc && *e->desc)
        *(const char **)text = e->desc;
    return 0;
}

sp_status hdf5_fail(const char *path, const char *what, sp_error *err) {
    const char *text = "unknown error";
    H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, deepest, &text);
    return fail(err, SP_ERR_IO, "%.200s: %.100s: %.150s", path, what, text);
}

void hdf5_quiet(void) {
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
}

hid_t hdf5_half_type(void) {
    hid_t type = H5Tcopy(H5T_IEEE_F32LE);
    /* sign at bit 15, exponent of 5 bits at 10, fraction of 10 bits at 0 */
    if (type < 0 || H5Tset_fields(type, 15, 10, 5, 0, 10) < 0 || H5Tset_size(type, 2) < 0 || H5Tset_ebias(type, 15) < 0)
        return H5I_INVALID_HID;
    return type;
}

sp_status hdf5_put_text(hid_t object, const char *name, const char *text) {
    hid_t type = H5Tcopy(H5T_C_S1), space = H5Screate(H5S_SCALAR);
    H5Tset_size(type, H5T_VARIABLE);
    H5Tset_cset(type, H5T_CSET_UTF8);
    hid_t attribute = H5Acreate2(object, name, type, space, H5P_DEFAULT, H5P_DEFAULT);
    bool ok = attribute >= 0 && H5Awrite(attribute, type, &text) >= 0;
    if (attribute >= 0)
        H5Aclose(attribute);
    H5Sclose(space);
    H5Tclose(type);
    return ok ? SP_OK : SP_ERR_IO;
}

char *hdf5_get_text(hid_t object, const char *name) {
    if (H5Aexists(object, name) <= 0)
        return NULL;
    hid_t attribute = H5Aopen(object, name, H5P_DEFAULT), type = H5Aget_type(attribute);
    char *copy = NULL;
    if (H5Tget_class(type) == H5T_STRING && H5Tis_variable_str(type) > 0) {
        hid_t memory = H5Tcopy(H5T_C_S1);
        char *text = NULL;
        H5Tset_size(memory, H5T_VARIABLE);
        H5Tset_cset(memory, H5T_CSET_UTF8);
        if (H5Aread(attribute, memory, &text) >= 0 && text) {
            copy = strdup(text);
            H5free_memory(text);
        }
        H5Tclose(memory);
    }
    H5Tclose(type);
    H5Aclose(attribute);
    return copy;
}

hid_t hdf5_create_file(const char *path) {
    hid_t access = H5Pcreate(H5P_FILE_ACCESS), create_list = H5Pcreate(H5P_FILE_CREATE);
    /* Small groups in one compact form, readable since HDF5 1.8. */
    H5Pset_libver_bounds(access, H5F_LIBVER_V18, H5F_LIBVER_V18);
    H5Pset_obj_track_times(create_list, 0);
    hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, create_list, access);
    H5Pclose(create_list);
    H5Pclose(access);
    return file;
}

hid_t hdf5_create_group(hid_t file, const char *name) {
    hid_t list = H5Pcreate(H5P_GROUP_CREATE), links = H5Pcreate(H5P_LINK_CREATE), group = H5I_INVALID_HID;
    H5Pset_obj_track_times(list, 0);
    H5Pset_char_encoding(links, H5T_CSET_UTF8);
    char *path = strdup(name);
    bool ok = path != NULL;
    /* Groups above it are made one by one: those that the library makes on the way have times. */
    for (char *p = path; ok && (p = strchr(p, '/')) != NULL; *p++ = '/') {
        *p = '\0';
        if (*path && H5Lexists(file, path, H5P_DEFAULT) == 0) {
            hid_t above = H5Gcreate2(file, path, links, list, H5P_DEFAULT);
            ok = above >= 0 && H5Gclose(above) >= 0;
        }
    }
    if (ok)
        group = H5Gcreate2(file, name, links, list, H5P_DEFAULT);
    free(path);
    H5Pclose(links);
    H5Pclose(list);
    return group;
}

hid_t hdf5_data_list(void) {
    hid_t list = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_obj_track_times(list, 0);
    H5Pset_fill_time(list, H5D_FILL_TIME_NEVER);
    return list;
}

hid_t hdf5_put(hid_t group, const char *name, hid_t type, int rank, const hsize_t *shape, const void *data,
               hid_t data_list) {
    hid_t space = H5Screate_simple(rank, shape, NULL);
    hid_t set = H5Dcreate2(group, name, type, space, H5P_DEFAULT, data_list, H5P_DEFAULT);
    hsize_t items = 1;
    for (int i = 0; i < rank; i++)
        items *= shape[i];
    if (set >= 0 && items > 0 && H5Dwrite(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, data) < 0) {
        H5Dclose(set);
        set = H5I_INVALID_HID;
    }
    H5Sclose(space);
    return set;
}

static void release(writer *w) {
    if (w->half >= 0)
        H5Tclose(w->half);
    H5Pclose(w->data_list);
    free(w->transposed);
    free(w->path);
    free(w);
}

static sp_status create(const char *path, const char *identity, const camera_options *camera, writer **out,
                        sp_error *err) {
    (void)camera;
    hdf5_quiet();
    writer *w = calloc(1, sizeof *w);
    if (!w || !(w->path = strdup(path))) {
        free(w);
        return fail(err, SP_ERR_MEMORY, "%.300s: out of memory", path);
    }
    w->data_list = hdf5_data_list();
    w->half = hdf5_half_type();
    w->file = hdf5_create_file(path);
    if (w->file < 0 || w->half < 0 || hdf5_put_text(w->file, "superpoint", identity) != SP_OK) {
        sp_status status = hdf5_fail(path, "cannot be made", err);
        if (w->file >= 0)
            H5Fclose(w->file);
        release(w);
        return status;
    }
    *out = w;
    return SP_OK;
}

/* [count][256] to [256][count], by blocks that the first-level cache holds. */
static sp_status transpose(writer *w, const record *r, sp_error *err) {
    enum { BLOCK = 32 };
    const size_t size = sp_dtype_size(r->dtype), bytes = r->count * SP_DESCRIPTOR_DIM * size;
    if (bytes > w->room) {
        free(w->transposed);
        w->room = 0;
        w->transposed = malloc(bytes);
        if (!w->transposed)
            return fail(err, SP_ERR_MEMORY, "%.200s: out of memory", w->path);
        w->room = bytes;
    }
    const uint8_t *in = r->descriptors;
    for (size_t i0 = 0; i0 < r->count; i0 += BLOCK)
        for (size_t k0 = 0; k0 < SP_DESCRIPTOR_DIM; k0 += BLOCK)
            for (size_t k = k0; k < k0 + BLOCK; k++)
                for (size_t i = i0; i < i0 + BLOCK && i < r->count; i++)
                    memcpy(w->transposed + (k * r->count + i) * size, in + (i * SP_DESCRIPTOR_DIM + k) * size, size);
    return SP_OK;
}

static bool put_keypoints(writer *w, hid_t group, const record *r) {
    hid_t set = hdf5_put(group, "keypoints", H5T_IEEE_F32LE, 2, (hsize_t[]){r->count, 2}, r->keypoints, w->data_list);
    if (set < 0)
        return false;
    const double uncertainty = detection_noise * (r->scale_x + r->scale_y) / 2;
    hid_t space = H5Screate(H5S_SCALAR);
    hid_t attribute = H5Acreate2(set, "uncertainty", H5T_IEEE_F64LE, space, H5P_DEFAULT, H5P_DEFAULT);
    bool ok = attribute >= 0 && H5Awrite(attribute, H5T_NATIVE_DOUBLE, &uncertainty) >= 0;
    if (attribute >= 0)
        H5Aclose(attribute);
    H5Sclose(space);
    return H5Dclose(set) >= 0 && ok;
}

static bool put_plain(writer *w, hid_t group, const char *name, hid_t type, int rank, const hsize_t *shape,
                      const void *data) {
    hid_t set = hdf5_put(group, name, type, rank, shape, data, w->data_list);
    return set >= 0 && H5Dclose(set) >= 0;
}

static sp_status add(writer *w, const record *r, sp_error *err) {
    if (r->described) {
        sp_status status = transpose(w, r, err);
        if (status != SP_OK)
            return status;
    }
    hid_t group = hdf5_create_group(w->file, r->name);
    if (group < 0)
        return hdf5_fail(w->path, r->name, err);
    const int64_t size[2] = {r->width, r->height};
    const hid_t type = r->dtype == SP_DTYPE_FLOAT16   ? w->half
                       : r->dtype == SP_DTYPE_FLOAT32 ? H5T_IEEE_F32LE
                                                      : H5T_STD_U8LE;
    bool ok = put_keypoints(w, group, r);
    ok = ok && put_plain(w, group, "scores", H5T_IEEE_F32LE, 1, (hsize_t[]){r->count}, r->scores);
    if (r->described)
        ok = ok && put_plain(w, group, "descriptors", type, 2, (hsize_t[]){SP_DESCRIPTOR_DIM, r->count}, w->transposed);
    ok = ok && put_plain(w, group, "image_size", H5T_STD_I64LE, 1, (hsize_t[]){2}, size);
    sp_status status = ok ? SP_OK : hdf5_fail(w->path, r->name, err);
    if (H5Gclose(group) < 0 && status == SP_OK)
        status = hdf5_fail(w->path, r->name, err);
    return status;
}

static sp_status close_file(writer *w, sp_error *err) {
    sp_status status = H5Fclose(w->file) < 0 ? hdf5_fail(w->path, "cannot be written", err) : SP_OK;
    release(w);
    return status;
}

static void abandon(writer *w) {
    H5Fclose(w->file);
    release(w);
}

static sp_status identity(const char *path, char **text, sp_error *err) {
    hdf5_quiet();
    hid_t file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
    *text = file >= 0 ? hdf5_get_text(file, "superpoint") : NULL;
    if (file >= 0)
        H5Fclose(file);
    return *text ? SP_OK : fail(err, SP_ERR_NOT_FOUND, "%.300s: is not an HDF5 file of this program", path);
}

const output_format output_hdf5 = {.name = "hdf5",
                                   .suffixes = ".h5 .hdf5",
                                   .coordinates = SP_COORDINATES_CENTRE,
                                   .about = "one HDF5 file in hloc's layout (.h5)",
                                   .create = create,
                                   .add = add,
                                   .close = close_file,
                                   .abandon = abandon,
                                   .identity = identity};
