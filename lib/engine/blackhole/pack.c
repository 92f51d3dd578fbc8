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

typedef struct tally {
    double greatest;     /* magnitude */
    double energy, lost; /* of the kernel, and what of it vanished below fp16's range */
} tally;

/* One number, rounded for SrcA. */
static uint16_t pack_number(double value, tally *t) {
    if (!(fabs(value) <= HALF_MAX)) {
        t->greatest = INFINITY;
        return 0;
    }
    const float v = bh_round_bits((float)value, WEIGHT_BITS);
    t->greatest = fmax(t->greatest, fabs(value));
    t->energy += value * value;
    if (fabsf(v) < HALF_MIN_NORMAL)
        t->lost += value * value;
    return bh_half_of_float(v);
}

/* All taps between one input and one output, each with the error of the one before. */
static void pack_taps(const sp_layer *layer, const float *taps, uint32_t p, double scale, uint16_t *column, tally *t) {
    const uint32_t n = (uint32_t)(layer->kernel * layer->kernel), planes = input_planes(layer);
    double error = 0;
    for (uint32_t tap = 0; tap < n; tap++) {
        const size_t block = taps_are_channels(layer) ? 0 : (size_t)tap * planes + p / 16;
        const size_t input = taps_are_channels(layer) ? tap : p % 16;
        uint16_t *to = column + block * BLOCK_HALVES + input * 16;
        const double wanted = taps[tap] * scale + error;
        *to = pack_number(wanted, t);
        error = wanted - bh_float_of_half(*to);
    }
}

sp_status sp_bh_pack_layer(const sp_layer *layer, const float *kernel, const float *bias, double scale,
                           double bias_scale, uint16_t *out, sp_error *err) {
    const uint32_t blocks = sp_bh_layer_blocks(layer), taps = (uint32_t)(layer->kernel * layer->kernel);
    tally weights = {0}, biases = {0};
    memset(out, 0, sp_bh_packed_bytes(layer));
    for (uint32_t q = 0; q < layer->out; q++) {
        /* Column of this output in its group's blocks. */
        uint16_t *column = out + (size_t)(q / 64) * blocks * BLOCK_HALVES + q % 64 / 16 * 256 + q % 16;
        for (uint32_t p = 0; p < layer->in; p++)
            pack_taps(layer, kernel + ((size_t)q * layer->in + p) * taps, p, scale, column, &weights);
        const double wanted = bias[q] * bias_scale;
        uint16_t *last = column + (size_t)(blocks - 1) * BLOCK_HALVES;
        last[0] = pack_number(wanted, &biases);
        last[16] = pack_number(wanted - bh_float_of_half(last[0]), &biases);
    }
    const double greatest = fmax(weights.greatest, biases.greatest);
    if (!(greatest <= HALF_MAX))
        return sp_fail(err, SP_ERR_WEIGHTS_DATA, "blackhole: %s: a weight is beyond fp16's %g", layer->name, HALF_MAX);
    if (weights.lost > MAX_LOST * weights.energy)
        return sp_fail(err, SP_ERR_WEIGHTS_DATA, "blackhole: %s: %.2g of the kernel's energy lies below fp16's %.2g",
                       layer->name, weights.lost / weights.energy, HALF_MIN_NORMAL);
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
