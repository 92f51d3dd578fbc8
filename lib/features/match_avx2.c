/* Sixteen registers of eight floats: 12 accumulators. */
#define LANES 8
#define VECTORS 2
#define ROWS 6
#define LEVEL SP_CPU_AVX2
#define KERNEL sp_match_kernel_avx2
#include "features/match_kernel.h"
