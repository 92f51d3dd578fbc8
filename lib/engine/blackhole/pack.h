/* Weights as the matrix unit wants them. */
#ifndef BH_PACK_H
#define BH_PACK_H

#include "calibrate.h"
#include "model/network.h"
#include "superpoint.h"

/* Blocks of 2 KiB (16 inputs x 64 outputs) of one group of 64 outputs: taps x input planes, and the bias. */
uint32_t sp_bh_layer_blocks(const sp_layer *layer);
uint32_t sp_bh_layer_groups(const sp_layer *layer);
size_t sp_bh_packed_bytes(const sp_layer *layer);

/*
 * Pack one layer: [group][block][4 output planes][16 inputs][16 outputs] of fp16. The first layer's nine taps are nine
 * channels of one plane.
 *
 * SrcA keeps 10 significant bits and cuts the rest, so weights are rounded to 10 bits here, and what rounding does is
 * kept from adding up: the error of one tap is carried to the next of the same input channel, since neighbouring pixels
 * are much alike. (Carrying the ninth tap's error on into the bias, by the channel's mean, was tried: it helps where a
 * picture is like the mean and harms the dark and flat parts, where it matters most.) The bias is the sum of two
 * numbers of 10 bits.
 *
 * `scale` multiplies the kernel, `bias_scale` the bias (calibrate.h). Fails with SP_ERR_WEIGHTS_DATA when fp16 cannot
 * hold the layer: a number too large, or too much of the kernel's energy too small.
 */
sp_status sp_bh_pack_layer(const sp_layer *layer, const float *kernel, const float *bias, double scale,
                           double bias_scale, uint16_t *out, sp_error *err);

/* All layers, packed once for any number of devices. */
typedef struct bh_weights {
    bh_scales scales;
    uint16_t *layer[SP_LAYERS];
} bh_weights;

/* Calibrate and pack. Free with sp_bh_weights_free, also after a failure. */
sp_status sp_bh_weights_make(const sp_weights *weights, bh_weights *packed, sp_error *err);
void sp_bh_weights_free(bh_weights *packed);

#endif
