/*
 * fp32 on the BRISC and NCRISC cores: add, subtract, multiply, fused multiply-add, compare, conversion to nearest.
 * There is no divide and no square root, and denormals are zero: reciprocals come from an integer guess and three
 * Newton steps.
 */
#ifndef BH_FLOAT_H
#define BH_FLOAT_H

#include "start.h"

static inline float float_of(u32 bits) {
    float f;
    __asm__("fmv.w.x %0, %1" : "=f"(f) : "r"(bits));
    return f;
}

static inline u32 bits_of(float f) {
    u32 bits;
    __asm__("fmv.x.w %0, %1" : "=r"(bits) : "f"(f));
    return bits;
}

/* Nearest even. A C cast would truncate, a rounding mode that the cores do not have. */
static inline int nearest(float f) {
    int i;
    __asm__("fcvt.w.s %0, %1, rne" : "=r"(i) : "f"(f));
    return i;
}

/* fp16 in the low 16 bits to fp32: move the fields, and one multiplication by 2^112 corrects the exponent. */
static inline float float_of_half(u32 h) {
    return float_of((h & 0x7FFFu) << 13 | (h & 0x8000u) << 16) * float_of(0x77800000u);
}

/* fp32 to fp16, nearest even, |f| < 65504; below 2^-14 it is zero. */
static inline u32 half_of_float(float f) {
    u32 bits = bits_of(f), sign = bits >> 16 & 0x8000u;
    bits &= 0x7FFFFFFFu;
    if (bits < 0x38800000u)
        return sign;
    bits -= 0x38000000u;
    return sign | (bits + 0xFFFu + (bits >> 13 & 1u)) >> 13;
}

/* 2^x for x <= 0: 2^n times a polynomial of degree 5 on |f| <= 1/2 (Taylor's coefficients ln(2)^k / k!; relative error
 * 2.4e-6 at the ends). Below 2^-115 it is zero: the sum it is compared with is at least 1. */
static inline float exp2_negative(float x) {
    if (x < -115.0f)
        return 0.0f;
    int n = nearest(x);
    float f = x - (float)n;
    float p = 1.0f +
              f * (0.693147180f + f * (0.240226507f + f * (0.0555041087f + f * (0.00961812911f + f * 0.00133335581f))));
    return float_of(bits_of(p) + ((u32)n << 23));
}

__attribute__((unused)) static inline float reciprocal(float x) {
    float r = float_of(0x7EF311C7u - bits_of(x));
    for (int i = 0; i < 3; i++)
        r = r * (2.0f - x * r);
    return r;
}

__attribute__((unused)) static inline float reciprocal_root(float x) {
    float r = float_of(0x5F3759DFu - (bits_of(x) >> 1)), half = 0.5f * x;
    for (int i = 0; i < 3; i++)
        r = r * (1.5f - half * r * r);
    return r;
}

#endif
