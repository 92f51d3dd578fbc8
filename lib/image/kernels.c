#include "image/kernels.h"

#include <stdlib.h>
#include <string.h>

const sp_image_kernels *sp_image_kernels_for(sp_cpu_level level) {
#if defined(__x86_64__)
    if (level == SP_CPU_AVX512VNNI || level == SP_CPU_AMX)
        return &sp_image_kernels_avx512vnni;
    if (level == SP_CPU_AVX2 || level == SP_CPU_AVX512)
        return &sp_image_kernels_avx2;
#endif
    (void)level;
    return &sp_image_kernels_c;
}

const sp_image_kernels *sp_image_kernels_here(void) {
    sp_cpu_level level = sp_cpu_best(), asked;
    const char *name = getenv("SUPERPOINT_CPU");
    if (name && sp_cpu_level_parse(name, &asked) && sp_cpu_has(asked))
        level = asked;
    return sp_image_kernels_for(level);
}

static uint8_t to_byte(int32_t sum) {
    sum >>= SP_WEIGHT_BITS;
    return (uint8_t)(sum < 0 ? 0 : sum > 255 ? 255 : sum);
}

static void resample_row(const sp_filter *f, const uint8_t *in, uint8_t *out) {
    for (uint32_t i = 0; i < f->out; i++) {
        const int32_t *w = f->weights + (size_t)i * f->taps;
        const uint8_t *from = in + f->first[i];
        int32_t sum = 1 << (SP_WEIGHT_BITS - 1);
        for (size_t t = 0; t < f->count[i]; t++)
            sum += from[t] * w[t];
        out[i] = to_byte(sum);
    }
}

static bool choose_row(sp_filter *f) {
    f->row = resample_row;
    return true;
}

/* A part of the columns at a time, whose sums stay close by. */
static void resample_columns(const uint8_t *const *rows, const int32_t *weights, uint32_t count, size_t n,
                             uint8_t *out) {
    int32_t sums[256];
    enum { PART = sizeof sums / sizeof sums[0] };
    for (size_t x = 0; x < n; x += PART) {
        const size_t part = n - x < PART ? n - x : (size_t)PART;
        for (size_t i = 0; i < part; i++)
            sums[i] = 1 << (SP_WEIGHT_BITS - 1);
        for (uint32_t t = 0; t < count; t++)
            for (size_t i = 0; i < part; i++)
                sums[i] += rows[t][x + i] * weights[t];
        for (size_t i = 0; i < part; i++)
            out[x + i] = to_byte(sums[i]);
    }
}

/* Three quarters of the nearer and one of the further; halves go up on one side and down on the other. */
static void upsample_h2v1(const uint8_t *in, size_t n, uint8_t *out) {
    out[0] = in[0];
    for (size_t i = 0; i < n; i++) {
        if (i > 0)
            out[2 * i] = (uint8_t)((3 * in[i] + in[i - 1] + 1) >> 2);
        if (i + 1 < n)
            out[2 * i + 1] = (uint8_t)((3 * in[i] + in[i + 1] + 2) >> 2);
    }
    out[2 * n - 1] = in[n - 1];
}

/* Both directions at once, rounded once. */
static void upsample_h2v2(const uint8_t *near, const uint8_t *far, size_t n, uint8_t *out) {
    uint32_t before = 3u * near[0] + far[0], here = before;
    for (size_t i = 0; i < n; i++) {
        const uint32_t after = i + 1 < n ? 3u * near[i + 1] + far[i + 1] : here;
        out[2 * i] = (uint8_t)((3 * here + before + 8) >> 4);
        out[2 * i + 1] = (uint8_t)((3 * here + after + 7) >> 4);
        before = here;
        here = after;
    }
}

static void red(const uint8_t *y, const uint8_t *cr, size_t n, uint8_t *out) {
    enum { FACTOR = 91881, HALF = 1 << 15 }; /* 1.402 * 65536 */
    for (size_t i = 0; i < n; i++) {
        const int32_t r = y[i] + ((FACTOR * (cr[i] - 128) + HALF) >> 16);
        out[i] = (uint8_t)(r < 0 ? 0 : r > 255 ? 255 : r);
    }
}

const sp_image_kernels sp_image_kernels_c = {choose_row, resample_columns, upsample_h2v1, upsample_h2v2, red};
