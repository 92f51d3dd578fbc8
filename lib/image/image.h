/* Whole pictures in memory. */
#ifndef SP_IMAGE_IMAGE_H
#define SP_IMAGE_IMAGE_H

#include "superpoint.h"

#include "image/codec.h"

/* An empty picture of that size; pixels are not set. */
sp_status sp_image_alloc(uint32_t width, uint32_t height, uint32_t channels, sp_image *image, sp_error *err);

/* Whether a caller's picture is one; `what` names the call. */
sp_status sp_image_check(const sp_image *image, const char *what, sp_error *err);

/* Decode to memory, turned as `exif` says. */
sp_status sp_codec_decode_image(const sp_codec *codec, sp_bytes file, const sp_image_info *info, sp_pixels want,
                                sp_exif exif, sp_image *image, sp_error *err);

/* Turn `image` upright by its EXIF orientation 1...8; on failure it is as before. */
sp_status sp_image_orient(sp_image *image, int orientation, sp_error *err);

/* Whether that orientation swaps width and height. */
static inline bool sp_orientation_swaps(int orientation) {
    return orientation >= 5 && orientation <= 8;
}

#endif
