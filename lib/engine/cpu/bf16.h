/* What the kernels in bf16 share: the order of packed weights. */
#ifndef SP_ENGINE_CPU_BF16_H
#define SP_ENGINE_CPU_BF16_H

#include "engine/cpu/kernels.h"

enum {
    SP_BF16_LANES = 32, /* channels in a line */
    SP_BF16_TILE = 512, /* numbers in a tile of weights: 32 inputs of 16 outputs */
    SP_BF16_WINDOW = 8  /* numbers for each pixel in layer 0's window */
};

/* Round to nearest, ties to even. */
static inline uint16_t sp_to_bf16(float value) {
    union {
        float f;
        uint32_t u;
    } bits = {value};
    return (uint16_t)((bits.u + 0x7fff + (bits.u >> 16 & 1)) >> 16);
}

static inline float sp_from_bf16(uint16_t value) {
    union {
        uint32_t u;
        float f;
    } bits = {(uint32_t)value << 16};
    return bits.f;
}

/*
 * Weights in tiles as TDPBF16PS takes them (and VDPBF16PS): [input / 2][output][2].
 * Layers 1...11: [output / 16][ky][input / 32][kx] tiles.
 * Layer 0: [output / 16] tiles against a window of three pixels, eight numbers for each pixel:
 * its value in the row above, here and below, 1, and the same four again. The weights of the second four are what
 * rounding left over of the first, and two of the ones carry the bias and what rounding left of it: 16
 * significant bits for nothing, since a tile has room for 32 inputs.
 */
size_t sp_bf16_packed_bytes(const sp_layer *layer);
void sp_bf16_pack(const sp_weights *weights, int index, void *packed);

/* Layer 0 of other weights than the checkpoint's. */
void sp_bf16_pack_first(const float *kernel, const float *bias, void *packed);

#endif
