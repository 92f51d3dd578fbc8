/* What the processor can do, asked at run time. */
#ifndef SP_BASE_CPU_H
#define SP_BASE_CPU_H

#include <stdbool.h>
#include <stdint.h>

#include "superpoint.h"

/*
 * Levels in rising order; each needs all that the one below it on the same architecture needs.
 * A level is a set of kernels, named after the newest instructions in it.
 */
typedef enum sp_cpu_level {
    SP_CPU_C = 0,          /* any processor */
    SP_CPU_AVX2 = 1,       /* AVX2, FMA, F16C (Haswell, Zen) */
    SP_CPU_AVX512 = 2,     /* AVX-512 F, BW, DQ, VL, CD (Skylake-X) */
    SP_CPU_AVX512VNNI = 3, /* with VNNI, VBMI and BF16 (Cooper Lake, Zen 4 and later) */
    SP_CPU_AMX = 4,        /* with AMX tile, int8 and bf16, and the kernel's leave to use them (Sapphire Rapids) */
    SP_CPU_NEON = 5        /* 64-bit Arm */
} sp_cpu_level;

/* The best level of this machine. Asks the kernel for leave to use AMX tiles, once per process. */
sp_cpu_level sp_cpu_best(void);

/* Whether kernels of `level` may run here. */
bool sp_cpu_has(sp_cpu_level level);

/* "c", "avx2", "avx512", "avx512vnni", "amx", "neon". */
const char *sp_cpu_level_text(sp_cpu_level level);

/* The level of that name; false when there is none. */
bool sp_cpu_level_parse(const char *text, sp_cpu_level *level);

#endif
