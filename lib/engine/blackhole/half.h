/* IEEE binary16 as the chip stores it, on the host: below 2^-14 it is zero, as the chip reads it. */
#ifndef BH_HALF_H
#define BH_HALF_H

#include <stdint.h>
#include <string.h>

#define HALF_ONE 0x3C00u
#define HALF_MAX 65504.0f
#define HALF_MIN_NORMAL 6.103515625e-5f

static inline uint32_t bh_float_bits(float f) {
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    return bits;
}

static inline float bh_bits_float(uint32_t bits) {
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

/* Keep `bits` significant bits of f, nearest even. */
static inline float bh_round_bits(float f, unsigned bits) {
    const unsigned drop = 24 - bits;
    const uint32_t u = bh_float_bits(f);
    return bh_bits_float((u + ((1u << (drop - 1)) - 1) + (u >> drop & 1)) & ~((1u << drop) - 1));
}

/* |f| <= HALF_MAX. */
static inline uint16_t bh_half_of_float(float f) {
    const uint32_t u = bh_float_bits(bh_round_bits(f, 11)), magnitude = u & 0x7FFFFFFFu;
    const uint16_t sign = (uint16_t)(u >> 16 & 0x8000u);
    if (magnitude < 0x38800000u)
        return sign;
    return (uint16_t)(sign | (magnitude - 0x38000000u) >> 13);
}

/* Every pattern is a number on the chip: the largest exponent is not special. */
static inline float bh_float_of_half(uint16_t h) {
    if (!(h & 0x7C00u))
        return 0.0f;
    return bh_bits_float((uint32_t)(h & 0x8000u) << 16 | (((uint32_t)(h & 0x7FFFu) << 13) + 0x38000000u));
}

#endif
