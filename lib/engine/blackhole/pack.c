#include "pack.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "firmware/tile.h"
#include "half.h"

#define BLOCK_HALVES (WEIGHT_BLOCK_BYTES / 2)
#define WEIGHT_BITS 10
/* Share of the kernel's energy that may vanish below fp16's range: 1e-7 is an error of 3e-4 of the output, as much
 * as rounding makes. */
#define MAX_LOST 1e-7

static uint32_t input_planes(const sp_layer *layer) {
    return (layer->in + PLANE_CHANNELS - 1) / PLANE_CHANNELS;
}

/* The first layer has one input channel: its taps take the place of channels. */
static bool taps_are_channels(const sp_layer *layer) {
    return layer->in == 1;
}

uint32_t sp_bh_layer_blocks(const sp_layer *layer) {
    return taps_are_channels(layer) ? 2 : (uint32_t)(layer->kernel * layer->kernel) * input_planes(layer) + 1;
}

uint32_t sp_bh_layer_groups(const sp_layer *layer) {
    return (layer->out + 63u) / 64u;
}

size_t sp_bh_packed_bytes(const sp_layer *layer) {
    return (size_t)sp_bh_layer_groups(layer) * sp_bh_layer_blocks(layer) * WEIGHT_BLOCK_BYTES;
}

/* One number, rounded for SrcA; *lost grows by the energy that vanished. */
static uint16_t pack_number(double value, double *greatest, double *lost) {
    const float v = (float)value;
    if (!(fabs(value) <= HALF_MAX)) {
        *greatest = INFINITY;
        return 0;
    }
    *greatest = fmax(*greatest, fabs(value));
    if (fabsf(v) < HALF_MIN_NORMAL)
        *lost += value * value;
    return bh_half_of_float(bh_round_bits(v, WEIGHT_BITS));
}

sp_status sp_bh_pack_layer(const sp_layer *layer, const float *kernel, const float *bias, double scale,
                           double bias_scale, uint16_t *out, sp_error *err) {
    const uint32_t blocks = sp_bh_layer_blocks(layer), planes = input_planes(layer);
    const uint32_t taps = (uint32_t)(layer->kernel * layer->kernel);
    double greatest = 0, lost = 0, energy = 0, bias_lost = 0;
    memset(out, 0, sp_bh_packed_bytes(layer));
    for (uint32_t q = 0; q < layer->out; q++) {
        /* Column of this output in its group's blocks. */
        uint16_t *column = out + (size_t)(q / 64) * blocks * BLOCK_HALVES + q % 64 / 16 * 256 + q % 16;
        for (uint32_t p = 0; p < layer->in; p++)
            for (uint32_t tap = 0; tap < taps; tap++) {
                const double v = kernel[((size_t)q * layer->in + p) * taps + tap] * scale;
                const size_t block = taps_are_channels(layer) ? 0 : (size_t)tap * planes + p / 16;
                const size_t input = taps_are_channels(layer) ? tap : p % 16;
                column[block * BLOCK_HALVES + input * 16] = pack_number(v, &greatest, &lost);
                energy += v * v;
            }
        uint16_t *last = column + (size_t)(blocks - 1) * BLOCK_HALVES;
        last[0] = pack_number(bias[q] * bias_scale, &greatest, &bias_lost);
        last[16] = pack_number(bias[q] * bias_scale - bh_float_of_half(last[0]), &greatest, &bias_lost);
    }
    if (!(greatest <= HALF_MAX))
        return sp_fail(err, SP_ERR_WEIGHTS_DATA, "blackhole: %s: a weight is beyond fp16's %g", layer->name, HALF_MAX);
    if (lost > MAX_LOST * energy)
        return sp_fail(err, SP_ERR_WEIGHTS_DATA, "blackhole: %s: %.2g of the kernel's energy lies below fp16's %.2g",
                       layer->name, lost / energy, HALF_MIN_NORMAL);
    return SP_OK;
}

sp_status sp_bh_weights_make(const sp_weights *weights, bh_weights *packed, sp_error *err) {
    memset(packed, 0, sizeof *packed);
    sp_status status = sp_bh_calibrate(weights, &packed->scales, err);
    for (uint32_t i = 0; i < SP_LAYERS && status == SP_OK; i++) {
        const size_t bytes = sp_bh_packed_bytes(&sp_network[i]);
        packed->layer[i] = malloc(bytes);
        if (!packed->layer[i])
            return sp_fail_memory(err, "packed weights", bytes);
        status = sp_bh_pack_layer(&sp_network[i], weights->kernel[i], weights->bias[i],
                                  sp_bh_kernel_scale(&packed->scales, i), sp_bh_bias_scale(&packed->scales, i),
                                  packed->layer[i], err);
    }
    return status;
}

void sp_bh_weights_free(bh_weights *packed) {
    for (uint32_t i = 0; i < SP_LAYERS; i++)
        free(packed->layer[i]);
    memset(packed, 0, sizeof *packed);
}
