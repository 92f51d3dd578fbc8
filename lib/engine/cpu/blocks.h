/*
 * Convolutions in blocks of two rows of 16 pixels by 32 output channels, whatever multiplies: the walk over a
 * strip's blocks, and the way from a block's sums to lines. The file that includes this needs AVX-512 with BF16 and
 * defines accumulate(block, kernel)  the sums of a block, in words of 32 bits, [row][half of the
 * channels][pixel][channel] PREFETCH                   whether the processor has to be told what the next block will
 * read
 */
#include "engine/cpu/block.h"
#include "engine/cpu/int8.h"

/* What becomes of a block's sums. */
typedef enum ending {
    FLOAT_TO_BF16, /* the bias is in the sums already */
    INT_TO_BYTES,  /* times a factor, plus an offset: sp_int8_outputs */
    INT_TO_BF16
} ending;

typedef struct scaling {
    __m512 factor[2], offset[2];
} scaling;

/* Outputs first...first+31 of a layer in int8. */
static inline scaling load_scaling(const sp_int8_outputs *o, uint32_t first) {
    const scaling s = {{_mm512_loadu_ps(o->factor + first), _mm512_loadu_ps(o->factor + first + 16)},
                       {_mm512_loadu_ps(o->offset + first), _mm512_loadu_ps(o->offset + first + 16)}};
    return s;
}

static inline scaling no_scaling(void) {
    const __m512 zero = _mm512_setzero_ps();
    const scaling s = {{zero, zero}, {zero, zero}};
    return s;
}

static inline __m512 scale(__m512i sums, const scaling *s, int half) {
    return _mm512_fmadd_ps(_mm512_cvtepi32_ps(sums), s->factor[half], s->offset[half]);
}

/* Thirty-two channels of one pixel, into a line of bf16 or half a line of bytes. */
static inline __attribute__((always_inline)) void store_pixel(uint8_t *row, size_t pitch, uint32_t o, uint32_t x,
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

static inline __attribute__((always_inline)) void store_block(const sp_strip *strip, const int32_t *sums, uint32_t o,
                                                              uint32_t x, const scaling *s, const int pool,
                                                              const ending end) {
    const uint32_t n = pixels_left(x, strip->width);
    for (uint32_t p = 0; pool && p < n; p += 2) {
        const int32_t *above = sums + p * 16, *below = above + 2 * BLOCK_WORDS;
        store_pixel(strip->out[0], strip->out_pitch, o, (x + p) / 2, pooled(above, below),
                    pooled(above + BLOCK_WORDS, below + BLOCK_WORDS), s, end);
    }
    for (int y = 0; !pool && y < 2 && strip->out[y]; y++)
        for (uint32_t p = 0; p < n; p++) {
            const int32_t *low = sums + 2 * y * BLOCK_WORDS + p * 16;
            store_pixel(strip->out[y], strip->out_pitch, o, x + p, _mm512_load_si512(low),
                        _mm512_load_si512(low + BLOCK_WORDS), s, end);
        }
}

/* Ask for the next block's pixels of the strip's two newest rows; the older ones have been read for the strip
 * above. */
static inline void prefetch_block(const sp_strip *strip, uint32_t x, uint32_t groups) {
    for (uint32_t g = 0; g < groups; g++)
        for (uint32_t p = 0; p < BLOCK_PIXELS && x + p < strip->width; p++) {
            const size_t at = g * strip->in_pitch + (size_t)(x + p) * SP_LINE;
            _mm_prefetch((const char *)strip->in[2] + at, _MM_HINT_T0);
            _mm_prefetch((const char *)strip->in[3] + at, _MM_HINT_T0);
        }
}

/* A 3x3 layer. */
static inline __attribute__((always_inline)) void convolve(const sp_packed *packed, const sp_strip *strip,
                                                           const int pool, const ending end) {
    const sp_layer *layer = packed->layer;
    const uint32_t groups = layer->in / (end == FLOAT_TO_BF16 ? SP_BF16_LANES : SP_INT8_LANES);
    block b = {.rows = strip->in,
               .pitch = strip->in_pitch,
               .groups = groups,
               .w = packed->weights,
               .next = (size_t)9 * groups * WEIGHT_BYTES,
               .sums = strip->scratch};
    for (b.o = 0; b.o < layer->out; b.o += BLOCK_OUTS, b.w += 2 * b.next) {
        b.bias = packed->bias + b.o;
        const scaling s = end == FLOAT_TO_BF16 ? no_scaling() : load_scaling(sp_int8_outputs_of(packed), b.o);
        for (b.x = 0; b.x < strip->width; b.x += BLOCK_PIXELS) {
            if (PREFETCH && b.o == 0)
                prefetch_block(strip, b.x + BLOCK_PIXELS, groups);
            accumulate(&b, 3);
            store_block(strip, b.sums, b.o, b.x, &s, pool, end);
        }
    }
}
