/*
 * The first layer's input: the nine taps around a pixel become nine channels of one plane. It is the scalar cores' only
 * large piece of work before the matrix unit can begin, so all five share it, by rows.
 */
#ifndef BH_TAPS_H
#define BH_TAPS_H

#include "start.h"

enum { BYTE_VALUES = 256 };

/* fp16 of v/256, which is exact; the host folds 256/255 into the first weights. The caller keeps the table in its
 * private RAM. */
static void make_byte_table(uint16_t half_of_byte[BYTE_VALUES]) {
    half_of_byte[0] = 0;
    for (u32 v = 1; v < BYTE_VALUES; v++) {
        u32 exponent = 7;
        while (!(v >> exponent))
            exponent--;
        half_of_byte[v] = (uint16_t)((exponent + 7) << 10 | (v << (10 - exponent) & 0x3FFu));
    }
}

/* Of a row in L1, with its halo and what stands before it in its 64 bytes. */
static inline u32 picture_row_bytes(const struct layer *l) {
    return (MB->picture_offset + l->cols + 2 + NOC_ALIGN_DRAM - 1) & ~(NOC_ALIGN_DRAM - 1);
}

/* One row of pixels. `above` is the left halo pixel of the row before. Each look-up serves three pixels. */
static void make_row_of_taps(const volatile u8 *above, u32 row, u32 cols, u32 to, const uint16_t *half) {
    const volatile u8 *r0 = above, *r1 = r0 + row, *r2 = r1 + row;
    u32 a0 = half[r0[0]], a1 = half[r0[1]], b0 = half[r1[0]], b1 = half[r1[1]], c0 = half[r2[0]], c1 = half[r2[1]];
    for (u32 x = 2; x < cols + 2; x++, to += PIXEL_BYTES) {
        const u32 a2 = half[r0[x]], b2 = half[r1[x]], c2 = half[r2[x]];
        REG(to) = a0 | a1 << 16;
        REG(to + 4) = a2 | b0 << 16;
        REG(to + 8) = b1 | b2 << 16;
        REG(to + 12) = c0 | c1 << 16;
        REG(to + 16) = c2;
        REG(to + 20) = 0;
        REG(to + 24) = 0;
        REG(to + 28) = 0;
        a0 = a1, a1 = a2, b0 = b1, b1 = b2, c0 = c1, c1 = c2;
    }
}

/* The share of `core` in layer `number`: rows core, core + CORES, ... */
static void make_taps(const struct layer *l, u32 core, u32 number, const uint16_t *half_of_byte) {
    const u32 row = picture_row_bytes(l), pitch = l->pitch * PIXEL_BYTES;
    const volatile u8 *picture = (const volatile u8 *)PICTURE + MB->picture_offset;
    const u32 first = l->in + (ONES_PIXELS + LEAD_PIXELS) * PIXEL_BYTES + pitch + PIXEL_BYTES;
    for (u32 y = core; y < l->rows; y += CORES)
        make_row_of_taps(picture + y * row, row, l->cols, first + y * pitch, half_of_byte);
    FENCE(); /* [go-order] */
    MB->taps_done[core] = number;
}

#endif
