/* bf16 on AVX-512's dot products. */
#include "engine/cpu/vnni.h"

static inline __attribute__((always_inline)) void accumulate(const block *b, const int kernel, const sink *to,
                                                             finished *f, const int pool, const ending end) {
    (void)to, (void)f, (void)pool, (void)end;
    vnni_block(b, kernel, 0);
}

static uint64_t peak(const void *data, uint64_t rounds) {
    return 2 * vnni_peak(data, rounds, 0);
}

#define ENTER NULL
#define LEAVE NULL
#define LEVEL SP_CPU_AVX512VNNI
#define NAME sp_kernels_bf16_vnni

#include "engine/cpu/bf16_template.h"
