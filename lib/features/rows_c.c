#include <stdint.h>

static inline uint32_t above_mask(const float *values, float threshold) {
    uint32_t bits = 0;
    for (int i = 0; i < 16; i++)
        bits |= (uint32_t)(values[i] > threshold) << i;
    return bits;
}

#define LEVEL SP_CPU_C
#define KERNELS sp_row_kernels_c
#include "features/rows_template.h"
