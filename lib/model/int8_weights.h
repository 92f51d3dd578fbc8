/*
 * Weights of the layers that may run in int8, rounded beforehand by train/calibrate.py: which of the neighbouring
 * whole numbers a weight becomes is chosen by what the layer gives on pictures, which is more than is known here.
 */
#ifndef SP_MODEL_INT8_WEIGHTS_H
#define SP_MODEL_INT8_WEIGHTS_H

#include <stdint.h>

#include "model/network.h"
#include "superpoint.h"

enum {
    SP_INT8_FIRST = 1, /* its input, layer 0's output, has steps too */
    SP_INT8_LAST = 5,
    SP_INT8_CHANNELS = 128, /* at most, in and out */
    SP_INT8_WEIGHTS = 9 * (3 * 64 * 64 + 64 * 128 + 128 * 128)
};

/*
 * One layer. Its input is a whole number of the steps of the layer before, its output o
 *     scale[o] * (sum of weight * input) + bias[o],
 * which the next layer reads as a whole number of step[o], 0...255. Scales and steps are positive. Outputs need not be
 * the checkpoint's channels one by one: where one of these is never on, its place may carry the steps above 255 of
 * another.
 */
typedef struct sp_int8_layer {
    const int8_t *weight;          /* [out][in][3][3]; layers 1...5 */
    float scale[SP_INT8_CHANNELS]; /* [out]; layers 1...5 */
    float bias[SP_INT8_CHANNELS];  /* [out]; layers 1...5. Not the checkpoint's: without the rounding's mean error */
    float step[SP_INT8_CHANNELS];  /* [out]; layers 0...4 */
} sp_int8_layer;

struct sp_int8_weights {
    sp_int8_layer layer[SP_INT8_LAST + 1];
    int8_t weights[SP_INT8_WEIGHTS];
};

/* Largest file that is read: ours have 340 KB. */
#define SP_MAX_INT8_BYTES ((size_t)4 << 20)

/*
 * Read NAME.int8 beside NAME.safetensors. It is a safetensors file too: metadata "format", which is
 * "superpoint int8 1", and "weights", the SHA-256 of the weights file that it was made from; tensors
 * LAYER.weight (I8), LAYER.scale, LAYER.bias and LAYER.step (F32), shaped as above, and no others.
 * SP_OK and NULL where there is no such file or it belongs to other weights; SP_ERR_WEIGHTS_DATA where it is broken.
 * Free the result with free().
 */
sp_status sp_int8_weights_load(const char *weights_path, const char *sha256, struct sp_int8_weights **out,
                               sp_error *err);

#endif
