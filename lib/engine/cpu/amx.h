/* What the kernels on AMX tiles share (Sapphire Rapids and later). Included by files that are built for AMX. */
#ifndef SP_ENGINE_CPU_AMX_H
#define SP_ENGINE_CPU_AMX_H

#include "engine/cpu/store.h"

enum {
    PREFETCH = 1 /* tile loads do not set off the processor's own */
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

/* Tiles 4...7 from memory, one after another. */
static inline void load_tiles(const uint8_t *from) {
    _tile_loadd(4, from, SP_LINE);
    _tile_loadd(5, from + WEIGHT_BYTES, SP_LINE);
    _tile_loadd(6, from + 2 * WEIGHT_BYTES, SP_LINE);
    _tile_loadd(7, from + 3 * WEIGHT_BYTES, SP_LINE);
}

/*
 * The sums of a block: four accumulators (0...3), for each step of 64 bytes of inputs two tiles of pixels (4, 5)
 * and two of weights (6, 7): four loads for four products, half of what the load ports can do while the products
 * run. START(tile, half) sets an accumulator off, MULTIPLY(tile, a, b) is the product; BETWEEN is done after every
 * `kernel` steps.
 */
#define AMX_BLOCK(b, kernel, START, MULTIPLY, BETWEEN)                                                                 \
    do {                                                                                                               \
        const uint8_t *w = (b)->w;                                                                                     \
        START(0, 0);                                                                                                   \
        START(1, 1);                                                                                                   \
        START(2, 0);                                                                                                   \
        START(3, 1);                                                                                                   \
        for (int ky = 0; ky < (kernel); ky++) {                                                                        \
            const ptrdiff_t left = ((ptrdiff_t)(b)->x - (kernel) / 2) * SP_LINE;                                       \
            const uint8_t *above = (b)->rows[ky] + left, *below = (b)->rows[ky + 1] + left;                            \
            for (uint32_t g = 0; g < (b)->groups; g++, above += (b)->pitch, below += (b)->pitch) {                     \
                _Pragma("GCC unroll 3") for (int kx = 0; kx < (kernel); kx++, w += WEIGHT_BYTES) {                     \
                    _tile_loadd(4, above + kx * SP_LINE, SP_LINE);                                                     \
                    _tile_loadd(6, w, SP_LINE);                                                                        \
                    MULTIPLY(0, 4, 6);                                                                                 \
                    _tile_loadd(7, w + (b)->next, SP_LINE);                                                            \
                    MULTIPLY(1, 4, 7);                                                                                 \
                    _tile_loadd(5, below + kx * SP_LINE, SP_LINE);                                                     \
                    MULTIPLY(2, 5, 6);                                                                                 \
                    MULTIPLY(3, 5, 7);                                                                                 \
                }                                                                                                      \
                BETWEEN;                                                                                               \
            }                                                                                                          \
        }                                                                                                              \
        uint8_t *sums = (uint8_t *)(b)->sums;                                                                          \
        _tile_stored(0, sums, SP_LINE);                                                                                \
        _tile_stored(1, sums + WEIGHT_BYTES, SP_LINE);                                                                 \
        _tile_stored(2, sums + 2 * WEIGHT_BYTES, SP_LINE);                                                             \
        _tile_stored(3, sums + 3 * WEIGHT_BYTES, SP_LINE);                                                             \
    } while (0)

/* Pixels of the block before to store between steps, so that all of them are by the last. */
static inline uint32_t share_of(const finished *f, const block *b, int kernel) {
    const uint32_t times = (uint32_t)kernel * b->groups;
    return (f->count + times - 1) / times;
}

/* How fast products of tiles that stay where they are can be: four accumulators, as in a block. */
#define AMX_PEAK(data, rounds, MULTIPLY)                                                                               \
    do {                                                                                                               \
        load_tiles(data);                                                                                              \
        _tile_zero(0);                                                                                                 \
        _tile_zero(1);                                                                                                 \
        _tile_zero(2);                                                                                                 \
        _tile_zero(3);                                                                                                 \
        for (uint64_t i = 0; i < (rounds); i++) {                                                                      \
            MULTIPLY(0, 4, 6);                                                                                         \
            MULTIPLY(1, 4, 7);                                                                                         \
            MULTIPLY(2, 5, 6);                                                                                         \
            MULTIPLY(3, 5, 7);                                                                                         \
        }                                                                                                              \
    } while (0)

/* Layer 0's 64 outputs stay in tiles 4...7. */
static inline void first_enter(const void *weights) {
    load_tiles(weights);
}

static inline void first_sums(const uint16_t *windows, const void *weights, float *sums) {
    (void)weights;
    /* a row of the tile is the window of one pixel, eight numbers after the one before */
    _tile_loadd(3, windows, SP_BF16_WINDOW * sizeof *windows);
    _tile_zero(0);
    _tile_dpbf16ps(0, 3, 4);
    _tile_zero(1);
    _tile_dpbf16ps(1, 3, 5);
    _tile_zero(2);
    _tile_dpbf16ps(2, 3, 6);
    _tile_stored(0, sums, SP_LINE);
    _tile_stored(1, sums + BLOCK_WORDS, SP_LINE);
    _tile_zero(0);
    _tile_dpbf16ps(0, 3, 7);
    _tile_stored(2, sums + 2 * BLOCK_WORDS, SP_LINE);
    _tile_stored(0, sums + 3 * BLOCK_WORDS, SP_LINE);
}

#endif
