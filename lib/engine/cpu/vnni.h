/*
 * What the kernels on AVX-512's dot products share (VDPBF16PS, VPDPBUSD: Cooper Lake, Zen 4 and later). Weights are
 * those of the tiles: a row of one is what these instructions take, 16 outputs of a word of two or four inputs.
 */
#ifndef SP_ENGINE_CPU_VNNI_H
#define SP_ENGINE_CPU_VNNI_H

#include <string.h>

#include "engine/cpu/store.h"

enum {
    PREFETCH = 0, /* the processor sees these loads coming */
    /* Pixels in registers: with 32 channels 16 sums, 2 registers of weights, and enough products between two on the
     * same sum (their latency is 4 to 6 cycles, two can start in each). */
    PART = 8,
    /* Words of layer 0's window that have weights: three pixels of eight bf16. */
    FIRST_WORDS = 12
};

/* sums + products of words of `a` and `b`: four bytes each, or two bf16. */
static inline __attribute__((always_inline)) __m512i dot(__m512i sums, __m512i a, __m512i b, const int bytes) {
    return bytes ? _mm512_dpbusd_epi32(sums, a, b) : (__m512i)_mm512_dpbf16_ps((__m512)sums, (__m512bh)a, (__m512bh)b);
}

/* sums[pixel][half] += `words` words of each pixel, `step` bytes apart, times the weights of 16 outputs at `w` and
 * of 16 at `w + next`. */
static inline __attribute__((always_inline)) void dots(__m512i sums[PART][2], const uint8_t *in, const size_t step,
                                                       const uint8_t *w, size_t next, const int words,
                                                       const int bytes) {
    for (int i = 0; i < words; i++, in += sizeof(int32_t), w += SP_LINE) {
        const __m512i low = _mm512_load_si512(w), high = _mm512_load_si512(w + next);
#pragma GCC unroll 8
        for (size_t p = 0; p < PART; p++) {
            int32_t word;
            memcpy(&word, in + p * step, sizeof word);
            const __m512i value = _mm512_set1_epi32(word);
            sums[p][0] = dot(sums[p][0], value, low, bytes);
            sums[p][1] = dot(sums[p][1], value, high, bytes);
        }
    }
}

static inline __attribute__((always_inline)) void start(__m512i sums[PART][2], __m512i low, __m512i high) {
#pragma GCC unroll 8
    for (int p = 0; p < PART; p++) {
        sums[p][0] = low;
        sums[p][1] = high;
    }
}

static inline __attribute__((always_inline)) void finish(__m512i sums[PART][2], int32_t *out) {
#pragma GCC unroll 8
    for (int p = 0; p < PART; p++) {
        _mm512_store_si512(out + p * 16, sums[p][0]);
        _mm512_store_si512(out + BLOCK_WORDS + p * 16, sums[p][1]);
    }
}

/* The sums of a block, in parts of eight pixels of one row. */
static inline __attribute__((always_inline)) void vnni_block(const block *b, const int kernel, const int bytes) {
    const __m512i zero = _mm512_setzero_si512();
    for (int y = 0; y < 2; y++)
        for (uint32_t part = 0; part < BLOCK_PIXELS; part += PART) {
            __m512i sums[PART][2];
            start(sums, bytes ? zero : _mm512_loadu_si512(b->bias), bytes ? zero : _mm512_loadu_si512(b->bias + 16));
            const uint8_t *w = b->w;
            for (int ky = 0; ky < kernel; ky++) {
                const uint8_t *in = b->rows[ky + y] + ((ptrdiff_t)b->x + part - kernel / 2) * SP_LINE;
                for (uint32_t g = 0; g < b->groups; g++, in += b->pitch)
                    for (int kx = 0; kx < kernel; kx++, w += WEIGHT_BYTES)
                        dots(sums, in + kx * SP_LINE, SP_LINE, w, b->next, SP_LINE / sizeof(int32_t), bytes);
            }
            finish(sums, b->sums + 2 * y * BLOCK_WORDS + part * 16);
        }
}

static inline void first_enter(const void *weights) {
    (void)weights;
}

static inline void first_sums(const uint16_t *windows, const void *weights, float *out) {
    const uint8_t *in = (const uint8_t *)windows, *w = weights;
    const size_t step = SP_BF16_WINDOW * sizeof *windows;
    for (size_t half = 0; half < 2; half++)
        for (size_t part = 0; part < BLOCK_PIXELS; part += PART) {
            __m512i sums[PART][2];
            start(sums, _mm512_setzero_si512(), _mm512_setzero_si512());
            dots(sums, in + part * step, step, w + 2 * half * WEIGHT_BYTES, WEIGHT_BYTES, FIRST_WORDS, 0);
            finish(sums, (int32_t *)out + 2 * half * BLOCK_WORDS + part * 16);
        }
}

/* Twelve sums, as in f32_template.h; returns how many words were multiplied. */
static inline __attribute__((always_inline)) uint64_t vnni_peak(const void *data, uint64_t rounds, const int bytes) {
    const __m512i a = _mm512_loadu_si512(data), b = _mm512_loadu_si512((const char *)data + SP_LINE);
    __m512i sums[12];
#pragma GCC unroll 12
    for (int i = 0; i < 12; i++)
        sums[i] = _mm512_setzero_si512();
    for (uint64_t round = 0; round < rounds; round++)
#pragma GCC unroll 12
        for (int i = 0; i < 12; i++) {
            sums[i] = dot(sums[i], a, b, bytes);
            __asm__ volatile("" : "+v"(sums[i])); /* each product anew */
        }
    return rounds * 12 * 16;
}

#endif
