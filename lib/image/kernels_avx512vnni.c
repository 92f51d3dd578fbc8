/*
 * AVX-512 with VBMI and VNNI, for rows that shrink to no less than two sevenths: sixteen outputs then lie within 64
 * bytes of the row, have eight inputs at most, and a byte permutation brings these to their places. Weights of 22 bits
 * become three signed digits to the base 256, whose products are summed apart. The rest is the AVX2 set's.
 */
#include "image/kernels_x86.h"

#if defined(__x86_64__)

#include <immintrin.h>

#include <stdlib.h>

#define AVX512 __attribute__((target("avx512f,avx512bw,avx512vl,avx512vbmi,avx512vnni")))

enum { GROUP = 16, WINDOW = 64, MOST_TAPS = 8, HALVES = 2, DIGITS = 3 };

/* Sixteen outputs. Byte 4 j + b of half h belongs to input 4 h + b of output j. */
typedef struct group {
    uint8_t place[HALVES][WINDOW]; /* in the window */
    int8_t weight[DIGITS][HALVES][WINDOW];
    uint32_t start; /* of the window */
} group;

static void pack_output(const sp_filter *f, group *g, uint32_t i) {
    for (uint32_t t = 0; t < MOST_TAPS; t++) {
        const size_t half = t / 4, at = i % GROUP * 4 + t % 4;
        int32_t w = t < f->count[i] ? f->weights[(size_t)i * f->taps + t] : 0;
        g->place[half][at] = (uint8_t)((f->first[i] - g->start + t) % WINDOW);
        for (int d = 0; d < DIGITS; d++) {
            g->weight[d][half][at] = (int8_t)(w & 255);
            w = (w - g->weight[d][half][at]) / 256;
        }
    }
}

static uint32_t group_start(const sp_filter *f, uint32_t i) {
    return f->first[i] < f->in - WINDOW ? f->first[i] : f->in - WINDOW;
}

/* Whether all groups fit their windows. */
static bool suits(const sp_filter *f) {
    if (f->in < WINDOW)
        return false;
    for (uint32_t i = 0; i < f->out; i++)
        if (f->count[i] > MOST_TAPS || f->first[i] + f->count[i] - group_start(f, i - i % GROUP) > WINDOW)
            return false;
    return true;
}

AVX512 static inline __m512i dot(__m512i sum, const __m512i pixels[HALVES], const int8_t weight[HALVES][WINDOW]) {
    sum = _mm512_dpbusd_epi32(sum, pixels[0], _mm512_loadu_si512(weight[0]));
    return _mm512_dpbusd_epi32(sum, pixels[1], _mm512_loadu_si512(weight[1]));
}

AVX512 static void resample_row(const sp_filter *f, const uint8_t *in, uint8_t *out) {
    const group *g = f->packed;
    const __m512i zero = _mm512_setzero_si512(), half = _mm512_set1_epi32(1 << (SP_WEIGHT_BITS - 1));
    for (uint32_t i = 0; i < f->out; i += GROUP, g++) {
        const __m512i window = _mm512_loadu_si512(in + g->start);
        const __m512i pixels[HALVES] = {_mm512_permutexvar_epi8(_mm512_loadu_si512(g->place[0]), window),
                                        _mm512_permutexvar_epi8(_mm512_loadu_si512(g->place[1]), window)};
        __m512i sum = dot(half, pixels, g->weight[0]);
        sum = _mm512_add_epi32(sum, _mm512_slli_epi32(dot(zero, pixels, g->weight[1]), 8));
        sum = _mm512_add_epi32(sum, _mm512_slli_epi32(dot(zero, pixels, g->weight[2]), 16));
        const __m128i bytes = _mm512_cvtusepi32_epi8(_mm512_srli_epi32(sum, SP_WEIGHT_BITS)); /* never negative */
        const uint32_t left = f->out - i;
        _mm_mask_storeu_epi8(out + i, (__mmask16)(left < GROUP ? (1u << left) - 1 : 0xFFFF), bytes);
    }
}

static bool choose_row(sp_filter *f) {
    if (!suits(f))
        return sp_image_choose_row_avx2(f);
    group *groups = calloc((f->out + GROUP - 1) / GROUP, sizeof *groups);
    if (!groups)
        return false;
    for (uint32_t i = 0; i < f->out; i++) {
        group *g = &groups[i / GROUP];
        if (i % GROUP == 0)
            g->start = group_start(f, i);
        pack_output(f, g, i);
    }
    f->packed = groups;
    f->row = resample_row;
    return true;
}

const sp_image_kernels sp_image_kernels_avx512vnni = {choose_row, sp_image_resample_columns_avx2,
                                                      sp_image_upsample_h2v1_avx2, sp_image_upsample_h2v2_avx2,
                                                      sp_image_red_avx2};

#else
typedef int sp_image_no_avx512; /* a file must hold something */
#endif
