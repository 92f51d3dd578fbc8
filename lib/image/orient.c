#include "image/image.h"

#include "base/error.h"

#include <string.h>

/*
 * EXIF 2.3, tag 0x0112: where row 0 and column 0 of the stored picture lie when it is seen upright.
 * Written as the three generators: mirror left-right, mirror top-bottom, swap the axes; the picture
 * upright at (x, y) is the stored one at (u, v) with (u, v) = (x, y), swapped first if `swap`, then
 * mirrored in the stored picture.
 */
static const struct {
    bool swap, mirror_x, mirror_y;
} turns[9] = {
    [1] = {false, false, false}, [2] = {false, true, false}, [3] = {false, true, true}, [4] = {false, false, true},
    [5] = {true, false, false},  [6] = {true, false, true},  [7] = {true, true, true},  [8] = {true, true, false},
};

/* Copied in square tiles, so that both pictures stay in cache when the axes are swapped. */
enum { TILE = 32 };

static void turn_tile(const sp_image *in, sp_image *out, int orientation, uint32_t x0, uint32_t y0) {
    const uint32_t x1 = out->width - x0 < TILE ? out->width : x0 + TILE;
    const uint32_t y1 = out->height - y0 < TILE ? out->height : y0 + TILE;
    const uint32_t channels = in->channels;
    for (uint32_t y = y0; y < y1; y++) {
        for (uint32_t x = x0; x < x1; x++) {
            uint32_t u = turns[orientation].swap ? y : x, v = turns[orientation].swap ? x : y;
            if (turns[orientation].mirror_x)
                u = in->width - 1 - u;
            if (turns[orientation].mirror_y)
                v = in->height - 1 - v;
            const uint8_t *from = in->pixels + v * in->stride + (size_t)u * channels;
            uint8_t *to = out->pixels + y * out->stride + (size_t)x * channels;
            for (uint32_t c = 0; c < channels; c++)
                to[c] = from[c];
        }
    }
}

sp_status sp_image_orient(sp_image *image, int orientation, sp_error *err) {
    if (orientation <= 1 || orientation > 8)
        return SP_OK;
    const bool swap = turns[orientation].swap;
    sp_image out;
    sp_status status = sp_image_alloc(swap ? image->height : image->width, swap ? image->width : image->height,
                                      image->channels, &out, err);
    if (status != SP_OK)
        return status;
    for (uint32_t y = 0; y < out.height; y += TILE)
        for (uint32_t x = 0; x < out.width; x += TILE)
            turn_tile(image, &out, orientation, x, y);
    sp_image_free(image);
    *image = out;
    return SP_OK;
}
