/* float32 for processors with AVX2 and FMA (Haswell and later, Zen and later). */
#include "engine/cpu/vec_avx2.h"

#define VECTORS 2
#define PIXELS 6
#define LEVEL SP_CPU_AVX2
#define NAME sp_kernels_f32_avx2

#include "engine/cpu/f32_template.h"
