/*
 * What a set of kernels does. One set is one precision at one instruction set level; the plan calls
 * it without knowing which. All of them are tested against the reference by tests/kernels.
 */
#ifndef SP_ENGINE_CPU_KERNELS_H
#define SP_ENGINE_CPU_KERNELS_H

#include "base/cpu.h"
#include "engine/cpu/lines.h"
#include "model/network.h"
#include "superpoint.h"

/* A layer as a set of kernels wants it: weights reordered, padded and rounded. */
typedef struct sp_packed {
    const sp_layer *layer;
    const void *weights; /* aligned to SP_LINE */
    const float *bias;   /* as many as output channels, rounded up to SP_OUT_UNIT */
} sp_packed;

/* Output channels are padded to this many with zero weights: the 65 logits become 80. */
enum { SP_OUT_UNIT = 16, SP_LOGITS_PADDED = 80 };

/* Two rows y, y+1 of a layer's output, and the input rows that they need. */
typedef struct sp_row_pair {
    const uint8_t *in[4]; /* 3x3: rows y-1...y+2 at x = 0; 1x1: rows y, y+1 */
    size_t in_pitch;
    uint32_t width;  /* of the input */
    uint8_t *out[2]; /* rows y, y+1; pooled: the one row in out[0]; out[1] may be NULL when y+1 is outside */
    size_t out_pitch;
    void *scratch; /* this thread's, SP_SCRATCH_BYTES, aligned to SP_LINE */
} sp_row_pair;

enum { SP_SCRATCH_BYTES = 64 << 10 };

typedef struct sp_kernels {
    sp_cpu_level level;
    sp_precision precision;
    uint32_t lanes; /* channels in a line */

    size_t (*packed_bytes)(const sp_layer *layer);
    /* `kernel` as the checkpoint has it. */
    void (*pack)(const sp_layer *layer, const float *kernel, void *packed);

    /* A thread is about to run kernels, or has finished (NULL: nothing to do). */
    void (*enter)(void);
    void (*leave)(void);

    /* Layer 0: one row of 64 channels from three rows of pixels (NULL outside the frame). `floats` has
     * room for 3 * (width + 2 * SP_BLOCK_PIXELS). Weights include the division by 255. */
    void (*first)(const sp_packed *layer, const uint8_t *const pixels[3], uint32_t width, uint8_t *out,
                  size_t out_pitch, float *floats);
    /* 3x3, bias, ReLU. */
    void (*conv)(const sp_packed *layer, const sp_row_pair *rows);
    /* The same and 2x2 maximum. */
    void (*conv_pool)(const sp_packed *layer, const sp_row_pair *rows);
    /* 1x1 and bias to float32, pixel after pixel, `stride` floats from one to the next; row i goes to out[i]. */
    void (*head)(const sp_packed *layer, const sp_row_pair *rows, float *const out[2], size_t stride);

    /* Softmax of `cells` rows of SP_LOGITS_PADDED logits (overwritten) into 8 rows of scores. */
    void (*scores)(float *logits, uint32_t cells, float *scores, size_t stride);
    /* Scale each of `cells` descriptors to length 1. */
    void (*normalise)(float *descriptors, uint32_t cells);
} sp_kernels;

/* The set for a precision at a level, or NULL. */
const sp_kernels *sp_kernels_find(sp_cpu_level level, sp_precision precision);

extern const sp_kernels sp_kernels_f32_c;
extern const sp_kernels sp_kernels_f32_avx2;
extern const sp_kernels sp_kernels_f32_avx512;
extern const sp_kernels sp_kernels_f32_neon;

#endif
