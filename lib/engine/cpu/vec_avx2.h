/* The vocabulary of the templates in AVX2 with FMA. */
#ifndef SP_ENGINE_CPU_VEC_AVX2_H
#define SP_ENGINE_CPU_VEC_AVX2_H

#include <immintrin.h>

typedef __m256 VEC;
#define VL 8
#define LOAD(p) _mm256_loadu_ps(p)
#define STORE(p, v) _mm256_storeu_ps(p, v)
#define SET1(x) _mm256_set1_ps(x)
#define ADD(a, b) _mm256_add_ps(a, b)
#define SUB(a, b) _mm256_sub_ps(a, b)
#define MUL(a, b) _mm256_mul_ps(a, b)
#define FMA(a, b, c) _mm256_fmadd_ps(a, b, c)
#define MAX(a, b) _mm256_max_ps(a, b)
/* a times 2 to the integer in the low bits of b */
#define SCALE2(a, b)                                                                                                   \
    _mm256_castsi256_ps(_mm256_add_epi32(_mm256_castps_si256(a), _mm256_slli_epi32(_mm256_castps_si256(b), 23)))

/* The assembler's constraint for a VEC. */
#define VEC_REGISTER(v) "x"(v)

#endif
