/*
 * Whether a model's activations fit fp16, and the powers of two that make them fit.
 *
 * ReLU, maximum and convolution commute with a positive factor, so a layer's output may be stored scaled by any power
 * of two without changing a significant bit. The ranges are measured on a few synthetic pictures in fp32.
 */
#ifndef BH_CALIBRATE_H
#define BH_CALIBRATE_H

#include "model/network.h"
#include "superpoint.h"

typedef struct bh_scales {
    float greatest[SP_LAYERS]; /* magnitude seen in a layer's output, not scaled */
    double out[SP_LAYERS];     /* power of two that the stored output is multiplied by */
} bh_scales;

/* Multiply the kernel and the bias of layer i by these. */
double sp_bh_kernel_scale(const bh_scales *scales, uint32_t i);
double sp_bh_bias_scale(const bh_scales *scales, uint32_t i);

sp_status sp_bh_calibrate(const sp_weights *weights, bh_scales *scales, sp_error *err);

#endif
