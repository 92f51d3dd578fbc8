/*
 * Layer 0 from its windows (bf16.h), to bf16 or to bytes. The file that includes this defines
 *   first_enter(weights)                 what is to be done once a row
 *   first_sums(windows, weights, sums)   16 pixels by 64 channels, [quarter of the channels][pixel][channel]
 */
#include "engine/cpu/bf16_first.h"
#include "engine/cpu/block.h"

static inline __attribute__((always_inline)) void first_row(const sp_packed *packed, const uint8_t *const pixels[3],
                                                            uint32_t width, uint8_t *out, size_t out_pitch, void *room,
                                                            const int bytes) {
    uint16_t *windows = room;
    _Alignas(SP_LINE) float sums[4 * BLOCK_WORDS];
    sp_bf16_windows(pixels, width, windows);
    __asm__ volatile("" ::: "memory"); /* the intrinsics of tiles do not say that they read memory */
    first_enter(packed->weights);
    for (uint32_t x = 0; x < width; x += BLOCK_PIXELS) {
        first_sums(windows + (size_t)x * SP_BF16_WINDOW, packed->weights, sums);
        const uint32_t n = pixels_left(x, width);
        for (uint32_t p = 0; p < n; p++) {
            uint8_t *to = out + (size_t)(x + p) * SP_LINE;
            __m512 v[4];
            for (int i = 0; i < 4; i++)
                v[i] = _mm512_load_ps(sums + i * BLOCK_WORDS + p * 16);
            if (bytes) { /* 64 channels are one line */
                _mm256_store_si256((__m256i *)to, to_bytes(v[0], v[1]));
                _mm256_store_si256((__m256i *)to + 1, to_bytes(v[2], v[3]));
            } else {
                _mm512_store_si512(to, relu_bf16(v[0], v[1]));
                _mm512_store_si512(to + out_pitch, relu_bf16(v[2], v[3]));
            }
        }
    }
}
