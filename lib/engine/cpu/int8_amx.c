/*
 * Mixed precision on AMX tiles: layers 1...5, four fifths of the multiplications, in int8; the first
 * and the last ones in bf16.
 *
 * Between them a channel's numbers are unsigned bytes, in steps that differ from channel to channel (int8_steps). The
 * step of an input channel is folded into the weights that read it, which are then rounded to signed bytes with a step
 * for each output channel; so a sum of products is a number of these steps, exact in 32 bits.
 *
 * In a line of bytes, channel 32b + 16j + 4l + e lies at 32b + 8l + 4j + e: the order in which AVX-512 packs
 * two registers of sixteen. The weights that read it are in the same order.
 */
#include <math.h>
#include <string.h>

#include "engine/cpu/amx.h"
#include "engine/cpu/bf16_first.h"

enum {
    LANES = 64,
    FIRST_INT8 = 1,
    LAST_INT8 = 5, /* its output is bf16 */
    MAX_CHANNELS = 128,
    STEPS = 255 /* of the unsigned bytes */
};

static bool in_int8(int index) {
    return index >= FIRST_INT8 && index <= LAST_INT8;
}

static int index_of(const sp_layer *layer) {
    return (int)(layer - sp_network);
}

/* ---------------------------------------------------------------- packing -------------------- */

/* Behind the tiles of an int8 layer: sum * factor + offset is the result in the output's own steps. */
typedef struct outputs {
    float factor[MAX_CHANNELS], offset[MAX_CHANNELS];
} outputs;

static size_t tiles_bytes(const sp_layer *layer) {
    return (size_t)layer->out * layer->in * 9;
}

static size_t packed_bytes(const sp_layer *layer) {
    return in_int8(index_of(layer)) ? tiles_bytes(layer) + sizeof(outputs) : sp_bf16_packed_bytes(layer);
}

/*
 * The step of each output channel of layer `index`. A channel's range alone would give weights that read a
 * quiet channel too few steps, the same step for all would give quiet channels too few: between the two, a
 * channel's step grows with range^a / weight^(1-a), a = 3/4, where weight is the largest that reads it
 * (Xiao et al., SmoothQuant, arXiv:2211.10438), and no range is cut off.
 */
static void int8_steps(const sp_weights *weights, int index, float *steps) {
    const sp_layer *layer = &sp_network[index], *reader = &sp_network[index + 1];
    float balanced[MAX_CHANNELS], most = 0;
    for (uint32_t c = 0; c < layer->out; c++) {
        float weight = 1e-8f;
        for (uint32_t o = 0; o < reader->out; o++)
            for (uint32_t k = 0; k < 9; k++)
                weight = fmaxf(weight, fabsf(weights->kernel[index + 1][((size_t)o * reader->in + c) * 9 + k]));
        balanced[c] = powf(weights->range[index][c], 0.75f) * powf(weight, -0.25f);
        most = fmaxf(most, weights->range[index][c] / balanced[c]);
    }
    for (uint32_t c = 0; c < layer->out; c++)
        steps[c] = balanced[c] * most / STEPS;
}

/* Channel at place `p` of a line of bytes. */
static uint32_t channel_at(uint32_t p) {
    return p / 32 * 32 + p / 4 % 2 * 16 + p % 32 / 8 * 4 + p % 4;
}

/* The weights of output `o` as signed bytes, [in][9]; returns their step. */
static float round_weights(const sp_layer *layer, const float *kernel, const float *steps, int8_t *out) {
    float largest = 1e-20f;
    for (uint32_t i = 0; i < layer->in * 9u; i++)
        largest = fmaxf(largest, fabsf(kernel[i] * steps[i / 9]));
    for (uint32_t i = 0; i < layer->in * 9u; i++)
        out[i] = (int8_t)lrintf(kernel[i] * steps[i / 9] * (127 / largest));
    return largest / 127;
}

/* Tiles as TDPBUSD takes them, [input / 4][output][4], in the order [output / 16][ky][input / 64][kx]. */
static void pack_int8(const sp_weights *weights, int index, void *packed) {
    const sp_layer *layer = &sp_network[index];
    int8_t *tiles = packed;
    outputs *out = (outputs *)(tiles + tiles_bytes(layer));
    float steps[MAX_CHANNELS], out_steps[MAX_CHANNELS];
    int8_t row[MAX_CHANNELS * 9];
    int8_steps(weights, index - 1, steps);
    for (uint32_t o = 0; o < layer->out; o++)
        out_steps[o] = 1;
    if (index < LAST_INT8)
        int8_steps(weights, index, out_steps);
    const uint32_t groups = layer->in / LANES;
    for (uint32_t o = 0; o < layer->out; o++) {
        const float step = round_weights(layer, weights->kernel[index] + (size_t)o * layer->in * 9, steps, row);
        out->factor[o] = step / out_steps[o];
        out->offset[o] = weights->bias[index][o] / out_steps[o];
        for (uint32_t ky = 0; ky < 3; ky++)
            for (uint32_t g = 0; g < groups; g++)
                for (uint32_t kx = 0; kx < 3; kx++) {
                    int8_t *tile =
                        tiles + (((size_t)(o / 16) * 3 + ky) * groups + g) * 3 * TILE_BYTES + kx * TILE_BYTES;
                    for (uint32_t p = 0; p < LANES; p++)
                        tile[p / 4 * 64 + o % 16 * 4 + p % 4] = row[(g * LANES + channel_at(p)) * 9 + ky * 3 + kx];
                }
    }
}

/* Layer 0 in steps of its outputs. */
static void pack_first(const sp_weights *weights, void *packed) {
    float kernel[64 * 9], bias[64], steps[MAX_CHANNELS];
    int8_steps(weights, 0, steps);
    for (uint32_t o = 0; o < 64; o++) {
        for (uint32_t k = 0; k < 9; k++)
            kernel[o * 9 + k] = weights->kernel[0][o * 9 + k] / steps[o];
        bias[o] = weights->bias[0][o] / steps[o];
    }
    sp_bf16_pack_first(kernel, bias, packed);
}

static void pack(const sp_weights *weights, int index, void *packed) {
    if (index == 0)
        pack_first(weights, packed);
    else if (in_int8(index))
        pack_int8(weights, index, packed);
    else
        sp_bf16_pack(weights, index, packed);
}

/* ---------------------------------------------------------------- kernels -------------------- */

/* The sums of a block into accumulators 0...3, as in bf16_amx.c. */
static inline __attribute__((always_inline)) void accumulate(const uint8_t *const *rows, uint32_t x, size_t pitch,
                                                             uint32_t groups, const int8_t *w, size_t next) {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    for (int ky = 0; ky < 3; ky++) {
        const ptrdiff_t left = ((ptrdiff_t)x - 1) * SP_LINE;
        const uint8_t *above = rows[ky] + left, *below = rows[ky + 1] + left;
        for (uint32_t g = 0; g < groups; g++, above += pitch, below += pitch)
#pragma GCC unroll 3
            for (int kx = 0; kx < 3; kx++, w += TILE_BYTES) {
                _tile_loadd(4, above + kx * SP_LINE, SP_LINE);
                _tile_loadd(6, w, SP_LINE);
                _tile_dpbusd(0, 4, 6);
                _tile_loadd(7, w + next, SP_LINE);
                _tile_dpbusd(1, 4, 7);
                _tile_loadd(5, below + kx * SP_LINE, SP_LINE);
                _tile_dpbusd(2, 5, 6);
                _tile_dpbusd(3, 5, 7);
            }
    }
}

/* Thirty-two channels' results to bytes: rounded, and cut to 0...255. */
static inline __m256i to_bytes(__m512 low, __m512 high) {
    const __m512i words = _mm512_packs_epi32(_mm512_cvtps_epi32(low), _mm512_cvtps_epi32(high));
    return _mm512_cvtusepi16_epi8(_mm512_max_epi16(words, _mm512_setzero_si512()));
}

typedef struct scaling {
    __m512 factor[2], offset[2];
} scaling;

static inline scaling load_scaling(const outputs *o, uint32_t first) {
    const scaling s = {{_mm512_loadu_ps(o->factor + first), _mm512_loadu_ps(o->factor + first + 16)},
                       {_mm512_loadu_ps(o->offset + first), _mm512_loadu_ps(o->offset + first + 16)}};
    return s;
}

static inline __m512 scale(__m512i sums, const scaling *s, int half) {
    return _mm512_fmadd_ps(_mm512_cvtepi32_ps(sums), s->factor[half], s->offset[half]);
}

/* The larger of four sums: two pixels of two rows. Steps are positive, so that it may be taken before scaling. */
static inline __m512i pooled(const int32_t *a, const int32_t *b) {
    return _mm512_max_epi32(_mm512_max_epi32(_mm512_load_si512(a), _mm512_load_si512(a + 16)),
                            _mm512_max_epi32(_mm512_load_si512(b), _mm512_load_si512(b + 16)));
}

/* Store the block's 32 channels of one pixel, into a line of bytes or a line of bf16. */
static inline void store_pixel(uint8_t *row, size_t pitch, uint32_t o, uint32_t x, __m512 low, __m512 high,
                               const int bytes) {
    if (bytes)
        _mm256_store_si256((__m256i *)(row + o / LANES * pitch + (size_t)x * SP_LINE + o % LANES), to_bytes(low, high));
    else
        _mm512_store_si512(row + o / SP_BF16_LANES * pitch + (size_t)x * SP_LINE, relu_bf16(low, high));
}

static inline __attribute__((always_inline)) void convolve(const sp_packed *packed, const sp_strip *strip,
                                                           const int pool, const int bytes) {
    const sp_layer *layer = packed->layer;
    const uint32_t groups = layer->in / LANES;
    const size_t next = (size_t)9 * groups * TILE_BYTES;
    const int8_t *w = packed->weights;
    const outputs *out = (const outputs *)(w + tiles_bytes(layer));
    int32_t *sums = strip->scratch;
    for (uint32_t o = 0; o < layer->out; o += BLOCK_OUTS, w += 2 * next) {
        const scaling s = load_scaling(out, o);
        for (uint32_t x = 0; x < strip->width; x += TILE_PIXELS) {
            if (o == 0)
                prefetch_block(strip, x + TILE_PIXELS, groups);
            accumulate(strip->in, x, strip->in_pitch, groups, w, next);
            store_sums(sums);
            const uint32_t n = pixels_left(x, strip->width);
            for (uint32_t p = 0; pool && p < n; p += 2) {
                const int32_t *a = sums + p * 16, *b = a + 2 * TILE_WORDS;
                store_pixel(strip->out[0], strip->out_pitch, o, (x + p) / 2, scale(pooled(a, b), &s, 0),
                            scale(pooled(a + TILE_WORDS, b + TILE_WORDS), &s, 1), bytes);
            }
            for (int y = 0; !pool && y < 2 && strip->out[y]; y++)
                for (uint32_t p = 0; p < n; p++) {
                    const int32_t *a = sums + 2 * y * TILE_WORDS + p * 16;
                    store_pixel(strip->out[y], strip->out_pitch, o, x + p, scale(_mm512_load_si512(a), &s, 0),
                                scale(_mm512_load_si512(a + TILE_WORDS), &s, 1), bytes);
                }
        }
    }
}

static void conv(const sp_packed *packed, const sp_strip *strip) {
    if (in_int8(index_of(packed->layer)))
        convolve(packed, strip, 0, 1);
    else
        sp_kernels_bf16_amx.conv(packed, strip);
}

static void conv_pool(const sp_packed *packed, const sp_strip *strip) {
    if (index_of(packed->layer) == LAST_INT8)
        convolve(packed, strip, 1, 0);
    else
        convolve(packed, strip, 1, 1);
}

static void head(const sp_packed *packed, const sp_strip *strip, float *const *out, size_t stride) {
    sp_kernels_bf16_amx.head(packed, strip, out, stride);
}

/* As in bf16_amx.c, but to bytes. */
static void first(const sp_packed *packed, const uint8_t *const pixels[3], uint32_t width, uint8_t *out,
                  size_t out_pitch, void *room) {
    (void)out_pitch; /* 64 channels are one line */
    uint16_t *windows = room;
    sp_bf16_windows(pixels, width, windows);
    __asm__ volatile("" ::: "memory"); /* the intrinsic does not say that it reads memory */
    _Alignas(SP_LINE) float sums[4 * TILE_WORDS];
    const uint8_t *w = packed->weights;
    _tile_loadd(4, w, SP_LINE);
    _tile_loadd(5, w + TILE_BYTES, SP_LINE);
    _tile_loadd(6, w + 2 * TILE_BYTES, SP_LINE);
    _tile_loadd(7, w + 3 * TILE_BYTES, SP_LINE);
    for (uint32_t x = 0; x < width; x += TILE_PIXELS) {
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
        for (uint32_t p = 0; p < pixels_left(x, width); p++) {
            const float *s = sums + p * 16;
            __m256i *to = (__m256i *)(out + (size_t)(x + p) * SP_LINE);
            _mm256_store_si256(to, to_bytes(_mm512_load_ps(s), _mm512_load_ps(s + TILE_WORDS)));
            _mm256_store_si256(to + 1,
                               to_bytes(_mm512_load_ps(s + 2 * TILE_WORDS), _mm512_load_ps(s + 3 * TILE_WORDS)));
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
        _tile_dpbusd(0, 4, 6);
        _tile_dpbusd(1, 4, 7);
        _tile_dpbusd(2, 5, 6);
        _tile_dpbusd(3, 5, 7);
    }
    return rounds * 4 * TILE_PIXELS * TILE_BYTES;
}

static void scores(float *logits, uint32_t cells, float *out, size_t stride) {
    sp_kernels_bf16_amx.scores(logits, cells, out, stride);
}

static void normalise(float *descriptors, uint32_t cells) {
    sp_kernels_bf16_amx.normalise(descriptors, cells);
}

const sp_kernels sp_kernels_int8_amx = {.level = SP_CPU_AMX,
                                        .precision = SP_PRECISION_INT8,
                                        .lanes = {LANES, LANES, LANES, LANES, LANES, SP_BF16_LANES, SP_BF16_LANES,
                                                  SP_BF16_LANES, SP_BF16_LANES, SP_BF16_LANES, SP_BF16_LANES,
                                                  SP_BF16_LANES},
                                        .needs_ranges = true,
                                        .rows = 2,
                                        .scratch_bytes = 4 * TILE_BYTES,
                                        .packed_bytes = packed_bytes,
                                        .pack = pack,
                                        .enter = amx_enter,
                                        .leave = amx_leave,
                                        .first = first,
                                        .conv = conv,
                                        .conv_pool = conv_pool,
                                        .head = head,
                                        .scores = scores,
                                        .normalise = normalise,
                                        .peak = peak};
