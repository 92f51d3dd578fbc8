/*
 * Every step of SuperPoint in the plainest C that says what it means. Slow; the oracle of the fast
 * one, and itself held against PyTorch, transformers and numpy.
 */
#ifndef SP_REFERENCE_H
#define SP_REFERENCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "correlation.h"
#include "model/network.h"
#include "superpoint.h"

/*
 * The forward pass (arXiv:1712.07629, section 3). `pixels`: height rows of `stride` bytes; sides are
 * multiples of 8. `scores`: [height][width], `descriptors`: [height/8][width/8][256] of unit length.
 * Sums are carried in double precision and each layer's result is rounded to float32.
 * False when memory runs out.
 */
bool sp_reference_forward(const sp_weights *weights, const uint8_t *pixels, size_t stride, uint32_t width,
                          uint32_t height, float *scores, float *descriptors);

/* Keep a pixel that equals the maximum of its window of 2r+1, else 0. */
void sp_reference_nms_single(const float *scores, int width, int height, int radius, float *out);

/* The rule of transformers: then two rounds in which pixels that lie near no kept one compete among
 * themselves. False when memory runs out. */
bool sp_reference_nms_hf(const float *scores, int width, int height, int radius, float *out);

/*
 * Scores above `threshold`, at least `border` from every side, inside the content, where `mask` (or
 * NULL) is not 0; by descending score, ties by y, then x; the first `limit` of them (negative: all).
 * `xy` [count][2] and `selected` [count] have room for every pixel. The count, or -1 without memory.
 */
int sp_reference_select(const float *scores, int width, int height, int content_width, int content_height,
                        const uint8_t *mask, float threshold, int border, int limit, int *xy, float *selected);

/* The pixel (x, y) moved to the top of the parabolas through the logarithms of its row's and its column's three scores,
 * as docs/architecture.md defines it. */
void sp_reference_refine(const float *scores, int width, int height, int x, int y, double place[2]);

/* A descriptor [256] at the place (x, y), in pixels, from the map [rows][columns][256], as the contract in
 * superpoint.h's sp_features and docs/architecture.md defines it. */
void sp_reference_sample(const float *map, int columns, int rows, double x, double y, float *out);

#endif
