/* The usual size of the numbers between the layers, measured beforehand: what int8 arithmetic is scaled by. */
#ifndef SP_MODEL_RANGES_H
#define SP_MODEL_RANGES_H

#include "model/network.h"
#include "superpoint.h"

enum {
    /* Layers whose outputs have ranges: 0...4, the inputs of those that may run in int8. */
    SP_RANGED_LAYERS = 5,
    SP_RANGES = 64 + 64 + 64 + 64 + 128
};

/* Largest file of ranges that is read: ours have 4 KB. */
#define SP_MAX_RANGES_BYTES ((size_t)64 << 10)

/*
 * Read the ranges that lie beside a weights file, NAME.ranges beside NAME.safetensors, into `values`,
 * layer after layer, and point weights->range into it. A text: the line "superpoint ranges 1", the line
 * "sha256 DIGEST" of the weights, and for each layer "layer I COUNT" and as many positive numbers. SP_OK without ranges
 * where there is no such file or it belongs to other weights.
 */
sp_status sp_ranges_load(const char *weights_path, const char *sha256, float values[SP_RANGES], sp_weights *weights,
                         sp_error *err);

#endif
