#include <immintrin.h>
#include <stdint.h>

static inline uint32_t above_mask(const float *values, float threshold) {
    return _mm512_cmp_ps_mask(_mm512_loadu_ps(values), _mm512_set1_ps(threshold), _CMP_GT_OQ);
}

#define LEVEL SP_CPU_AVX512
#define KERNELS sp_row_kernels_avx512
#include "features/rows_template.h"
