#include "base/cpu.h"

#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "superpoint.h"

static const char *const level_names[] = {"c", "avx2", "avx512", "avx512vnni", "amx", "neon"};

const char *sp_cpu_level_text(sp_cpu_level level) {
    return (size_t)level < sizeof level_names / sizeof level_names[0] ? level_names[level] : "?";
}

bool sp_cpu_level_parse(const char *text, sp_cpu_level *level) {
    for (size_t i = 0; i < sizeof level_names / sizeof level_names[0]; i++)
        if (strcmp(text, level_names[i]) == 0) {
            *level = (sp_cpu_level)i;
            return true;
        }
    return false;
}

const char *const *sp_cpu_levels(void) {
#if defined(__x86_64__)
    static const char *const levels[] = {"c", "avx2", "avx512", "avx512vnni", "amx", NULL};
#elif defined(__aarch64__)
    static const char *const levels[] = {"c", "neon", NULL};
#else
    static const char *const levels[] = {"c", NULL};
#endif
    return levels;
}

bool sp_cpu_level_available(const char *text) {
    sp_cpu_level level;
    return sp_cpu_level_parse(text, &level) && sp_cpu_has(level);
}

uint32_t sp_cpu_count(void) {
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0) {
        int n = CPU_COUNT(&set);
        if (n > 0)
            return (uint32_t)n;
    }
    long n = sysconf(_SC_NPROCESSORS_ONLN);
    return n > 0 ? (uint32_t)n : 1;
}

#if defined(__x86_64__)

#include <cpuid.h>

/* CPUID leaf 1: bit of ECX. clang 14's __builtin_cpu_supports does not know it. */
enum { ECX_F16C = 1 << 29 };

static bool f16c_present(void) {
    unsigned a, b, c, d;
    return __get_cpuid(1, &a, &b, &c, &d) && (c & ECX_F16C) != 0;
}

/* CPUID leaf 7, sub-leaf 0: bits of EDX (Intel SDM vol. 2A, table 3-8). */
enum { EDX_AMX_BF16 = 1 << 22, EDX_AMX_TILE = 1 << 24, EDX_AMX_INT8 = 1 << 25 };

/* Linux: arch_prctl(ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA), Documentation/arch/x86/xstate.rst. */
enum { REQUEST_PERMISSION = 0x1023, TILE_DATA = 18 };

static bool amx_usable(void) {
    unsigned a, b, c, d;
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d))
        return false;
    const unsigned need = EDX_AMX_BF16 | EDX_AMX_TILE | EDX_AMX_INT8;
    return (d & need) == need && syscall(SYS_arch_prctl, REQUEST_PERMISSION, TILE_DATA) == 0;
}

bool sp_cpu_has(sp_cpu_level level) {
    __builtin_cpu_init();
    bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && f16c_present();
    bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                  __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
                  __builtin_cpu_supports("avx512cd");
    bool vnni = avx512 && __builtin_cpu_supports("avx512vnni") && __builtin_cpu_supports("avx512vbmi") &&
                __builtin_cpu_supports("avx512bf16");
    switch (level) {
    case SP_CPU_C:
        return true;
    case SP_CPU_AVX2:
        return avx2;
    case SP_CPU_AVX512:
        return avx512;
    case SP_CPU_AVX512VNNI:
        return vnni;
    case SP_CPU_AMX:
        return vnni && amx_usable();
    case SP_CPU_NEON:
        return false;
    }
    return false;
}

sp_cpu_level sp_cpu_best(void) {
    for (int level = SP_CPU_AMX; level > SP_CPU_C; level--)
        if (sp_cpu_has((sp_cpu_level)level))
            return (sp_cpu_level)level;
    return SP_CPU_C;
}

void sp_cpu_describe(char *name, size_t size) {
    unsigned words[13] = {0};
    for (unsigned leaf = 0; leaf < 3; leaf++) /* the brand string, 48 bytes in three leaves */
        if (!__get_cpuid(0x80000002u + leaf, &words[4 * leaf], &words[4 * leaf + 1], &words[4 * leaf + 2],
                         &words[4 * leaf + 3]))
            break;
    const char *text = (const char *)words;
    while (*text == ' ')
        text++;
    snprintf(name, size, "%s", *text ? text : "x86-64 processor");
}

#else

bool sp_cpu_has(sp_cpu_level level) {
#if defined(__aarch64__)
    return level == SP_CPU_C || level == SP_CPU_NEON;
#else
    return level == SP_CPU_C;
#endif
}

sp_cpu_level sp_cpu_best(void) {
    return sp_cpu_has(SP_CPU_NEON) ? SP_CPU_NEON : SP_CPU_C;
}

void sp_cpu_describe(char *name, size_t size) {
#if defined(__aarch64__)
    snprintf(name, size, "64-bit Arm processor");
#else
    snprintf(name, size, "processor");
#endif
}

#endif
