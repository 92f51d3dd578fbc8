/* What the kernels on AMX tiles share. Included by files that are built for AMX. */
#ifndef SP_ENGINE_CPU_AMX_H
#define SP_ENGINE_CPU_AMX_H

#include "engine/cpu/bf16.h"
#include "engine/cpu/vec_avx512.h"

enum {
    TILE_PIXELS = 16,
    TILE_WORDS = 256,  /* sums in a tile: 16 pixels by 16 channels of 32 bits */
    TILE_BYTES = 1024, /* of any tile */
    BLOCK_OUTS = 32,
    WINDOW = 8 /* numbers for each pixel in layer 0's window */
};

/* LDTILECFG's operand (Intel SDM vol. 1, 18.4): palette 1, all eight tiles 16 rows of 64 bytes. A constant,
 * since the compiler's intrinsic does not say that it reads more than its first bytes. */
static const struct tile_config {
    uint8_t palette, start_row, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
} config = {.palette = 1,
            .row_bytes = {SP_LINE, SP_LINE, SP_LINE, SP_LINE, SP_LINE, SP_LINE, SP_LINE, SP_LINE},
            .rows = {16, 16, 16, 16, 16, 16, 16, 16}};

static inline void amx_enter(void) {
    _tile_loadconfig(&config);
}

static inline void amx_leave(void) {
    _tile_release();
}

/* Accumulators 0...3 to memory, one after another. */
static inline void store_sums(void *sums) {
    _tile_stored(0, sums, SP_LINE);
    _tile_stored(1, (char *)sums + TILE_BYTES, SP_LINE);
    _tile_stored(2, (char *)sums + 2 * TILE_BYTES, SP_LINE);
    _tile_stored(3, (char *)sums + 3 * TILE_BYTES, SP_LINE);
}

/* Thirty-two channels to bf16, negative ones to zero: as integers, those below zero are the ones
 * with a sign. */
static inline __m512i relu_bf16(__m512 low, __m512 high) {
    return _mm512_max_epi16((__m512i)_mm512_cvtne2ps_pbh(high, low), _mm512_setzero_si512());
}

/*
 * Ask for the next block's pixels of the strip's two newest rows; the older ones have been read for the
 * strip above. Tile loads do not set off the processor's own prefetching.
 */
static inline void prefetch_block(const sp_strip *strip, uint32_t x, uint32_t groups) {
    for (uint32_t g = 0; g < groups; g++)
        for (uint32_t p = 0; p < TILE_PIXELS && x + p < strip->width; p++) {
            const size_t at = g * strip->in_pitch + (size_t)(x + p) * SP_LINE;
            _mm_prefetch((const char *)strip->in[2] + at, _MM_HINT_T0);
            _mm_prefetch((const char *)strip->in[3] + at, _MM_HINT_T0);
        }
}

static inline uint32_t pixels_left(uint32_t x, uint32_t width) {
    return width - x < TILE_PIXELS ? width - x : TILE_PIXELS;
}

#endif
