/*
 * AVX2. Weights of 22 bits do not fit the 16-bit multiplier: each is split in two parts, high * 2^11 + low, whose
 * products are summed apart and joined at the end. All sums are exact, so their order does not matter.
 */
#include "image/kernels_x86.h"

#if defined(__x86_64__)

#include <immintrin.h>

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/size.h"

#define AVX2 __attribute__((target("avx2")))

enum { LOW_BITS = 11, LANES = 8 };

/*
 * Weights in the shape that resample_row wants: in blocks of eight inputs from start[i] on, which is chosen so that no
 * block reads over the end of the row. For outputs i and i + 1, i even, and each block: eight low parts of i, eight of
 * i + 1, eight high parts of i, eight of i + 1. Outputs are padded to eight.
 */
typedef struct packed_filter {
    uint32_t blocks, padded;
    uint32_t *start;
    int16_t *split;
    max_align_t memory[];
} packed_filter;

static void pack_output(const sp_filter *f, packed_filter *p, uint32_t i) {
    const uint32_t span = p->blocks * LANES;
    p->start[i] = f->first[i] < f->in - span ? f->first[i] : f->in - span;
    for (uint32_t t = 0; t < f->count[i]; t++) {
        const uint32_t at = f->first[i] - p->start[i] + t;
        const int32_t w = f->weights[(size_t)i * f->taps + t];
        int16_t *block = p->split + ((size_t)(i / 2) * p->blocks + at / LANES) * 4 * LANES;
        block += (i & 1) * LANES + at % LANES;
        block[0] = (int16_t)(w & ((1 << LOW_BITS) - 1));
        block[2 * LANES] = (int16_t)(w >> LOW_BITS);
    }
}

/* (high * 2^11 + low + half) >> 22 of eight sums. */
AVX2 static inline __m256i join(__m256i low, __m256i high) {
    const __m256i half = _mm256_set1_epi32(1 << (SP_WEIGHT_BITS - 1));
    __m256i sum = _mm256_add_epi32(_mm256_add_epi32(low, half), _mm256_slli_epi32(high, LOW_BITS));
    return _mm256_srai_epi32(sum, SP_WEIGHT_BITS);
}

/* Eight 16-bit pixels from each of two places. */
AVX2 static inline __m256i load_pair(const uint8_t *a, const uint8_t *b) {
    const __m128i bytes = _mm_unpacklo_epi64(_mm_loadl_epi64((const __m128i *)a), _mm_loadl_epi64((const __m128i *)b));
    return _mm256_cvtepu8_epi16(bytes);
}

/* Partial sums of outputs i and i + 1, four 32-bit lanes each, over all blocks of eight inputs. */
AVX2 static inline __m256i dot_pair(const packed_filter *f, const uint8_t *in, size_t i) {
    const int16_t *w = f->split + i * f->blocks * 2 * LANES; /* of a pair: low, low, high, high for each block */
    const uint8_t *a = in + f->start[i], *b = in + f->start[i + 1];
    __m256i low = _mm256_setzero_si256(), high = low;
    for (uint32_t k = 0; k < f->blocks; k++, a += LANES, b += LANES, w += 4 * LANES) {
        const __m256i pixels = load_pair(a, b);
        low = _mm256_add_epi32(low, _mm256_madd_epi16(pixels, _mm256_loadu_si256((const __m256i *)w)));
        high = _mm256_add_epi32(high, _mm256_madd_epi16(pixels, _mm256_loadu_si256((const __m256i *)(w + 2 * LANES))));
    }
    return _mm256_add_epi32(low, _mm256_slli_epi32(high, LOW_BITS));
}

/* Eight outputs at a time; the last ones by way of a buffer. */
AVX2 static void resample_row(const sp_filter *f, const uint8_t *in, uint8_t *out) {
    const packed_filter *p = f->packed;
    const __m256i half = _mm256_set1_epi32(1 << (SP_WEIGHT_BITS - 1));
    const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    for (size_t i = 0; i < p->padded; i += LANES) {
        const __m256i a = _mm256_hadd_epi32(dot_pair(p, in, i), dot_pair(p, in, i + 2));
        const __m256i b = _mm256_hadd_epi32(dot_pair(p, in, i + 4), dot_pair(p, in, i + 6));
        __m256i sum = _mm256_hadd_epi32(a, b); /* 0 2 4 6 | 1 3 5 7 */
        sum = _mm256_srai_epi32(_mm256_add_epi32(sum, half), SP_WEIGHT_BITS);
        sum = _mm256_permutevar8x32_epi32(sum, order);
        const __m128i words = _mm_packs_epi32(_mm256_castsi256_si128(sum), _mm256_extracti128_si256(sum, 1));
        const __m128i bytes = _mm_packus_epi16(words, words);
        if (i + LANES <= f->out) {
            _mm_storel_epi64((__m128i *)(out + i), bytes);
        } else {
            uint8_t last[LANES];
            _mm_storel_epi64((__m128i *)last, bytes);
            memcpy(out + i, last, f->out - i);
        }
    }
}

bool sp_image_choose_row_avx2(sp_filter *f) {
    uint32_t most = 0;
    for (uint32_t i = 0; i < f->out; i++)
        most = f->count[i] > most ? f->count[i] : most;
    const uint32_t blocks = (most + LANES - 1) / LANES, padded = (uint32_t)sp_round_up(f->out, LANES);
    if (f->in < blocks * LANES) /* a short row */
        return sp_image_kernels_c.choose_row(f);
    const size_t split = (size_t)padded * blocks * 2 * LANES * sizeof(int16_t);
    packed_filter *p = calloc(1, sizeof *p + split + padded * sizeof *p->start);
    if (!p)
        return false;
    p->blocks = blocks;
    p->padded = padded;
    p->split = (int16_t *)p->memory;
    p->start = (uint32_t *)((uint8_t *)p->memory + split);
    for (uint32_t i = 0; i < f->out; i++)
        pack_output(f, p, i);
    f->packed = p;
    f->row = resample_row;
    return true;
}

/* Sixteen columns. Two rows at a time: their pixels side by side meet their two weights in one multiplication. */
AVX2 static inline void columns_16(const uint8_t *const *rows, const int32_t *weights, uint32_t count, size_t x,
                                   uint8_t *out) {
    __m256i low0 = _mm256_setzero_si256(), low1 = low0, high0 = low0, high1 = low0;
    for (uint32_t t = 0; t < count; t += 2) {
        const bool both = t + 1 < count;
        const __m128i a = _mm_loadu_si128((const __m128i *)(rows[t] + x));
        const __m128i b = both ? _mm_loadu_si128((const __m128i *)(rows[t + 1] + x)) : a;
        const uint32_t u = (uint32_t)weights[t], v = both ? (uint32_t)weights[t + 1] : 0;
        const uint32_t mask = (1u << LOW_BITS) - 1;
        const __m256i wl = _mm256_set1_epi32((int32_t)((v & mask) << 16 | (u & mask)));
        const __m256i wh = _mm256_set1_epi32((int32_t)((v >> LOW_BITS) << 16 | u >> LOW_BITS));
        const __m256i p0 = _mm256_cvtepu8_epi16(_mm_unpacklo_epi8(a, b));
        const __m256i p1 = _mm256_cvtepu8_epi16(_mm_unpackhi_epi8(a, b));
        low0 = _mm256_add_epi32(low0, _mm256_madd_epi16(p0, wl));
        low1 = _mm256_add_epi32(low1, _mm256_madd_epi16(p1, wl));
        high0 = _mm256_add_epi32(high0, _mm256_madd_epi16(p0, wh));
        high1 = _mm256_add_epi32(high1, _mm256_madd_epi16(p1, wh));
    }
    __m256i words = _mm256_packs_epi32(join(low0, high0), join(low1, high1));
    words = _mm256_permute4x64_epi64(words, 0xD8);
    const __m128i bytes = _mm_packus_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
    _mm_storeu_si128((__m128i *)out, bytes);
}

AVX2 void sp_image_resample_columns_avx2(const uint8_t *const *rows, const int32_t *weights, uint32_t count, size_t n,
                                         uint8_t *out) {
    if (n < 16) {
        sp_image_kernels_c.resample_columns(rows, weights, count, n, out);
        return;
    }
    for (size_t x = 0; x + 16 <= n; x += 16)
        columns_16(rows, weights, count, x, out + x);
    if (n % 16)
        columns_16(rows, weights, count, n - 16, out + n - 16); /* some of them again */
}

AVX2 static inline __m256i load_words(const uint8_t *p) {
    return _mm256_cvtepu8_epi16(_mm_loadu_si128((const __m128i *)p));
}

/* Sixteen even and sixteen odd words, all below 256, to 32 bytes in turn. */
AVX2 static inline void store_in_turn(uint8_t *out, __m256i even, __m256i odd) {
    _mm256_storeu_si256((__m256i *)out, _mm256_or_si256(even, _mm256_slli_epi16(odd, 8)));
}

AVX2 void sp_image_upsample_h2v1_avx2(const uint8_t *in, size_t n, uint8_t *out) {
    const __m256i three = _mm256_set1_epi16(3), one = _mm256_set1_epi16(1), two = _mm256_set1_epi16(2);
    size_t i = 1;
    for (; i + 17 <= n; i += 16) {
        const __m256i here = _mm256_mullo_epi16(load_words(in + i), three);
        const __m256i even = _mm256_add_epi16(_mm256_add_epi16(here, load_words(in + i - 1)), one);
        const __m256i odd = _mm256_add_epi16(_mm256_add_epi16(here, load_words(in + i + 1)), two);
        store_in_turn(out + 2 * i, _mm256_srli_epi16(even, 2), _mm256_srli_epi16(odd, 2));
    }
    out[0] = in[0];
    out[1] = (uint8_t)((3 * in[0] + in[1] + 2) >> 2);
    for (; i + 1 < n; i++) {
        out[2 * i] = (uint8_t)((3 * in[i] + in[i - 1] + 1) >> 2);
        out[2 * i + 1] = (uint8_t)((3 * in[i] + in[i + 1] + 2) >> 2);
    }
    out[2 * n - 2] = (uint8_t)((3 * in[n - 1] + in[n - 2] + 1) >> 2);
    out[2 * n - 1] = in[n - 1];
}

/* 3 near + far of sixteen columns. */
AVX2 static inline __m256i column_sums(const uint8_t *near, const uint8_t *far) {
    const __m256i a = load_words(near);
    return _mm256_add_epi16(_mm256_add_epi16(_mm256_add_epi16(a, a), a), load_words(far));
}

static inline uint32_t column_sum(const uint8_t *near, const uint8_t *far, size_t i) {
    return 3u * near[i] + far[i];
}

AVX2 void sp_image_upsample_h2v2_avx2(const uint8_t *near, const uint8_t *far, size_t n, uint8_t *out) {
    const __m256i eight = _mm256_set1_epi16(8), seven = _mm256_set1_epi16(7);
    size_t i = 1;
    for (; i + 17 <= n; i += 16) {
        const __m256i sum = column_sums(near + i, far + i);
        const __m256i here = _mm256_add_epi16(_mm256_add_epi16(sum, sum), sum);
        const __m256i before = column_sums(near + i - 1, far + i - 1), after = column_sums(near + i + 1, far + i + 1);
        const __m256i even = _mm256_add_epi16(_mm256_add_epi16(here, before), eight);
        const __m256i odd = _mm256_add_epi16(_mm256_add_epi16(here, after), seven);
        store_in_turn(out + 2 * i, _mm256_srli_epi16(even, 4), _mm256_srli_epi16(odd, 4));
    }
    const uint32_t first = column_sum(near, far, 0), last = column_sum(near, far, n - 1);
    out[0] = (uint8_t)((4 * first + 8) >> 4);
    out[1] = (uint8_t)((3 * first + column_sum(near, far, 1) + 7) >> 4);
    for (; i + 1 < n; i++) {
        const uint32_t here = 3 * column_sum(near, far, i);
        out[2 * i] = (uint8_t)((here + column_sum(near, far, i - 1) + 8) >> 4);
        out[2 * i + 1] = (uint8_t)((here + column_sum(near, far, i + 1) + 7) >> 4);
    }
    out[2 * n - 2] = (uint8_t)((3 * last + column_sum(near, far, n - 2) + 8) >> 4);
    out[2 * n - 1] = (uint8_t)((4 * last + 7) >> 4);
}

/*
 * (91881 x + 2^15) >> 16 with x = cr - 128: 91881 = 65536 + 26345, so it is x plus the high half of 26345 x, plus one
 * where the low half is 2^15 or more.
 */
AVX2 static inline __m256i red_offset(__m256i cr) {
    const __m256i factor = _mm256_set1_epi16(26345), x = _mm256_sub_epi16(cr, _mm256_set1_epi16(128));
    const __m256i carry = _mm256_srli_epi16(_mm256_mullo_epi16(x, factor), 15);
    return _mm256_add_epi16(_mm256_add_epi16(x, _mm256_mulhi_epi16(x, factor)), carry);
}

AVX2 void sp_image_red_avx2(const uint8_t *y, const uint8_t *cr, size_t n, uint8_t *out) {
    size_t i = 0;
    for (; i + 32 <= n; i += 32) {
        const __m256i a = _mm256_add_epi16(load_words(y + i), red_offset(load_words(cr + i)));
        const __m256i b = _mm256_add_epi16(load_words(y + i + 16), red_offset(load_words(cr + i + 16)));
        const __m256i bytes = _mm256_permute4x64_epi64(_mm256_packus_epi16(a, b), 0xD8);
        _mm256_storeu_si256((__m256i *)(out + i), bytes);
    }
    sp_image_kernels_c.red(y + i, cr + i, n - i, out + i);
}

const sp_image_kernels sp_image_kernels_avx2 = {sp_image_choose_row_avx2, sp_image_resample_columns_avx2,
                                                sp_image_upsample_h2v1_avx2, sp_image_upsample_h2v2_avx2,
                                                sp_image_red_avx2};

#else
typedef int sp_image_no_avx2; /* a file must hold something */
#endif
