#include "common/jsonfeatures.h"

#include "common/base64.h"
#include "common/jsonout.h"
#include "common/npz.h"

json_sizes json_sizes_of(const sp_frame *frame) {
    return (json_sizes){.original_width = frame->original_width,
                        .original_height = frame->original_height,
                        .width = frame->content_width,
                        .height = frame->content_height,
                        .scale_x = frame->scale_x,
                        .scale_y = frame->scale_y};
}

void json_put_sizes(buffer *out, const json_sizes *s) {
    buffer_format(
        out,
        "\"original_size\": {\"height\": %u, \"width\": %u}, \"image_size\": {\"height\": %u, \"width\": %u}, "
        "\"scale\": {\"x\": ",
        s->original_height, s->original_width, s->height, s->width);
    json_put_double(out, s->scale_x);
    buffer_text(out, ", \"y\": ");
    json_put_double(out, s->scale_y);
    buffer_char(out, '}');
}

sp_status json_put_descriptors(buffer *out, sp_dtype dtype, size_t count, const void *rows, sp_error *err) {
    const npz_array array = {"descriptors", npz_dtype(dtype), sp_dtype_size(dtype), 2, {count, SP_DESCRIPTOR_DIM},
                             rows};
    buffer archive = {0};
    sp_status status = npz_write(&archive, &array, 1, err);
    if (status == SP_OK) {
        buffer_format(out,
                      "\"descriptors\": {\"format\": \"npz\", \"key\": \"descriptors\", \"dtype\": \"%s\", "
                      "\"shape\": [%zu, %d], \"data\": \"",
                      npz_dtype_name(dtype), count, SP_DESCRIPTOR_DIM);
        base64_encode(out, archive.data, archive.size);
        buffer_text(out, "\"}");
    }
    buffer_free(&archive);
    return status;
}
