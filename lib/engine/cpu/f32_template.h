/*
 * The float32 kernels. Included once for each instruction set, which defines
 *   VEC, VL           a vector of floats and how many it holds (SP_OUT_UNIT is a multiple of VL)
 *   LOAD STORE SET1 FMA MAX   on it; FMA(a, b, c) = a * b + c
 *   VECTORS, PIXELS   the block that a kernel keeps in registers: VECTORS * VL output channels of PIXELS pixels
 *   NAME              of the table
 *   LEVEL             of it
 *
 * A block needs VECTORS * PIXELS accumulators, VECTORS weights and one broadcast input in registers:
 * the constants are chosen for 16 (AVX2), or 32 registers (AVX-512, NEON). Each input value is then used VECTORS
 * times and each weight PIXELS times for one load.
 */
#include <string.h>

#include "engine/cpu/kernels.h"

enum {
    LANES = SP_LINE / sizeof(float),
    OUTS = VECTORS * VL,
    REST = OUTS > SP_OUT_UNIT ? SP_OUT_UNIT / VL : VECTORS /* vectors in the last block of the logits */
};

typedef VEC block[PIXELS][VECTORS];

static uint32_t padded_out(const sp_layer *layer) {
    return (layer->out + SP_OUT_UNIT - 1u) / SP_OUT_UNIT * SP_OUT_UNIT;
}

static size_t packed_bytes(const sp_layer *layer) {
    const size_t points = layer->kernel == 1 ? 1 : layer->in == 1 ? 9 : 36;
    return (size_t)padded_out(layer) * layer->in * points * sizeof(float);
}

/* Layers without Winograd: [out / OUTS][tap][in][OUTS]. The last block of the logits has fewer outputs
 * (80 = 2 * 32 + 16) and is stored just as narrow. */
static void pack_plain(const sp_layer *layer, const float *kernel, float *packed) {
    const uint32_t taps = layer->kernel * layer->kernel, outs = padded_out(layer);
    const float scale = layer->in == 1 ? 1.0f / 255.0f : 1.0f;
    for (uint32_t first = 0; first < outs; first += OUTS)
        for (uint32_t tap = 0; tap < taps; tap++)
            for (uint32_t i = 0; i < layer->in; i++)
                for (uint32_t o = first; o < first + OUTS && o < outs; o++)
                    *packed++ = o < layer->out ? kernel[(o * layer->in + i) * taps + tap] * scale : 0;
}

/* sums[p][v] += in[p][i] * w[i][v] over the `inputs` channels of a line; pixels are `step` floats apart. */
static inline __attribute__((always_inline)) void accumulate(VEC (*restrict sums)[VECTORS], const float *restrict in,
                                                             size_t step, const float *restrict w, int inputs,
                                                             const int vectors) {
    for (int i = 0; i < inputs; i++, w += vectors * VL) {
        VEC weight[VECTORS];
        for (int v = 0; v < vectors; v++)
            weight[v] = LOAD(w + v * VL);
#pragma GCC unroll 16
        for (int p = 0; p < PIXELS; p++) {
            const VEC value = SET1(in[(size_t)p * step + (size_t)i]);
            for (int v = 0; v < vectors; v++)
                sums[p][v] = FMA(value, weight[v], sums[p][v]);
        }
    }
}

static inline __attribute__((always_inline)) void clear(VEC (*sums)[VECTORS]) {
    for (int p = 0; p < PIXELS; p++)
        for (int v = 0; v < VECTORS; v++)
            sums[p][v] = SET1(0);
}

/* First pixels of the blocks of a row: whole blocks from the left, the last one moved left so that it
 * ends with the row where the row is long enough. */
static uint32_t block_start(uint32_t x, uint32_t width) {
    return x + PIXELS <= width || width < PIXELS ? x : width - PIXELS;
}

/* Where channel `o` of pixel x lies in a row. */
static inline float *place(uint8_t *row, size_t pitch, uint32_t o, uint32_t x) {
    return (float *)(row + o / LANES * pitch) + (size_t)x * LANES + o % LANES;
}

static inline void store_relu(VEC (*sums)[VECTORS], const float *bias, uint8_t *row, size_t pitch, uint32_t o,
                              uint32_t x, uint32_t width) {
    for (int v = 0; v < VECTORS; v++) {
        const VEC b = LOAD(bias + o + v * VL);
        float *to = place(row, pitch, o + (uint32_t)v * VL, x);
        for (uint32_t p = 0; p < PIXELS && x + p < width; p++)
            STORE(to + p * LANES, MAX(ADD(sums[p][v], b), SET1(0)));
    }
}

#include "engine/cpu/f32_winograd.h"

static inline __attribute__((always_inline)) void head_block(const sp_packed *packed, const sp_strip *strip,
                                                             const float *w, uint32_t o, float *const *out,
                                                             size_t stride, const int vectors) {
    for (int y = 0; y < TILE && out[y]; y++)
        for (uint32_t x0 = 0; x0 < strip->width; x0 += PIXELS) {
            const uint32_t x = block_start(x0, strip->width);
            const uint8_t *in = strip->in[y] + (size_t)x * SP_LINE;
            block sums;
            clear(sums);
            for (uint32_t g = 0; g < packed->layer->in / LANES; g++, in += strip->in_pitch)
                accumulate(sums, (const float *)in, LANES, w + (size_t)g * LANES * vectors * VL, LANES, vectors);
            for (uint32_t p = 0; p < PIXELS && x + p < strip->width; p++)
                for (int v = 0; v < vectors; v++)
                    STORE(out[y] + (x + p) * stride + o + (uint32_t)v * VL,
                          ADD(sums[p][v], LOAD(packed->bias + o + v * VL)));
        }
}

static void head(const sp_packed *packed, const sp_strip *strip, float *const *out, size_t stride) {
    const uint32_t outs = padded_out(packed->layer);
    const float *w = packed->weights;
    uint32_t o = 0;
    for (; o + OUTS <= outs; o += OUTS, w += (size_t)packed->layer->in * OUTS)
        head_block(packed, strip, w, o, out, stride, VECTORS);
    if (o < outs) /* only where a block is more than SP_OUT_UNIT */
        head_block(packed, strip, w, o, out, stride, REST);
}

/* Pixels as floats between a zero on the left and zeros on the right. */
static void pixels_to_floats(const uint8_t *pixels, uint32_t width, float *out) {
    out[0] = 0;
    for (uint32_t x = 0; x < width; x++)
        out[1 + x] = pixels ? pixels[x] : 0;
    memset(out + 1 + width, 0, (2 * SP_BLOCK_PIXELS - 1) * sizeof *out);
}

static void first(const sp_packed *packed, const uint8_t *const pixels[3], uint32_t width, uint8_t *out,
                  size_t out_pitch, void *room) {
    float *floats = room;
    const size_t line = (size_t)width + 2 * SP_BLOCK_PIXELS;
    for (int ky = 0; ky < 3; ky++)
        pixels_to_floats(pixels[ky], width, floats + (size_t)ky * line);
    const float *w = packed->weights;
    for (uint32_t o = 0; o < packed->layer->out; o += OUTS, w += 9 * OUTS)
        for (uint32_t x0 = 0; x0 < width; x0 += PIXELS) {
            const uint32_t x = block_start(x0, width);
            block sums;
            clear(sums);
            for (int ky = 0; ky < 3; ky++)
                accumulate(sums, floats + (size_t)ky * line + x, 1, w + (size_t)3 * OUTS * (size_t)ky, 3, VECTORS);
            store_relu(sums, packed->bias, out, out_pitch, o, x, width);
        }
}

/* Twelve sums: as many as two multipliers with a latency of four to six cycles can have under way. */
static uint64_t peak(const void *data, uint64_t rounds) {
    const VEC a = LOAD((const float *)data), b = LOAD((const float *)data + VL), z = SET1(0);
    VEC s0 = z, s1 = z, s2 = z, s3 = z, s4 = z, s5 = z, s6 = z, s7 = z, s8 = z, s9 = z, s10 = z, s11 = z;
#define STEP(s)                                                                                                        \
    s = FMA(a, b, s);                                                                                                  \
    __asm__ volatile("" : "+" VEC_REGISTER(s)) /* each product anew */
    for (uint64_t i = 0; i < rounds; i++) {
        STEP(s0);
        STEP(s1);
        STEP(s2);
        STEP(s3);
        STEP(s4);
        STEP(s5);
        STEP(s6);
        STEP(s7);
        STEP(s8);
        STEP(s9);
        STEP(s10);
        STEP(s11);
    }
#undef STEP
    return rounds * 12 * VL;
}

static void pack(const sp_weights *weights, int index, void *packed) {
    const sp_layer *layer = &sp_network[index];
    if (layer->kernel == 1 || layer->in == 1)
        pack_plain(layer, weights->kernel[index], packed);
    else
        pack_winograd(layer, weights->kernel[index], packed);
}

#include "engine/cpu/outputs_template.h"

const sp_kernels NAME = {.level = LEVEL,
                         .precision = SP_PRECISION_FP32,
                         .lanes = SP_LANES(LANES),
                         .rows = TILE,
                         .scratch_bytes = sizeof(winograd_room),
                         .packed_bytes = packed_bytes,
                         .pack = pack,
                         .first = first,
                         .conv = conv,
                         .conv_pool = conv_pool,
                         .head = head,
                         .scores = scores,
                         .normalise = normalise,
                         .peak = peak};
