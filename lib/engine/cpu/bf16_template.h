/*
 * The kernels in bf16. Included once for each level, which defines accumulate, PREFETCH (blocks.h), first_enter,
 * first_sums (first_block.h) and peak, and
 *   ENTER LEAVE  what a thread does before and after
 *   LEVEL NAME   of the table
 */
#include "engine/cpu/blocks.h"
#include "engine/cpu/first_block.h"
#include "engine/cpu/outputs_template.h"

static void conv(const sp_packed *packed, const sp_strip *strip) {
    convolve(packed, strip, 0, FLOAT_TO_BF16);
}

static void conv_pool(const sp_packed *packed, const sp_strip *strip) {
    convolve(packed, strip, 1, FLOAT_TO_BF16);
}

static void head(const sp_packed *packed, const sp_strip *strip, float *const *out, size_t stride) {
    const sink to = {.strip = strip, .floats = out, .stride = stride};
    walk(packed, &to, 1, 0, FLOAT_TO_FLOAT);
}

static void first(const sp_packed *packed, const uint8_t *const pixels[3], uint32_t width, uint8_t *out,
                  size_t out_pitch, void *room) {
    first_row(packed, pixels, width, out, out_pitch, room, 0);
}

const sp_kernels NAME = {.level = LEVEL,
                         .precision = SP_PRECISION_BF16,
                         .lanes = SP_LANES(SP_BF16_LANES),
                         .rows = 2,
                         .scratch_bytes = 2 * 4 * BLOCK_WORDS * sizeof(float),
                         .packed_bytes = sp_bf16_packed_bytes,
                         .pack = sp_bf16_pack,
                         .enter = ENTER,
                         .leave = LEAVE,
                         .first = first,
                         .conv = conv,
                         .conv_pool = conv_pool,
                         .head = head,
                         .scores = scores,
                         .normalise = normalise,
                         .peak = peak};
