/* Any processor: vectors of four floats, which SSE2 and NEON have in hardware. */
#define LANES 4
#define VECTORS 2
#define ROWS 4
#if defined(__aarch64__)
#define LEVEL SP_CPU_NEON
#else
#define LEVEL SP_CPU_C
#endif
#define KERNEL sp_match_kernel_c
#include "features/match_kernel.h"
