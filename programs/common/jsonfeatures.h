/* Fields of a picture's features as the service answers them, for all that write JSON. Without braces around. */
#ifndef SP_COMMON_JSONFEATURES_H
#define SP_COMMON_JSONFEATURES_H

#include "common/buffer.h"
#include "superpoint.h"

/* Sizes in pixels, and what takes points of the frame to the original. */
typedef struct json_sizes {
    uint32_t original_width, original_height;
    uint32_t width, height; /* of the picture in the frame, without padding */
    double scale_x, scale_y;
} json_sizes;

json_sizes json_sizes_of(const sp_frame *frame);

/* `"original_size": {…}, "image_size": {…}, "scale": {…}` */
void json_put_sizes(buffer *out, const json_sizes *sizes);

/* `"descriptors": {…}`: `count` rows of SP_DESCRIPTOR_DIM, as an NPZ in base64. */
sp_status json_put_descriptors(buffer *out, sp_dtype dtype, size_t count, const void *rows, sp_error *err);

#endif
