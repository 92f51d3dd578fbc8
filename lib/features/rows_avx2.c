#include <immintrin.h>
#include <stdint.h>

static inline uint32_t above_mask(const float *values, float threshold) {
    const __m256 t = _mm256_set1_ps(threshold);
    const int low = _mm256_movemask_ps(_mm256_cmp_ps(_mm256_loadu_ps(values), t, _CMP_GT_OQ));
    const int high = _mm256_movemask_ps(_mm256_cmp_ps(_mm256_loadu_ps(values + 8), t, _CMP_GT_OQ));
    return (uint32_t)(low | high << 8);
}

#define LEVEL SP_CPU_AVX2
#define KERNELS sp_row_kernels_avx2
#include "features/rows_template.h"
