/*
 * Every step of SuperPoint in the plainest C that says what it means. Slow; the oracle of the fast
 * one, and itself held against PyTorch, transformers and numpy.
 */
#ifndef SP_REFERENCE_H
#define SP_REFERENCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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

#endif
