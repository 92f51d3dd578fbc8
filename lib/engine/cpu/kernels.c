#include "engine/cpu/kernels.h"

/* Every set of kernels of this build, in rising order of level within a precision. */
static const sp_kernels *const sets[] = {
    &sp_kernels_f32_c,
#if defined(__x86_64__)
    &sp_kernels_f32_avx2, &sp_kernels_f32_avx512, &sp_kernels_bf16_vnni,
    &sp_kernels_bf16_amx, &sp_kernels_int8_vnni,  &sp_kernels_int8_amx,
#elif defined(__aarch64__)
    &sp_kernels_f32_neon,
#endif
};

const sp_kernels *sp_kernels_find(sp_cpu_level level, sp_precision precision) {
    const sp_kernels *best = NULL;
    for (size_t i = 0; i < sizeof sets / sizeof sets[0]; i++)
        if (sets[i]->precision == precision && sets[i]->level <= level)
            best = sets[i];
    return best;
}
