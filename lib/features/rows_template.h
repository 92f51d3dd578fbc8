/* The kernels of rows.h. The file that includes this is compiled for one instruction set and defines
 * LEVEL and KERNELS, the level and the table's name, and
 *   above_mask(values, threshold)  bit i: values[i] > threshold, for 16 values.
 * Loops are written so that compilers turn them into vectors. */
#include <math.h>
#include <string.h>

#include "features/rows.h"
#include "superpoint.h"

enum { BLOCK = 16 };

static inline float larger_of(float a, float b) {
    return a > b ? a : b;
}

/* `ivdep`: where `out` overlaps an input, it does not run ahead of it. */
static void larger(const float *a, const float *b, float *out, size_t n) {
#pragma GCC ivdep
    for (size_t i = 0; i < n; i++)
        out[i] = larger_of(a[i], b[i]);
}

/*
 * Windows of 1, 2, 4, ... up to the largest power of two that fits are built by doubling, and two of the
 * last, overlapping, cover the whole window: about log2(2r+1) maxima a pixel.
 */
static void window(const float *in, uint32_t width, int radius, float *line, float *out) {
    const size_t padded = (size_t)width + 2 * (size_t)radius, size = 2 * (size_t)radius + 1;
    for (int i = 0; i < radius; i++)
        line[i] = line[padded - 1 - (size_t)i] = -INFINITY;
    memcpy(line + radius, in, width * sizeof *in);
    size_t reach = 1; /* line[i] is the maximum of `reach` values from i on */
    for (; 2 * reach <= size; reach *= 2)
        larger(line, line + reach, line, padded - reach);
    larger(line, line + (size - reach), out, width);
}

static void keep(const float *a, const float *b, const float *scores, float *out, size_t n) {
#pragma GCC ivdep
    for (size_t i = 0; i < n; i++)
        out[i] = larger_of(a[i], b[i]) == scores[i] ? scores[i] : 0;
}

static size_t above(const float *values, uint32_t first, size_t n, float threshold, uint32_t *found) {
    size_t count = 0, i = 0;
    for (; i + BLOCK <= n; i += BLOCK)
        for (uint32_t bits = above_mask(values + i, threshold); bits; bits &= bits - 1)
            found[count++] = first + (uint32_t)i + (uint32_t)__builtin_ctz(bits);
    for (; i < n; i++)
        if (values[i] > threshold)
            found[count++] = first + (uint32_t)i;
    return count;
}

/* In sixteen strands, joined pairwise: an order that any vector width can keep. */
static float sum_of_squares(const float *v) {
    float strands[BLOCK] = {0};
    for (int i = 0; i < SP_DESCRIPTOR_DIM; i += BLOCK)
        for (int k = 0; k < BLOCK; k++)
            strands[k] += v[i + k] * v[i + k];
    for (int step = BLOCK / 2; step; step /= 2)
        for (int k = 0; k < step; k++)
            strands[k] += strands[k + step];
    return strands[0];
}

static void blend(const float *const corner[4], const float weight[4], float *restrict out) {
    const float *a = corner[0], *b = corner[1], *c = corner[2], *d = corner[3];
    const float wa = weight[0], wb = weight[1], wc = weight[2], wd = weight[3];
    for (int i = 0; i < SP_DESCRIPTOR_DIM; i++)
        out[i] = wa * a[i] + wb * b[i] + wc * c[i] + wd * d[i];
    const float length = fmaxf(sqrtf(sum_of_squares(out)), 1e-12f);
    for (int i = 0; i < SP_DESCRIPTOR_DIM; i++)
        out[i] /= length;
}

static inline uint32_t bits_of(float value) {
    union {
        float f;
        uint32_t u;
    } both = {value};
    return both.u;
}

static inline float float_of(uint32_t bits) {
    union {
        uint32_t u;
        float f;
    } both = {bits};
    return both.f;
}

/* All three cases are computed and one is chosen. */
static void half(const float *restrict in, size_t n, uint16_t *restrict out) {
    for (size_t i = 0; i < n; i++) {
        const uint32_t bits = bits_of(in[i]), magnitude = bits & 0x7fffffff;
        /* 65536 and above, infinity, not a number */
        const uint32_t large = magnitude > 0x7f800000 ? 0x7e00 : 0x7c00;
        /* below 2^-14: a multiple of 2^-24, the last place of 0.5; adding rounds to it */
        const uint32_t small = bits_of(float_of(magnitude) + 0.5f) - 0x3f000000;
        /* rebias the exponent by 112 and drop 13 bits, to nearest, ties to even; a carry out of the fraction
         * rightly raises the exponent, up to infinity */
        const uint32_t normal = (magnitude - (112u << 23) + 0xfff + (magnitude >> 13 & 1)) >> 13;
        const uint32_t value = magnitude >= 0x47800000 ? large : magnitude < 0x38800000 ? small : normal;
        out[i] = (uint16_t)((bits >> 16 & 0x8000) | value);
    }
}

const sp_row_kernels KERNELS = {LEVEL, larger, window, keep, above, blend, half};
