#include "features/rows.h"

/* Asked for each point, and so not through sp_cpu_has(), which executes CPUID: a microsecond and more on
 * virtual machines. The compiler's own record of it is a load. */
const sp_row_kernels *sp_row_kernels_best(void) {
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512vl"))
        return &sp_row_kernels_avx512;
    if (__builtin_cpu_supports("avx2"))
        return &sp_row_kernels_avx2;
#endif
    return &sp_row_kernels_c;
}
