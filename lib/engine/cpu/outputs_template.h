/*
 * From the heads' numbers to the two results: softmax and unit length. Included by each set of
 * kernels after VEC, VL and the operations of f32_template.h are defined.
 */
#include <math.h>
#include <string.h>

#include "engine/cpu/kernels.h"

/*
 * e^x for x <= 0, within 2 units of the last place. x = n ln 2 + r with |r| <= ln 2 / 2; ln 2 is
 * subtracted in two pieces (the first has few bits, so that n times it is exact). e^r is its Taylor
 * series up to r^7 / 7!, whose rest is below 0.35^8 / 8! = 6e-9. Below -87, where the result would
 * leave the normal range, x is taken for -87: a share of 1e-38 is nothing beside the sum.
 */
static inline VEC exponential(VEC x) {
    const float inverse_ln2 = 1.44269504f, ln2_high = 0.693359375f, ln2_low = -2.12194440e-4f;
    const float magic = 12582912.0f; /* 1.5 * 2^23: adding it rounds to an integer, in the low bits */
    x = MAX(x, SET1(-87.0f));
    const VEC shifted = FMA(x, SET1(inverse_ln2), SET1(magic));
    const VEC n = SUB(shifted, SET1(magic));
    VEC r = FMA(n, SET1(-ln2_high), x);
    r = FMA(n, SET1(-ln2_low), r);
    VEC e = SET1(1.0f / 5040);
    e = FMA(e, r, SET1(1.0f / 720));
    e = FMA(e, r, SET1(1.0f / 120));
    e = FMA(e, r, SET1(1.0f / 24));
    e = FMA(e, r, SET1(1.0f / 6));
    e = FMA(e, r, SET1(0.5f));
    e = FMA(e, r, SET1(1.0f));
    e = FMA(e, r, SET1(1.0f));
    return SCALE2(e, shifted); /* e * 2^n, n in the low bits of `shifted` */
}

/* Pairwise: a chain of VL additions would take longer than all the rest of a cell. */
static inline float lanes_sum(VEC v) {
    float lane[VL];
    STORE(lane, v);
    for (int step = VL / 2; step; step /= 2)
        for (int i = 0; i < step; i++)
            lane[i] += lane[i + step];
    return lane[0];
}

static inline float lanes_largest(VEC v) {
    float lane[VL];
    STORE(lane, v);
    for (int step = VL / 2; step; step /= 2)
        for (int i = 0; i < step; i++)
            lane[i] = lane[i] > lane[i + step] ? lane[i] : lane[i + step];
    return lane[0];
}

static void scores(float *logits, uint32_t cells, float *out, size_t stride) {
    for (uint32_t c = 0; c < cells; c++, logits += SP_LOGITS_PADDED, out += SP_CELL) {
        for (int i = SP_LOGITS; i < SP_LOGITS_PADDED; i++)
            logits[i] = -INFINITY; /* padding: no share of the sum */
        VEC largest = LOAD(logits);
        for (int i = VL; i < SP_LOGITS_PADDED; i += VL)
            largest = MAX(largest, LOAD(logits + i));
        const VEC shift = SET1(lanes_largest(largest));
        VEC sum = SET1(0);
        for (int i = 0; i < SP_LOGITS_PADDED; i += VL) {
            VEC e = exponential(SUB(LOAD(logits + i), shift));
            STORE(logits + i, e);
            sum = ADD(sum, e);
        }
        const VEC share =
            SET1(1.0f / lanes_sum(sum)); /* one division instead of 64, for half a unit of the last place */
        for (int i = 0; i < SP_CELL * SP_CELL; i += VL)
            STORE(logits + i, MUL(LOAD(logits + i), share));
        for (int row = 0; row < SP_CELL; row++)
            memcpy(out + (size_t)row * stride, logits + row * SP_CELL, SP_CELL * sizeof *out);
    }
}

static void normalise(float *descriptors, uint32_t cells) {
    for (uint32_t c = 0; c < cells; c++, descriptors += SP_DESCRIPTOR_DIM) {
        VEC squares = SET1(0);
        for (int i = 0; i < SP_DESCRIPTOR_DIM; i += VL) {
            const VEC v = LOAD(descriptors + i);
            squares = FMA(v, v, squares);
        }
        const VEC inverse = SET1(1.0f / fmaxf(sqrtf(lanes_sum(squares)), 1e-12f));
        for (int i = 0; i < SP_DESCRIPTOR_DIM; i += VL)
            STORE(descriptors + i, MUL(LOAD(descriptors + i), inverse));
    }
}
