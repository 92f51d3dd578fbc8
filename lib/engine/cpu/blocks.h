/*
 * Convolutions in blocks of two rows of 16 pixels by 32 output channels, whatever multiplies. The file that includes
 * this needs AVX-512 with BF16 and defines
 *   accumulate(block, kernel, sink, finished, pool, ending)  the sums of a block; it may store some of the one before
 *   PREFETCH        whether the processor has to be told what the next block will read
 */
#include "engine/cpu/store.h"

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

/* Blocks of outputs from `o` on, over the width of the strip. Sums alternate between two rooms. */
static inline __attribute__((always_inline)) void walk_row(block *b, const sp_packed *packed, const sink *to,
                                                           finished *f, const int kernel, const int pool,
                                                           const ending end) {
    const sp_strip *strip = to->strip;
    const bool second_row = end == FLOAT_TO_FLOAT ? to->floats[1] != NULL : strip->out[1] != NULL;
    const uint32_t pixels = pool ? BLOCK_PIXELS / 2 : second_row ? 2 * BLOCK_PIXELS : BLOCK_PIXELS;
    int32_t *const room = strip->scratch;
    b->bias = packed->bias + b->o;
    for (b->x = 0; b->x < strip->width; b->x += BLOCK_PIXELS) {
        if (PREFETCH && kernel == 3 && b->o == 0)
            prefetch_block(strip, b->x + BLOCK_PIXELS, b->groups);
        b->sums = f->sums == room ? room + 4 * BLOCK_WORDS : room;
        accumulate(b, kernel, to, f, pool, end);
        store_some(to, f, f->count, pool, end);
        f->sums = b->sums;
        f->x = b->x;
        f->o = b->o;
        f->next = 0;
        f->count = pixels;
        if (b->x == 0 && end >= INT_TO_BYTES)
            f->s = load_scaling(sp_int8_outputs_of(packed), b->o);
    }
}

/* All outputs of a layer; where they are no multiple of a block, the last 16 of the block before are computed
 * twice over rather than by a kernel of their own. */
static inline __attribute__((always_inline)) void walk(const sp_packed *packed, const sink *to, const int kernel,
                                                       const int pool, const ending end) {
    const sp_layer *layer = packed->layer;
    const uint32_t groups = layer->in / (end >= INT_TO_BYTES ? SP_INT8_LANES : SP_BF16_LANES);
    const uint32_t outs = (layer->out + SP_OUT_UNIT - 1u) / SP_OUT_UNIT * SP_OUT_UNIT;
    block b = {.rows = to->strip->in,
               .pitch = to->strip->in_pitch,
               .groups = groups,
               .next = (size_t)(kernel * kernel) * groups * WEIGHT_BYTES};
    finished f = {.count = 0};
    for (uint32_t at = 0; at < outs; at += BLOCK_OUTS) {
        b.o = at + BLOCK_OUTS <= outs ? at : outs - BLOCK_OUTS;
        b.w = (const uint8_t *)packed->weights + b.o / SP_OUT_UNIT * b.next;
        walk_row(&b, packed, to, &f, kernel, pool, end);
    }
    store_some(to, &f, f.count, pool, end);
}

/* A 3x3 layer. */
static inline __attribute__((always_inline)) void convolve(const sp_packed *packed, const sp_strip *strip,
                                                           const int pool, const ending end) {
    const sink to = {.strip = strip};
    walk(packed, &to, 3, pool, end);
}
