/*
 * From a block's sums to lines. Sums are words of 32 bits, [row][half of the channels][pixel][channel].
 *
 * A block's results need not be stored before the next block is begun: tiles are multiplied by a unit of their own, and
 * what multiplies a block stores the one before a few pixels at a time, while the products run.
 */
#ifndef SP_ENGINE_CPU_STORE_H
#define SP_ENGINE_CPU_STORE_H

#include "engine/cpu/block.h"
#include "engine/cpu/int8.h"

/* What becomes of a block's sums. */
typedef enum ending {
    FLOAT_TO_BF16,  /* the bias is in the sums already */
    FLOAT_TO_FLOAT, /* pixel after pixel: a head's results */
    INT_TO_BYTES,   /* times a factor, plus an offset: sp_int8_outputs */
    INT_TO_BF16
} ending;

typedef struct scaling {
    __m512 factor[2], offset[2];
} scaling;

/* Where a layer's results go, and how. */
typedef struct sink {
    const sp_strip *strip;
    float *const *floats; /* FLOAT_TO_FLOAT: its rows, `stride` floats from pixel to pixel */
    size_t stride;
} sink;

/* A block that has been multiplied, and of which `next` of `count` pixels (of the output) have been stored. */
typedef struct finished {
    const int32_t *sums;
    uint32_t x, o;
    uint32_t next, count;
    scaling s;
} finished;

/* Outputs first...first+31 of a layer in int8. */
static inline scaling load_scaling(const sp_int8_outputs *o, uint32_t first) {
    const scaling s = {{_mm512_loadu_ps(o->factor + first), _mm512_loadu_ps(o->factor + first + 16)},
                       {_mm512_loadu_ps(o->offset + first), _mm512_loadu_ps(o->offset + first + 16)}};
    return s;
}

static inline __m512 scale(__m512i sums, const scaling *s, int half) {
    return _mm512_fmadd_ps(_mm512_cvtepi32_ps(sums), s->factor[half], s->offset[half]);
}

/* Thirty-two channels of one pixel, into a line of bf16 or half a line of bytes. */
static inline __attribute__((always_inline)) void store_line(uint8_t *row, size_t pitch, uint32_t o, uint32_t x,
                                                             __m512i low, __m512i high, const scaling *s,
                                                             const ending end) {
    const __m512 a = end == FLOAT_TO_BF16 ? (__m512)low : scale(low, s, 0);
    const __m512 b = end == FLOAT_TO_BF16 ? (__m512)high : scale(high, s, 1);
    if (end == INT_TO_BYTES)
        _mm256_store_si256((__m256i *)(row + o / SP_INT8_LANES * pitch + (size_t)x * SP_LINE + o % SP_INT8_LANES),
                           to_bytes(a, b));
    else
        _mm512_store_si512(row + o / SP_BF16_LANES * pitch + (size_t)x * SP_LINE, relu_bf16(a, b));
}

/*
 * The largest of two pixels of two rows. Scaling is by positive factors, so that it may be taken before; and as
 * integers, also of floats: those below zero may come in any order, since ReLU makes them all zero.
 */
static inline __m512i pooled(const int32_t *above, const int32_t *below) {
    return _mm512_max_epi32(_mm512_max_epi32(_mm512_load_si512(above), _mm512_load_si512(above + 16)),
                            _mm512_max_epi32(_mm512_load_si512(below), _mm512_load_si512(below + 16)));
}

/* Output pixel i of a block: two rows of 16 pixels, or a row of 8 that are the largest of four. */
static inline __attribute__((always_inline)) void store_pixel(const sink *to, const finished *f, uint32_t i,
                                                              const int pool, const ending end) {
    const sp_strip *strip = to->strip;
    if (pool) {
        const int32_t *above = f->sums + i * 32, *below = above + 2 * BLOCK_WORDS;
        if (2 * i < strip->width - f->x)
            store_line(strip->out[0], strip->out_pitch, f->o, f->x / 2 + i, pooled(above, below),
                       pooled(above + BLOCK_WORDS, below + BLOCK_WORDS), &f->s, end);
        return;
    }
    const uint32_t y = i / BLOCK_PIXELS, p = i % BLOCK_PIXELS;
    if (p >= strip->width - f->x)
        return;
    const int32_t *sums = f->sums + 2 * y * BLOCK_WORDS + p * 16;
    const __m512i low = _mm512_load_si512(sums), high = _mm512_load_si512(sums + BLOCK_WORDS);
    if (end == FLOAT_TO_FLOAT) {
        float *out = to->floats[y] + (f->x + p) * to->stride + f->o;
        _mm512_storeu_si512(out, low);
        _mm512_storeu_si512(out + 16, high);
    } else
        store_line(strip->out[y], strip->out_pitch, f->o, f->x + p, low, high, &f->s, end);
}

/* The next `n` pixels, as far as there are. */
static inline __attribute__((always_inline)) void store_some(const sink *to, finished *f, uint32_t n, const int pool,
                                                             const ending end) {
    const uint32_t until = f->next + n < f->count ? f->next + n : f->count;
    for (uint32_t i = f->next; i < until; i++)
        store_pixel(to, f, i, pool, end);
    f->next = until;
}

#endif
