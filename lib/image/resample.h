/*
 * Bilinear resampling, byte for byte as Pillow's Image.resize(size, BILINEAR).
 *
 * Each output pixel is a weighted mean of the input pixels within one (upscaled) or `scale` (downscaled) pixels of its
 * centre, a triangle. Once along rows and once along columns, each time with weights in 22-bit fixed point and a result
 * rounded to 8 bits, so that the order of the two shows in the last bit: along rows first, unless the picture loses
 * more than twice as many rows as columns (Pillow from 13.0 on; before, rows always came first). Rows come in one by
 * one and leave as soon as they can: no more rows are held than one output row needs.
 */
#ifndef SP_IMAGE_RESAMPLE_H
#define SP_IMAGE_RESAMPLE_H

#include "image/codec.h"

/* Bits behind the point of a weight: 8-bit pixels times weights that add up to 1 must stay below 2^31 with a margin. */
#define SP_WEIGHT_BITS 22

/* One axis: output i is the sum of `count[i]` inputs from `first[i]` on, weighted by weights[i * taps ...]. */
typedef struct sp_filter {
    uint32_t in, out;
    uint32_t taps; /* most inputs of an output */
    uint32_t *first, *count;
    int32_t *weights; /* 0 behind `count` */
    /* One row of one channel, `in` inputs to `out` outputs: the way that sp_image_kernels.choose_row took, and the
     * weights in the shape that it wants, or NULL. */
    void (*row)(const struct sp_filter *filter, const uint8_t *in, uint8_t *out);
    void *packed;
} sp_filter;

sp_status sp_filter_make(uint32_t in, uint32_t out, sp_filter *filter, sp_error *err);
void sp_filter_free(sp_filter *filter);

struct sp_image_kernels;

/* A sink for rows of in_width pixels that fills `out`. */
typedef struct sp_resampler {
    sp_row_sink base;
    const struct sp_image_kernels *kernels;
    sp_filter x, y;
    uint32_t channels;
    bool columns_first;
    uint32_t held;           /* rows in the ring */
    uint32_t received, sent; /* rows in and out so far */
    size_t held_bytes;       /* of a row in the ring */
    uint8_t *ring;           /* rows before the pass along columns, row y at y % held */
    const uint8_t **window;  /* rows of the ring in order */
    uint8_t *line;           /* a row between the passes, when columns come first */
    uint8_t *out;
    size_t out_stride;
} sp_resampler;

sp_status sp_resampler_open(sp_resampler *r, uint32_t in_width, uint32_t in_height, uint32_t channels,
                            uint32_t out_width, uint32_t out_height, uint8_t *out, size_t out_stride, sp_error *err);
void sp_resampler_close(sp_resampler *r);

#endif
