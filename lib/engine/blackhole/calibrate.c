#include "calibrate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

/*
 * Where a layer's greatest stored value may lie. fp16 ends at 65504, which leaves a factor of 16 for pictures that
 * drive a layer harder than the synthetic ones; at 2^-4 the smallest number is still 2^-10 of the greatest. A layer
 * within the range is not scaled. One outside is brought to its middle, not only inside: a weight is stored times the
 * ratio of two layers' scales, and between layers at opposite ends it would leave fp16 itself.
 */
typedef struct span {
    double least, middle, greatest;
} span;
static const span stored = {0x1p-4, 0x1p4, 0x1p12};
/* Squares of descriptors are summed by sixteens in fp16: 16 * 32^2 = 16384. */
static const span stored_descriptor = {0.5, 4, 32};

/* 256/255: the chip makes v/256 of a pixel, which is exact, and the network wants v/255. */
#define PIXEL_SCALE (256.0 / 255.0)

enum { SIDE = 48, PICTURES = 4 };

static uint32_t layer_before(uint32_t i) {
    return i == SP_DESCRIPTOR_A ? SP_ENCODER_END - 1 : i - 1;
}

double sp_bh_kernel_scale(const bh_scales *scales, uint32_t i) {
    return i == 0 ? scales->out[0] * PIXEL_SCALE : scales->out[i] / scales->out[layer_before(i)];
}

double sp_bh_bias_scale(const bh_scales *scales, uint32_t i) {
    return scales->out[i];
}

/* Pictures that excite edges and corners, all frequencies, full contrast, and nothing at all. */
static float pixel(uint32_t picture, uint32_t y, uint32_t x, uint32_t *noise) {
    *noise = *noise * 1664525u + 1013904223u;
    switch (picture) {
    case 0:
        return (float)(*noise >> 24) / 255.0f;
    case 1:
        return (float)((y / 8 + x / 8) % 2);
    case 2:
        return (float)((y / 3 + x / 5) % 2) * 0.5f + (float)(y * x % 256) / 510.0f;
    default:
        return 1.0f;
    }
}

/* out[co][side][side] += one input channel under one 3 x 3 or 1 x 1 kernel, zeros outside. */
static void accumulate(float *out, const float *in, const float *kernel, uint32_t k, uint32_t side) {
    const int32_t n = (int32_t)side, r = (int32_t)k / 2;
    for (int32_t ky = -r; ky <= r; ky++)
        for (int32_t kx = -r; kx <= r; kx++) {
            const float w = kernel[(ky + r) * (int32_t)k + kx + r];
            const int32_t x0 = kx < 0 ? -kx : 0, x1 = kx > 0 ? n - kx : n;
            for (int32_t y = ky < 0 ? -ky : 0; y < (ky > 0 ? n - ky : n); y++)
                for (int32_t x = x0; x < x1; x++)
                    out[y * n + x] += w * in[(y + ky) * n + x + kx];
        }
}

static float finish(const sp_layer *layer, float *map, uint32_t side) {
    float greatest = 0;
    for (uint32_t i = 0; i < side * side; i++) {
        map[i] = layer->relu && map[i] < 0 ? 0 : map[i];
        greatest = fmaxf(greatest, fabsf(map[i]));
    }
    if (layer->pool) /* in place: what is read lies at or behind what is written */
        for (uint32_t y = 0; y < side / 2; y++)
            for (uint32_t x = 0; x < side / 2; x++) {
                const float *p = map + 2 * y * side + 2 * x;
                map[y * (side / 2) + x] = fmaxf(fmaxf(p[0], p[1]), fmaxf(p[side], p[side + 1]));
            }
    return greatest;
}

/* Returns the greatest magnitude before pooling. Maps lie one after another, [channel][side][side]. */
static float run_layer(const sp_layer *layer, const float *kernel, const float *bias, const float *in, float *out,
                       float *map) {
    const uint32_t side = SIDE >> layer->shrink, taps = (uint32_t)(layer->kernel * layer->kernel);
    const uint32_t kept = layer->pool ? side / 2 : side;
    float greatest = 0;
    for (uint32_t q = 0; q < layer->out; q++) {
        for (uint32_t i = 0; i < side * side; i++)
            map[i] = bias[q];
        for (uint32_t p = 0; p < layer->in; p++)
            accumulate(map, in + (size_t)p * side * side, kernel + ((size_t)q * layer->in + p) * taps, layer->kernel,
                       side);
        greatest = fmaxf(greatest, finish(layer, map, side));
        memcpy(out + (size_t)q * kept * kept, map, sizeof *map * kept * kept);
    }
    return greatest;
}

static void run_picture(const sp_weights *weights, uint32_t picture, float *map[SP_LAYERS + 1], float *scratch,
                        bh_scales *scales) {
    uint32_t noise = 1;
    for (uint32_t y = 0; y < SIDE; y++)
        for (uint32_t x = 0; x < SIDE; x++)
            map[SP_LAYERS][y * SIDE + x] = pixel(picture, y, x, &noise);
    for (uint32_t i = 0; i < SP_LAYERS; i++) {
        const float *in = i == 0 ? map[SP_LAYERS] : map[layer_before(i)];
        const float greatest = run_layer(&sp_network[i], weights->kernel[i], weights->bias[i], in, map[i], scratch);
        scales->greatest[i] = fmaxf(scales->greatest[i], greatest);
    }
}

/* 1 within the span, else the power of two that brings `greatest` to its middle; 1 for a layer that is always zero. */
static double choose(double greatest, const span *s) {
    if (greatest == 0 || (greatest >= s->least && greatest <= s->greatest))
        return 1;
    return exp2(nearbyint(log2(s->middle / greatest)));
}

sp_status sp_bh_calibrate(const sp_weights *weights, bh_scales *scales, sp_error *err) {
    memset(scales, 0, sizeof *scales);
    float *map[SP_LAYERS + 1], *scratch = malloc(sizeof *scratch * SIDE * SIDE);
    bool enough = scratch != NULL;
    for (uint32_t i = 0; i <= SP_LAYERS; i++) {
        const uint32_t shrink = i < SP_LAYERS ? sp_network[i].shrink + (sp_network[i].pool ? 1u : 0u) : 0;
        const size_t channels = i < SP_LAYERS ? sp_network[i].out : 1;
        map[i] = malloc(sizeof **map * channels * (SIDE >> shrink) * (SIDE >> shrink));
        enough &= map[i] != NULL;
    }
    for (uint32_t p = 0; enough && p < PICTURES; p++)
        run_picture(weights, p, map, scratch, scales);
    for (uint32_t i = 0; i <= SP_LAYERS; i++)
        free(map[i]);
    free(scratch);
    if (!enough)
        return sp_fail_memory(err, "range check of the weights", sizeof(float) * SIDE * SIDE * 64);
    for (uint32_t i = 0; i < SP_LAYERS; i++) {
        if (!isfinite(scales->greatest[i]))
            return sp_fail(err, SP_ERR_WEIGHTS_DATA, "blackhole: %s: activations are not finite", sp_network[i].name);
        scales->out[i] = choose(scales->greatest[i], i == SP_DESCRIPTOR_B ? &stored_descriptor : &stored);
    }
    return SP_OK;
}
