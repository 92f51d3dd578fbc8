/* What the sets for x86 share. */
#ifndef SP_IMAGE_KERNELS_X86_H
#define SP_IMAGE_KERNELS_X86_H

#include "image/kernels.h"

bool sp_image_choose_row_avx2(sp_filter *f);
void sp_image_resample_columns_avx2(const uint8_t *const *rows, const int32_t *weights, uint32_t count, size_t n,
                                    uint8_t *out);
void sp_image_upsample_h2v1_avx2(const uint8_t *in, size_t n, uint8_t *out);
void sp_image_upsample_h2v2_avx2(const uint8_t *near, const uint8_t *far, size_t n, uint8_t *out);
void sp_image_red_avx2(const uint8_t *y, const uint8_t *cr, size_t n, uint8_t *out);

#endif
