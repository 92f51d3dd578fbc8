/*
 * The inner loops of suppression, selection and sampling, compiled once for each instruction set. All
 * versions give the same bits: they are the same C, whose order of additions no vector width changes.
 */
#ifndef SP_FEATURES_ROWS_H
#define SP_FEATURES_ROWS_H

#include <stddef.h>
#include <stdint.h>

#include "base/cpu.h"

typedef struct sp_row_kernels {
    sp_cpu_level level;

    /* out[i] = the larger of a[i] and b[i]; `out` may be either of them. */
    void (*larger)(const float *a, const float *b, float *out, size_t n);

    /* Maxima over windows of 2 * radius + 1 along a row; `line` has room for width + 2 * radius. */
    void (*window)(const float *in, uint32_t width, int radius, float *line, float *out);

    /* out[i] = scores[i] where it equals the larger of a[i] and b[i], else 0. */
    void (*keep)(const float *a, const float *b, const float *scores, float *out, size_t n);

    /* Positions, from `first` on, of values above `threshold`; returns how many. `found` has room for n. */
    size_t (*above)(const float *values, uint32_t first, size_t n, float threshold, uint32_t *found);

    /* The weighted sum of four corners of SP_DESCRIPTOR_DIM, scaled to length 1. */
    void (*blend)(const float *const corner[4], const float weight[4], float *out);

    /* IEEE binary16, round to nearest even. */
    void (*half)(const float *in, size_t n, uint16_t *out);
} sp_row_kernels;

/* The best for this machine. */
const sp_row_kernels *sp_row_kernels_best(void);

extern const sp_row_kernels sp_row_kernels_c;
extern const sp_row_kernels sp_row_kernels_avx2;
extern const sp_row_kernels sp_row_kernels_avx512;

#endif
