/*
 * bf16 on AMX tiles (Sapphire Rapids and later).
 *
 * A block is two rows of 16 pixels by 32 output channels: four accumulator tiles (0...3), for each step of 32 inputs
 * two tiles of pixels (4, 5) and two of weights (6, 7): four loads for four products, half of what the load ports can
 * do while the products run. Two rows make a pooled row, and 32 channels a whole line.
 */
#include "engine/cpu/amx.h"

/* Sixteen pixels' bias: one row, sixteen times. */
#define START(tile, bias) _tile_loadd(tile, bias, 0)

/* The sums of a block into accumulators 0...3: rows y and y+1 at `a`, channels 0...15 and 16...31 of the
 * block at `w` and `w + next`. */
static inline __attribute__((always_inline)) void accumulate(const uint8_t *const *rows, uint32_t x, size_t pitch,
                                                             uint32_t groups, const int kernel, const uint8_t *w,
                                                             size_t next, const float *bias) {
    START(0, bias);
    START(1, bias + 16);
    START(2, bias);
    START(3, bias + 16);
    for (int ky = 0; ky < kernel; ky++) {
        const ptrdiff_t left = ((ptrdiff_t)x - kernel / 2) * SP_LINE;
        const uint8_t *above = rows[ky] + left, *below = rows[ky + 1] + left;
        for (uint32_t g = 0; g < groups; g++, above += pitch, below += pitch)
#pragma GCC unroll 3
            for (int kx = 0; kx < kernel; kx++, w += TILE_BYTES) {
                _tile_loadd(4, above + kx * SP_LINE, SP_LINE);
                _tile_loadd(6, w, SP_LINE);
                _tile_dpbf16ps(0, 4, 6);
                _tile_loadd(7, w + next, SP_LINE);
                _tile_dpbf16ps(1, 4, 7);
                _tile_loadd(5, below + kx * SP_LINE, SP_LINE);
                _tile_dpbf16ps(2, 5, 6);
                _tile_dpbf16ps(3, 5, 7);
            }
    }
}

static inline void store_line(const float *low, const float *high, uint8_t *out) {
    _mm512_store_si512(out, relu_bf16(_mm512_load_ps(low), _mm512_load_ps(high)));
}

static inline __m512 pooled(const float *a, const float *b) {
    return _mm512_max_ps(_mm512_max_ps(_mm512_load_ps(a), _mm512_load_ps(a + 16)),
                         _mm512_max_ps(_mm512_load_ps(b), _mm512_load_ps(b + 16)));
}

static inline __attribute__((always_inline)) void convolve(const sp_packed *packed, const sp_strip *strip,
                                                           const int pool) {
    const uint32_t groups = packed->layer->in / SP_BF16_LANES;
    const size_t next = (size_t)9 * groups * TILE_BYTES;
    const uint8_t *w = packed->weights;
    float *sums = strip->scratch;
    for (uint32_t o = 0; o < packed->layer->out; o += BLOCK_OUTS, w += 2 * next) {
        uint8_t *out[2];
        for (int y = 0; y < 2; y++)
            out[y] = strip->out[y] ? strip->out[y] + o / SP_BF16_LANES * strip->out_pitch : NULL;
        for (uint32_t x = 0; x < strip->width; x += TILE_PIXELS) {
            if (o == 0)
                prefetch_block(strip, x + TILE_PIXELS, groups);
            accumulate(strip->in, x, strip->in_pitch, groups, 3, w, next, packed->bias + o);
            store_sums(sums);
            const uint32_t n = pixels_left(x, strip->width);
            if (pool) {
                for (uint32_t p = 0; p < n; p += 2) {
                    const float *s = sums + p * 16;
                    _mm512_store_si512(
                        out[0] + (size_t)(x + p) / 2 * SP_LINE,
                        relu_bf16(pooled(s, s + 2 * TILE_WORDS), pooled(s + TILE_WORDS, s + 3 * TILE_WORDS)));
                }
                continue;
            }
            for (int y = 0; y < 2 && out[y]; y++)
                for (uint32_t p = 0; p < n; p++) {
                    const float *s = sums + 2 * y * TILE_WORDS + p * 16;
                    store_line(s, s + TILE_WORDS, out[y] + (size_t)(x + p) * SP_LINE);
                }
        }
    }
}

static void conv(const sp_packed *packed, const sp_strip *strip) {
    convolve(packed, strip, 0);
}

static void conv_pool(const sp_packed *packed, const sp_strip *strip) {
    convolve(packed, strip, 1);
}

/* Outputs o...o+31 of a head's second layer; the last 16 of the logits are computed twice over rather
 * than by a kernel of their own. */
static void head(const sp_packed *packed, const sp_strip *strip, float *const *out, size_t stride) {
    const uint32_t groups = packed->layer->in / SP_BF16_LANES;
    const uint32_t outs = (packed->layer->out + SP_OUT_UNIT - 1u) / SP_OUT_UNIT * SP_OUT_UNIT;
    const size_t next = groups * TILE_BYTES;
    float *sums = strip->scratch;
    for (uint32_t at = 0; at < outs; at += BLOCK_OUTS) {
        const uint32_t o = at + BLOCK_OUTS <= outs ? at : outs - BLOCK_OUTS;
        const uint8_t *w = (const uint8_t *)packed->weights + o / SP_OUT_UNIT * next;
        for (uint32_t x = 0; x < strip->width; x += TILE_PIXELS) {
            accumulate(strip->in, x, strip->in_pitch, groups, 1, w, next, packed->bias + o);
            store_sums(sums);
            for (int y = 0; y < 2 && out[y]; y++)
                for (uint32_t p = 0; p < pixels_left(x, strip->width); p++) {
                    const float *s = sums + 2 * y * TILE_WORDS + p * 16;
                    float *to = out[y] + (x + p) * stride + o;
                    _mm512_storeu_ps(to, _mm512_load_ps(s));
                    _mm512_storeu_ps(to + 16, _mm512_load_ps(s + TILE_WORDS));
                }
        }
    }
}

#include "engine/cpu/bf16_first.h"

static void first(const sp_packed *packed, const uint8_t *const pixels[3], uint32_t width, uint8_t *out,
                  size_t out_pitch, void *room) {
    uint16_t *windows = room;
    sp_bf16_windows(pixels, width, windows);
    __asm__ volatile("" ::: "memory"); /* the intrinsic does not say that it reads memory */
    float sums[4 * TILE_WORDS] __attribute__((aligned(SP_LINE)));
    const uint8_t *w = packed->weights;
    _tile_loadd(4, w, SP_LINE);
    _tile_loadd(5, w + TILE_BYTES, SP_LINE);
    _tile_loadd(6, w + 2 * TILE_BYTES, SP_LINE);
    _tile_loadd(7, w + 3 * TILE_BYTES, SP_LINE);
    for (uint32_t x = 0; x < width; x += TILE_PIXELS) {
        /* a row of the tile is the window of one pixel, eight numbers after the one before */
        _tile_loadd(3, windows + (size_t)x * WINDOW, WINDOW * sizeof *windows);
        _tile_zero(0);
        _tile_dpbf16ps(0, 3, 4);
        _tile_zero(1);
        _tile_dpbf16ps(1, 3, 5);
        _tile_zero(2);
        _tile_dpbf16ps(2, 3, 6);
        _tile_stored(0, sums, SP_LINE);
        _tile_stored(1, sums + TILE_WORDS, SP_LINE);
        _tile_zero(0);
        _tile_dpbf16ps(0, 3, 7);
        _tile_stored(2, sums + 2 * TILE_WORDS, SP_LINE);
        _tile_stored(0, sums + 3 * TILE_WORDS, SP_LINE);
        const uint32_t n = pixels_left(x, width);
        for (uint32_t p = 0; p < n; p++) {
            const float *s = sums + p * 16;
            uint8_t *to = out + (size_t)(x + p) * SP_LINE;
            store_line(s, s + TILE_WORDS, to);
            store_line(s + 2 * TILE_WORDS, s + 3 * TILE_WORDS, to + out_pitch);
        }
    }
}

static uint64_t peak(const void *data, uint64_t rounds) {
    const uint8_t *numbers = data;
    _tile_loadd(4, numbers, SP_LINE);
    _tile_loadd(5, numbers + TILE_BYTES, SP_LINE);
    _tile_loadd(6, numbers + 2 * TILE_BYTES, SP_LINE);
    _tile_loadd(7, numbers + 3 * TILE_BYTES, SP_LINE);
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    for (uint64_t i = 0; i < rounds; i++) {
        _tile_dpbf16ps(0, 4, 6);
        _tile_dpbf16ps(1, 4, 7);
        _tile_dpbf16ps(2, 5, 6);
        _tile_dpbf16ps(3, 5, 7);
    }
    return rounds * 4 * TILE_PIXELS * SP_BF16_TILE;
}

#include "engine/cpu/outputs_template.h"

const sp_kernels sp_kernels_bf16_amx = {.level = SP_CPU_AMX,
                                        .precision = SP_PRECISION_BF16,
                                        .lanes = SP_LANES(SP_BF16_LANES),
                                        .rows = 2,
                                        .scratch_bytes = 4 * TILE_WORDS * sizeof(float),
                                        .packed_bytes = sp_bf16_packed_bytes,
                                        .pack = sp_bf16_pack,
                                        .enter = amx_enter,
                                        .leave = amx_leave,
                                        .first = first,
                                        .conv = conv,
                                        .conv_pool = conv_pool,
                                        .head = head,
                                        .scores = scores,
                                        .normalise = normalise,
                                        .peak = peak};
