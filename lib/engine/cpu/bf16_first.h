/* Layer 0's windows; included by the bf16 kernels, which need AVX-512 with BF16. */
#include <immintrin.h>

#include "engine/cpu/bf16.h"

/* Sixteen pixels as bf16, exact; zeros where `pixels` is NULL, and beyond `left`. */
static inline __m256i pixels_bf16(const uint8_t *pixels, int64_t left) {
    if (!pixels || left <= 0)
        return _mm256_setzero_si256();
    const __mmask16 here = left >= 16 ? 0xffff : (__mmask16)((1u << left) - 1);
    const __m512i wide = _mm512_cvtepu8_epi32(_mm_maskz_loadu_epi8(here, pixels));
    return (__m256i)_mm512_cvtneps_pbh(_mm512_cvtepi32_ps(wide));
}

/* Eight numbers a pixel (see bf16.h), pixel -1 first. Writes (width + 2, rounded up to 16, and 16 more) * 8. */
static void sp_bf16_windows(const uint8_t *const pixels[3], uint32_t width, uint16_t *out) {
    const __m256i one = _mm256_set1_epi16(0x3f80);
    /* pixel -1: only the constant */
    _mm_storeu_si128((__m128i *)out, _mm_set_epi16(0x3f80, 0, 0, 0, 0x3f80, 0, 0, 0));
    out += 8;
    for (uint32_t x = 0; x < width + 2 * SP_BLOCK_PIXELS - 16; x += 16, out += 128) {
        const int64_t left = (int64_t)width - x;
        __m256i row[3];
        for (int i = 0; i < 3; i++)
            row[i] = pixels_bf16(pixels[i] ? pixels[i] + x : NULL, left);
        /* within each half of eight pixels: (above, here) and (below, 1), then four numbers a pixel */
        const __m256i ab_low = _mm256_unpacklo_epi16(row[0], row[1]), ab_high = _mm256_unpackhi_epi16(row[0], row[1]);
        const __m256i c1_low = _mm256_unpacklo_epi16(row[2], one), c1_high = _mm256_unpackhi_epi16(row[2], one);
        const __m256i q[4] = {_mm256_unpacklo_epi32(ab_low, c1_low), _mm256_unpackhi_epi32(ab_low, c1_low),
                              _mm256_unpacklo_epi32(ab_high, c1_high), _mm256_unpackhi_epi32(ab_high, c1_high)};
        for (int i = 0; i < 4; i++) { /* pixels 2i, 2i+1 of each half; each pixel twice */
            __m256i twice_even = _mm256_unpacklo_epi64(q[i], q[i]), twice_odd = _mm256_unpackhi_epi64(q[i], q[i]);
            _mm256_storeu_si256((__m256i *)(out + 16 * i), _mm256_permute2x128_si256(twice_even, twice_odd, 0x20));
            _mm256_storeu_si256((__m256i *)(out + 64 + 16 * i), _mm256_permute2x128_si256(twice_even, twice_odd, 0x31));
        }
    }
}
