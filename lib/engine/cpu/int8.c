#include "engine/cpu/int8.h"

#include "engine/cpu/bf16.h"

enum { TILE_BYTES = 1024 };

static bool in_int8(int index) {
    return index >= SP_INT8_FIRST && index <= SP_INT8_LAST;
}

static size_t tiles_bytes(const sp_layer *layer) {
    return (size_t)layer->out * layer->in * 9;
}

size_t sp_int8_packed_bytes(const sp_layer *layer) {
    return in_int8(sp_int8_index(layer)) ? tiles_bytes(layer) + sizeof(sp_int8_outputs) : sp_bf16_packed_bytes(layer);
}

/* Channel at place `p` of a line of bytes. */
static uint32_t channel_at(uint32_t p) {
    return p / 32 * 32 + p / 4 % 2 * 16 + p % 32 / 8 * 4 + p % 4;
}

/* Tiles [output / 16][ky][input / 64][kx] of a layer's weights. */
static void pack_tiles(const sp_layer *layer, const int8_t *weight, int8_t *tiles) {
    const uint32_t groups = layer->in / SP_INT8_LANES;
    for (uint32_t o = 0; o < layer->out; o++, weight += layer->in * 9u)
        for (uint32_t ky = 0; ky < 3; ky++)
            for (uint32_t g = 0; g < groups; g++)
                for (uint32_t kx = 0; kx < 3; kx++) {
                    int8_t *tile =
                        tiles + (((size_t)(o / 16) * 3 + ky) * groups + g) * 3 * TILE_BYTES + kx * TILE_BYTES;
                    for (uint32_t p = 0; p < SP_INT8_LANES; p++)
                        tile[p / 4 * 64 + o % 16 * 4 + p % 4] =
                            weight[(g * SP_INT8_LANES + channel_at(p)) * 9 + ky * 3 + kx];
                }
}

static void pack_int8(const sp_int8_layer *from, int index, void *packed) {
    const sp_layer *layer = &sp_network[index];
    int8_t *tiles = packed;
    sp_int8_outputs *out = (sp_int8_outputs *)(tiles + tiles_bytes(layer));
    pack_tiles(layer, from->weight, tiles);
    for (uint32_t o = 0; o < layer->out; o++) {
        const float step = index < SP_INT8_LAST ? from->step[o] : 1; /* the last one's output is in bf16 */
        out->factor[o] = from->scale[o] / step;
        out->offset[o] = from->bias[o] / step;
    }
}

/* Layer 0 in steps of its outputs. */
static void pack_first(const sp_weights *weights, void *packed) {
    float kernel[64 * 9], bias[64];
    for (uint32_t o = 0; o < 64; o++) {
        const float step = weights->int8->layer[0].step[o];
        for (uint32_t k = 0; k < 9; k++)
            kernel[o * 9 + k] = weights->kernel[0][o * 9 + k] / step;
        bias[o] = weights->bias[0][o] / step;
    }
    sp_bf16_pack_first(kernel, bias, packed);
}

void sp_int8_pack(const sp_weights *weights, int index, void *packed) {
    if (index == 0)
        pack_first(weights, packed);
    else if (in_int8(index))
        pack_int8(&weights->int8->layer[index], index, packed);
    else
        sp_bf16_pack(weights, index, packed);
}
