/* A block of a convolution (blocks.h), for what multiplies it: amx.h, vnni.h. */
#ifndef SP_ENGINE_CPU_BLOCK_H
#define SP_ENGINE_CPU_BLOCK_H

#include "engine/cpu/bf16.h"
#include "engine/cpu/vec_avx512.h"

enum {
    BLOCK_PIXELS = 16, /* of each of two rows */
    BLOCK_OUTS = 32,
    BLOCK_WORDS = 256,  /* a quarter of the sums: 16 pixels by 16 channels */
    WEIGHT_BYTES = 1024 /* a tile of weights: 16 words of inputs by 16 outputs */
};

typedef struct block {
    const uint8_t *const *rows; /* of input, from the first one that the upper row needs */
    uint32_t x, o;              /* first pixel and first output */
    size_t pitch;
    uint32_t groups; /* of input channels */
    const uint8_t *w;
    size_t next; /* bytes from the tiles of outputs 0...15 to those of 16...31 */
    const float *bias;
    int32_t *sums;
} block;

static inline uint32_t pixels_left(uint32_t x, uint32_t width) {
    return width - x < BLOCK_PIXELS ? width - x : BLOCK_PIXELS;
}

/* Thirty-two channels to bf16, negative ones to zero: as integers, those below zero are the ones
 * with a sign. */
static inline __m512i relu_bf16(__m512 low, __m512 high) {
    return _mm512_max_epi16((__m512i)_mm512_cvtne2ps_pbh(high, low), _mm512_setzero_si512());
}

/* Thirty-two channels to bytes: rounded, and cut to 0...255. */
static inline __m256i to_bytes(__m512 low, __m512 high) {
    const __m512i words = _mm512_packs_epi32(_mm512_cvtps_epi32(low), _mm512_cvtps_epi32(high));
    return _mm512_cvtusepi16_epi8(_mm512_max_epi16(words, _mm512_setzero_si512()));
}

#endif
