#include "engine/cpu/bf16.h"

#include <string.h>

static uint32_t padded_out(const sp_layer *layer) {
    return (layer->out + SP_OUT_UNIT - 1u) / SP_OUT_UNIT * SP_OUT_UNIT;
}

size_t sp_bf16_packed_bytes(const sp_layer *layer) {
    const size_t blocks = padded_out(layer) / SP_OUT_UNIT;
    const size_t tiles = layer->in == 1 ? 1 : (size_t)layer->kernel * layer->kernel * layer->in / SP_BF16_LANES;
    return blocks * tiles * SP_BF16_TILE * sizeof(uint16_t);
}

/* Where input `i` of output `o` lies in a tile. */
static size_t tile_index(uint32_t i, uint32_t o) {
    return (size_t)i / 2 * 32 + (size_t)o * 2 + i % 2;
}

/* `value` as a sum of two bf16 numbers. */
static void split(float value, uint16_t *high, uint16_t *low) {
    *high = sp_to_bf16(value);
    *low = sp_to_bf16(value - sp_from_bf16(*high));
}

void sp_bf16_pack_first(const float *kernel, const float *bias, void *packed) {
    const sp_layer *layer = &sp_network[0];
    uint16_t *w = packed;
    memset(w, 0, sp_bf16_packed_bytes(layer));
    for (uint32_t o = 0; o < layer->out; o++) {
        uint16_t *tile = w + (size_t)(o / SP_OUT_UNIT) * SP_BF16_TILE;
        const uint32_t column = o % SP_OUT_UNIT;
        for (uint32_t kx = 0; kx < 3; kx++)
            for (uint32_t ky = 0; ky < 3; ky++)
                split(kernel[o * 9 + ky * 3 + kx] / 255.0f, &tile[tile_index(8 * kx + ky, column)],
                      &tile[tile_index(8 * kx + 4 + ky, column)]);
        split(bias[o], &tile[tile_index(3, column)], &tile[tile_index(7, column)]);
    }
}

void sp_bf16_pack(const sp_weights *weights, int index, void *packed) {
    const sp_layer *layer = &sp_network[index];
    const float *kernel = weights->kernel[index];
    if (index == 0) {
        sp_bf16_pack_first(kernel, weights->bias[0], packed);
        return;
    }
    uint16_t *w = packed;
    const uint32_t k = layer->kernel;
    for (uint32_t block = 0; block < padded_out(layer); block += SP_OUT_UNIT)
        for (uint32_t ky = 0; ky < k; ky++)
            for (uint32_t g = 0; g < layer->in; g += SP_BF16_LANES)
                for (uint32_t kx = 0; kx < k; kx++, w += SP_BF16_TILE)
                    for (uint32_t i = 0; i < SP_BF16_LANES; i++)
                        for (uint32_t o = 0; o < SP_OUT_UNIT; o++) {
                            const uint32_t out = block + o;
                            w[tile_index(i, o)] =
                                out < layer->out
                                    ? sp_to_bf16(kernel[(((size_t)out * layer->in + g + i) * k + ky) * k + kx])
                                    : 0;
                        }
}
