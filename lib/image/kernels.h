/*
 * The inner loops of decoding and resampling, once in C and once for each set of vector instructions. All sets give the
 * same bytes.
 */
#ifndef SP_IMAGE_KERNELS_H
#define SP_IMAGE_KERNELS_H

#include "base/cpu.h"
#include "image/resample.h"

typedef struct sp_image_kernels {
    /* Set f->row and f->packed to the fastest that suits the filter; false when memory is out. Once a filter. */
    bool (*choose_row)(sp_filter *f);

    /* `n` columns of `count` rows, weighted by `weights` as in sp_filter. */
    void (*resample_columns)(const uint8_t *const *rows, const int32_t *weights, uint32_t count, size_t n,
                             uint8_t *out);

    /* libjpeg's fancy upsampling, a triangle filter. `n` samples of `in` become 2 n of `out`; n is 3 at least.
     * upsample_h2v2 takes the row that is nearer to the output, and the one on its other side. */
    void (*upsample_h2v1)(const uint8_t *in, size_t n, uint8_t *out);
    void (*upsample_h2v2)(const uint8_t *near, const uint8_t *far, size_t n, uint8_t *out);

    /* Red of `n` pixels: y + 1.402 (cr - 128), in libjpeg's 16-bit fixed point. */
    void (*red)(const uint8_t *y, const uint8_t *cr, size_t n, uint8_t *out);
} sp_image_kernels;

/* Kernels of the best set up to `level`. */
const sp_image_kernels *sp_image_kernels_for(sp_cpu_level level);

/* Those of this machine, or of the level that SUPERPOINT_CPU names. */
const sp_image_kernels *sp_image_kernels_here(void);

extern const sp_image_kernels sp_image_kernels_c;
#if defined(__x86_64__)
extern const sp_image_kernels sp_image_kernels_avx2, sp_image_kernels_avx512vnni;
#endif

#endif
