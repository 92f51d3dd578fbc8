#include "features/rows.h"

const sp_row_kernels *sp_row_kernels_best(void) {
#if defined(__x86_64__)
    if (sp_cpu_has(SP_CPU_AVX512))
        return &sp_row_kernels_avx512;
    if (sp_cpu_has(SP_CPU_AVX2))
        return &sp_row_kernels_avx2;
#endif
    return &sp_row_kernels_c;
}
