/*
 * Mixed precision: layers 1...5, four fifths of the multiplications, in int8; the first and the last ones in bf16.
 *
 * Between them a channel's numbers are unsigned bytes, in steps that differ from channel to channel. The step of an
 * input channel is folded into the weights that read it, which are then rounded to signed bytes with a step for each
 * output channel; so a sum of products is a number of these steps, exact in 32 bits.
 */
#ifndef SP_ENGINE_CPU_INT8_H
#define SP_ENGINE_CPU_INT8_H

#include "engine/cpu/kernels.h"
#include "model/int8_weights.h"

enum {
    SP_INT8_LANES = 64 /* channels in a line */
};

/* Behind the tiles of an int8 layer: sum * factor + offset is the result in the output's own steps. */
typedef struct sp_int8_outputs {
    float factor[SP_INT8_CHANNELS], offset[SP_INT8_CHANNELS];
} sp_int8_outputs;

/*
 * Weights in tiles as TDPBUSD takes them (and VPDPBUSD), [input / 4][output][4], in the order [output / 16][ky]
 * [input / 64][kx], then the outputs. In a line of bytes, and so in the tiles, channel 32b + 16j + 4l + e lies at
 * 32b + 8l + 4j + e: the order in which AVX-512 packs two registers of sixteen. The layers in bf16 are as
 * bf16.h has them.
 */
size_t sp_int8_packed_bytes(const sp_layer *layer);
void sp_int8_pack(const sp_weights *weights, int index, void *packed);

static inline int sp_int8_index(const sp_layer *layer) {
    return (int)(layer - sp_network);
}

static inline const sp_int8_outputs *sp_int8_outputs_of(const sp_packed *packed) {
    const sp_layer *layer = packed->layer;
    return (const sp_int8_outputs *)((const char *)packed->weights + (size_t)layer->out * layer->in * 9);
}

/* Channels in a line of what each layer makes. */
#define SP_INT8_ALL_LANES                                                                                              \
    { 64, 64, 64, 64, 64, 32, 32, 32, 32, 32, 32, 32 }

#endif
