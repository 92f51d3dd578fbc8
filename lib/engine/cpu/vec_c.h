/* The vocabulary of the templates in the compiler's own vectors of four, which every target has. */
#ifndef SP_ENGINE_CPU_VEC_C_H
#define SP_ENGINE_CPU_VEC_C_H

#include <stdint.h>
#include <string.h>

typedef float VEC __attribute__((vector_size(16)));
typedef int32_t VEC_BITS __attribute__((vector_size(16)));
#define VL 4

static inline VEC vec_load(const float *p) {
    VEC v;
    memcpy(&v, p, sizeof v);
    return v;
}

static inline void vec_store(float *p, VEC v) {
    memcpy(p, &v, sizeof v);
}

#define LOAD(p) vec_load(p)
#define STORE(p, v) vec_store(p, v)
#define SET1(x) ((VEC){(x), (x), (x), (x)})
#define ADD(a, b) ((a) + (b))
#define SUB(a, b) ((a) - (b))
#define MUL(a, b) ((a) * (b))
#define FMA(a, b, c) ((a) * (b) + (c))
#define MAX(a, b) vec_max(a, b)
/* a times 2 to the integer in the low bits of b */
#define SCALE2(a, b) ((VEC)((VEC_BITS)(a) + (VEC_BITS)((VEC_BITS)(b) << 23)))

static inline VEC vec_max(VEC a, VEC b) {
    const VEC_BITS greater = a > b;
    return (VEC)(((VEC_BITS)a & greater) | ((VEC_BITS)b & ~greater));
}

/* The assembler's constraint for a VEC. */
#if defined(__x86_64__)
#define VEC_REGISTER(v) "x"(v)
#elif defined(__aarch64__)
#define VEC_REGISTER(v) "w"(v)
#else
#define VEC_REGISTER(v) "m"(v)
#endif

#endif
