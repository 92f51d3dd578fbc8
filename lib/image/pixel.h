/* From the pixels of a file to those that are wanted. */
#ifndef SP_IMAGE_PIXEL_H
#define SP_IMAGE_PIXEL_H

#include "image/codec.h"

#include <string.h>

/* Pillow's rule for mode L, see SP_CHANNEL_LUMA. */
static inline uint8_t sp_luma(uint32_t r, uint32_t g, uint32_t b) {
    return (uint8_t)((19595 * r + 38470 * g + 7471 * b + 0x8000) >> 16);
}

/* `n` pixels of `step` bytes each, whose first byte is a grey value. */
static inline void sp_row_from_grey(sp_pixels want, const uint8_t *in, size_t step, uint32_t n, uint8_t *out) {
    if (want != SP_PIXELS_RGB) {
        for (size_t i = 0; i < n; i++)
            out[i] = in[i * step];
        return;
    }
    for (size_t i = 0; i < n; i++)
        out[3 * i] = out[3 * i + 1] = out[3 * i + 2] = in[i * step];
}

/* `n` pixels of `step` bytes each, whose first three are red, green and blue. */
static inline void sp_row_from_rgb(sp_pixels want, const uint8_t *in, size_t step, uint32_t n, uint8_t *out) {
    if (want == SP_PIXELS_RED) {
        for (size_t i = 0; i < n; i++)
            out[i] = in[i * step];
    } else if (want == SP_PIXELS_LUMA) {
        for (size_t i = 0; i < n; i++)
            out[i] = sp_luma(in[i * step], in[i * step + 1], in[i * step + 2]);
    } else if (step == 3) {
        memcpy(out, in, (size_t)3 * n);
    } else {
        for (size_t i = 0; i < n; i++)
            memcpy(out + 3 * i, in + i * step, 3);
    }
}

/* `n` indices into a palette of red, green and blue. */
static inline void sp_row_from_palette(sp_pixels want, uint8_t palette[256][3], const uint8_t *in, uint32_t n,
                                       uint8_t *out) {
    if (want == SP_PIXELS_RED) {
        for (size_t i = 0; i < n; i++)
            out[i] = palette[in[i]][0];
    } else if (want == SP_PIXELS_LUMA) {
        for (size_t i = 0; i < n; i++)
            out[i] = sp_luma(palette[in[i]][0], palette[in[i]][1], palette[in[i]][2]);
    } else {
        for (size_t i = 0; i < n; i++)
            memcpy(out + 3 * i, palette[in[i]], 3);
    }
}

/* Pixel `x` of a row of 1, 2, 4 or 8 bits a pixel, the first in the highest bits. */
static inline uint8_t sp_packed_pixel(const uint8_t *row, uint32_t bits, size_t x) {
    size_t bit = x * bits;
    return (uint8_t)((row[bit >> 3] >> (8 - bits - (bit & 7))) & ((1u << bits) - 1));
}

#endif
