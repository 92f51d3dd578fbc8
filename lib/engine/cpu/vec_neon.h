/* The vocabulary of the templates in the vector instructions of 64-bit Arm. */
#ifndef SP_ENGINE_CPU_VEC_NEON_H
#define SP_ENGINE_CPU_VEC_NEON_H

#include <arm_neon.h>

typedef float32x4_t VEC;
#define VL 4
#define LOAD(p) vld1q_f32(p)
#define STORE(p, v) vst1q_f32(p, v)
#define SET1(x) vdupq_n_f32(x)
#define ADD(a, b) vaddq_f32(a, b)
#define SUB(a, b) vsubq_f32(a, b)
#define MUL(a, b) vmulq_f32(a, b)
#define FMA(a, b, c) vfmaq_f32(c, a, b)
#define MAX(a, b) vmaxq_f32(a, b)
/* a times 2 to the integer in the low bits of b */
#define SCALE2(a, b)                                                                                                   \
    vreinterpretq_f32_s32(vaddq_s32(vreinterpretq_s32_f32(a), vshlq_n_s32(vreinterpretq_s32_f32(b), 23)))

/* The assembler's constraint for a VEC. */
#define VEC_REGISTER(v) "w"(v)

#endif
