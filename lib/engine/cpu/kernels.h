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

enum { SP_MAX_STRIP = 4 };

/* A strip of rows y, y+1, ... of a layer's output, as many as the set's `rows`, and the input that they need. */
typedef struct sp_strip {
    const uint8_t *in[SP_MAX_STRIP + 2]; /* 3x3: from row y-1 on, at x = 0; 1x1: from row y on */
    size_t in_pitch;
    uint32_t width;             /* of the input */
    uint8_t *out[SP_MAX_STRIP]; /* NULL: not wanted; pooled: half as many */
    size_t out_pitch;
    void *scratch; /* this thread's, the set's scratch_bytes, aligned to SP_LINE */
} sp_strip;

/* Room that layer 0 needs: kernels spread a pixel to up to eight 16-bit numbers. */
static inline size_t sp_first_room(uint32_t width) {
    return ((size_t)width + 4 * SP_BLOCK_PIXELS) * 8 * sizeof(uint16_t);
}

enum { SP_PEAK_BYTES = 4096 };

/* `n` lanes throughout. */
#define SP_LANES(n)                                                                                                    \
    { n, n, n, n, n, n, n, n, n, n, n, n }

typedef struct sp_kernels {
    sp_cpu_level level;
    sp_precision precision;
    /* Channels in a line of what each layer makes; mixed sets have more in the layers that need fewer bits. */
    uint8_t lanes[SP_LAYERS];
    bool needs_int8_weights; /* sp_weights.int8 */
    uint32_t rows;           /* in a strip: even, at most SP_MAX_STRIP */
    size_t scratch_bytes;

    size_t (*packed_bytes)(const sp_layer *layer);
    /* Layer `index` of the weights. */
    void (*pack)(const sp_weights *weights, int index, void *packed);

    /* A thread is about to run kernels, or has finished (NULL: nothing to do). */
    void (*enter)(void);
    void (*leave)(void);

    /* Layer 0: one row of 64 channels from three rows of pixels (NULL outside the frame). `room` has
     * sp_first_room(width) bytes, aligned to SP_LINE. Weights include the division by 255. */
    void (*first)(const sp_packed *layer, const uint8_t *const pixels[3], uint32_t width, uint8_t *out,
                  size_t out_pitch, void *room);
    /* 3x3, bias, ReLU. */
    void (*conv)(const sp_packed *layer, const sp_strip *strip);
    /* The same and 2x2 maximum. */
    void (*conv_pool)(const sp_packed *layer, const sp_strip *strip);
    /* 1x1 and bias to float32, pixel after pixel, `stride` floats from one to the next; row i goes to out[i]. */
    void (*head)(const sp_packed *layer, const sp_strip *strip, float *const *out, size_t stride);

    /* Softmax of `cells` rows of SP_LOGITS_PADDED logits (overwritten) into 8 rows of scores. */
    void (*scores)(float *logits, uint32_t cells, float *scores, size_t stride);
    /* Scale each of `cells` descriptors to length 1. */
    void (*normalise)(float *descriptors, uint32_t cells);

    /* Multiply and add numbers that stay in registers, as fast as the processor can, `rounds` times;
     * returns how many multiplications that were. `data` are SP_PEAK_BYTES of ordinary numbers of this
     * precision: processors are faster on zeros. What a kernel's speed is measured against. */
    uint64_t (*peak)(const void *data, uint64_t rounds);
} sp_kernels;

/* The set for a precision at a level, or NULL. */
const sp_kernels *sp_kernels_find(sp_cpu_level level, sp_precision precision);

extern const sp_kernels sp_kernels_f32_c;
extern const sp_kernels sp_kernels_f32_avx2;
extern const sp_kernels sp_kernels_f32_avx512;
extern const sp_kernels sp_kernels_f32_neon;
extern const sp_kernels sp_kernels_bf16_vnni;
extern const sp_kernels sp_kernels_bf16_amx;
extern const sp_kernels sp_kernels_int8_vnni;
extern const sp_kernels sp_kernels_int8_amx;

#endif
