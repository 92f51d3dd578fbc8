/* float32 for 64-bit Arm. */
#include "engine/cpu/vec_neon.h"

#define VECTORS 4
#define PIXELS 6
#define LEVEL SP_CPU_NEON
#define NAME sp_kernels_f32_neon

#include "engine/cpu/f32_template.h"
