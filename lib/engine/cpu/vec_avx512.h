/* The vocabulary of the templates in AVX-512. */
#ifndef SP_ENGINE_CPU_VEC_AVX512_H
#define SP_ENGINE_CPU_VEC_AVX512_H

#include <immintrin.h>

typedef __m512 VEC;
#define VL 16
#define LOAD(p) _mm512_loadu_ps(p)
#define STORE(p, v) _mm512_storeu_ps(p, v)
#define SET1(x) _mm512_set1_ps(x)
#define ADD(a, b) _mm512_add_ps(a, b)
#define SUB(a, b) _mm512_sub_ps(a, b)
#define MUL(a, b) _mm512_mul_ps(a, b)
#define FMA(a, b, c) _mm512_fmadd_ps(a, b, c)
#define MAX(a, b) _mm512_max_ps(a, b)
/* a times 2 to the integer in the low bits of b */
#define SCALE2(a, b)                                                                                                   \
    _mm512_castsi512_ps(_mm512_add_epi32(_mm512_castps_si512(a), _mm512_slli_epi32(_mm512_castps_si512(b), 23)))

/* The assembler's constraint for a VEC. */
#define VEC_REGISTER(v) "v"(v)

#endif
