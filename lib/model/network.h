/*
 * The network, once: every engine, the weight loader, the reference and the training export walk
 * this table.
 *
 *     frame -> 0 -> 1 pool -> 2 -> 3 pool -> 4 -> 5 pool -> 6 -> 7 -+-> 8  -> 9   65 logits a cell
 *                                                                  +-> 10 -> 11  256 numbers a cell
 *
 * Source: arXiv:1712.07629, section 3; tensor names of the transformers checkpoint.
 */
#ifndef SP_MODEL_NETWORK_H
#define SP_MODEL_NETWORK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    SP_LAYERS = 12,
    SP_ENCODER_END = 8,     /* layers 0...7 follow each other */
    SP_DETECTOR_A = 8,      /* reads layer 7 */
    SP_DETECTOR_B = 9,      /* logits: 64 places of a cell and the dustbin */
    SP_DESCRIPTOR_A = 10,   /* reads layer 7 */
    SP_DESCRIPTOR_B = 11,   /* before normalisation */
    SP_LOGITS = 65,         /* 8 * 8 + 1 */
    SP_PARAMETERS = 1300865 /* weights and biases together */
};

typedef struct sp_layer {
    const char *name; /* of its tensors: NAME.weight [out][in][kernel][kernel], NAME.bias [out] */
    uint16_t kernel;  /* 3 (padded by 1) or 1 */
    uint16_t in, out; /* channels */
    bool relu;        /* after the bias */
    bool pool;        /* 2 x 2 maximum after the ReLU */
    uint8_t shrink;   /* log2 of how much smaller than the frame this layer's input is */
} sp_layer;

extern const sp_layer sp_network[SP_LAYERS];

/* Weights in float32 as the checkpoint has them; pixels are expected in 0...1. */
typedef struct sp_weights {
    const float *kernel[SP_LAYERS];     /* [out][in][k][k] */
    const float *bias[SP_LAYERS];       /* [out] */
    const struct sp_int8_weights *int8; /* int8_weights.h; NULL where there are none */
} sp_weights;

/* Elements of a layer's kernel. */
size_t sp_layer_kernel_size(const sp_layer *layer);

#endif
