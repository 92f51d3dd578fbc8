/* float32 for any processor. */
#include "engine/cpu/vec_c.h"

#define VECTORS 2
#define PIXELS 4
#define LEVEL SP_CPU_C
#define NAME sp_kernels_f32_c

#include "engine/cpu/f32_template.h"
