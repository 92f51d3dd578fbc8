/* Thirty-two registers of sixteen floats: 24 accumulators. A panel is 32 KB and a group 12 KB, which
 * the first-level cache of the processors that have AVX-512 holds, or nearly. */
#define LANES 16
#define VECTORS 2
#define ROWS 12
#define LEVEL SP_CPU_AVX512
#define KERNEL sp_match_kernel_avx512
#include "features/match_kernel.h"
