/* float32 for processors with AVX-512 (Skylake-X and later, Zen 4 and later). */
#include "engine/cpu/vec_avx512.h"

#define VECTORS 2
#define PIXELS 10
#define LEVEL SP_CPU_AVX512
#define NAME sp_kernels_f32_avx512

#include "engine/cpu/f32_template.h"
