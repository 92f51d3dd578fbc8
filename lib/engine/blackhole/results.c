#include "results.h"

#include <string.h>

#include "half.h"

/* Kept pixels keep their score, the others are zero. */
static void expand_suppressed(const bh_plan *plan, const unsigned char *slot, const float *scores, float *suppressed) {
    memset(suppressed, 0, (size_t)plan->width * plan->height * sizeof *suppressed);
    for (uint32_t k = 0; k < plan->tiles; k++) {
        const bh_block block = sp_bh_plan_block(plan, k);
        const unsigned char *kept = slot + plan->kept_offset + plan->kept_stride * k;
        for (uint32_t y = 0; y < block.rows * SP_CELL; y++, kept += plan->kept_pitch) {
            const size_t row = (size_t)(block.y * SP_CELL + y) * plan->width + block.x * SP_CELL;
            for (uint32_t x = 0; x < block.cols * SP_CELL; x += 8)
                for (uint32_t bits = kept[x / 8]; bits; bits &= bits - 1) {
                    const size_t i = row + x + (size_t)__builtin_ctz(bits);
                    suppressed[i] = scores[i];
                }
        }
    }
}

/* [plane][row][pixel][16] of fp16 with the ring, to [cell][256]. */
static void expand_descriptors(const bh_plan *plan, const unsigned char *slot, float *descriptors) {
    const uint32_t pitch = sp_bh_plan_descriptor_pitch(plan);
    for (uint32_t k = 0; k < plan->tiles; k++) {
        const bh_block block = sp_bh_plan_block(plan, k);
        const unsigned char *from = slot + sp_bh_plan_descriptors_at(plan, k);
        for (uint32_t plane = 0; plane < SP_DESCRIPTOR_DIM / PLANE_CHANNELS; plane++, from += block.rows * pitch)
            for (uint32_t y = 0; y < block.rows; y++)
                for (uint32_t x = 0; x < block.cols; x++) {
                    uint16_t halves[PLANE_CHANNELS];
                    memcpy(halves, from + y * pitch + (x + 1) * PIXEL_BYTES, sizeof halves);
                    const size_t cell = (size_t)(block.y + y) * plan->cells_x + block.x + x;
                    float *to = descriptors + cell * SP_DESCRIPTOR_DIM + plane * PLANE_CHANNELS;
                    for (uint32_t c = 0; c < PLANE_CHANNELS; c++)
                        to[c] = bh_float_of_half(halves[c]);
                }
    }
}

void sp_bh_expand_results(const bh_plan *plan, const unsigned char *slot, float *scores, float *suppressed,
                          float *descriptors) {
    memcpy(scores, slot + plan->scores_offset, (size_t)plan->width * plan->height * sizeof *scores);
    if (suppressed)
        expand_suppressed(plan, slot, scores, suppressed);
    expand_descriptors(plan, slot, descriptors);
}
