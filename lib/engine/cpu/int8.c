#include "engine/cpu/int8.h"

#include <math.h>
#include <string.h>

#include "engine/cpu/bf16.h"

enum {
    TILE_BYTES = 1024,
    STEPS = 255 /* of the unsigned bytes */
};

static bool in_int8(int index) {
    return index >= SP_INT8_FIRST && index <= SP_INT8_LAST;
}

static size_t tiles_bytes(const sp_layer *layer) {
    return (size_t)layer->out * layer->in * 9;
}

size_t sp_int8_packed_bytes(const sp_layer *layer) {
    return in_int8(sp_int8_index(layer)) ? tiles_bytes(layer) + sizeof(sp_int8_outputs) : sp_bf16_packed_bytes(layer);
}

/*
 * The step of each output channel of layer `index`. A channel's range alone would give weights that read a
 * quiet channel too few steps, the same step for all would give quiet channels too few: between the two, a
 * channel's step grows with range^a / weight^(1-a), a = 3/4, where weight is the largest that reads it
 * (Xiao et al., SmoothQuant, arXiv:2211.10438), and no range is cut off.
 */
static void int8_steps(const sp_weights *weights, int index, float *steps) {
    const sp_layer *layer = &sp_network[index], *reader = &sp_network[index + 1];
    float balanced[SP_INT8_CHANNELS], most = 0;
    for (uint32_t c = 0; c < layer->out; c++) {
        float weight = 1e-8f;
        for (uint32_t o = 0; o < reader->out; o++)
            for (uint32_t k = 0; k < 9; k++)
                weight = fmaxf(weight, fabsf(weights->kernel[index + 1][((size_t)o * reader->in + c) * 9 + k]));
        balanced[c] = powf(weights->range[index][c], 0.75f) * powf(weight, -0.25f);
        most = fmaxf(most, weights->range[index][c] / balanced[c]);
    }
    for (uint32_t c = 0; c < layer->out; c++)
        steps[c] = balanced[c] * most / STEPS;
}

/* Channel at place `p` of a line of bytes. */
static uint32_t channel_at(uint32_t p) {
    return p / 32 * 32 + p / 4 % 2 * 16 + p % 32 / 8 * 4 + p % 4;
}

/* The weights of output `o` as signed bytes, [in][9]; returns their step. */
static float round_weights(const sp_layer *layer, const float *kernel, const float *steps, int8_t *out) {
    float largest = 1e-20f;
    for (uint32_t i = 0; i < layer->in * 9u; i++)
        largest = fmaxf(largest, fabsf(kernel[i] * steps[i / 9]));
    for (uint32_t i = 0; i < layer->in * 9u; i++)
        out[i] = (int8_t)lrintf(kernel[i] * steps[i / 9] * (127 / largest));
    return largest / 127;
}

static void pack_int8(const sp_weights *weights, int index, void *packed) {
    const sp_layer *layer = &sp_network[index];
    int8_t *tiles = packed;
    sp_int8_outputs *out = (sp_int8_outputs *)(tiles + tiles_bytes(layer));
    float steps[SP_INT8_CHANNELS], out_steps[SP_INT8_CHANNELS];
    int8_t row[SP_INT8_CHANNELS * 9];
    int8_steps(weights, index - 1, steps);
    for (uint32_t o = 0; o < layer->out; o++)
        out_steps[o] = 1;
    if (index < SP_INT8_LAST)
        int8_steps(weights, index, out_steps);
    const uint32_t groups = layer->in / SP_INT8_LANES;
    for (uint32_t o = 0; o < layer->out; o++) {
        const float step = round_weights(layer, weights->kernel[index] + (size_t)o * layer->in * 9, steps, row);
        out->factor[o] = step / out_steps[o];
        out->offset[o] = weights->bias[index][o] / out_steps[o];
        for (uint32_t ky = 0; ky < 3; ky++)
            for (uint32_t g = 0; g < groups; g++)
                for (uint32_t kx = 0; kx < 3; kx++) {
                    int8_t *tile =
                        tiles + (((size_t)(o / 16) * 3 + ky) * groups + g) * 3 * TILE_BYTES + kx * TILE_BYTES;
                    for (uint32_t p = 0; p < SP_INT8_LANES; p++)
                        tile[p / 4 * 64 + o % 16 * 4 + p % 4] =
                            row[(g * SP_INT8_LANES + channel_at(p)) * 9 + ky * 3 + kx];
                }
    }
}

/* Layer 0 in steps of its outputs. */
static void pack_first(const sp_weights *weights, void *packed) {
    float kernel[64 * 9], bias[64], steps[SP_INT8_CHANNELS];
    int8_steps(weights, 0, steps);
    for (uint32_t o = 0; o < 64; o++) {
        for (uint32_t k = 0; k < 9; k++)
            kernel[o * 9 + k] = weights->kernel[0][o * 9 + k] / steps[o];
        bias[o] = weights->bias[0][o] / steps[o];
    }
    sp_bf16_pack_first(kernel, bias, packed);
}

void sp_int8_pack(const sp_weights *weights, int index, void *packed) {
    if (index == 0)
        pack_first(weights, packed);
    else if (in_int8(index))
        pack_int8(weights, index, packed);
    else
        sp_bf16_pack(weights, index, packed);
}
