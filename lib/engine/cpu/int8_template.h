/*
 * The kernels in mixed precision (int8.h). Included once for each level, which defines what bf16_template.h asks
 * for, and BF16, the table of the same level in bf16: for the layers that are not in int8.
 */
#include "engine/cpu/blocks.h"
#include "engine/cpu/first_block.h"

static void conv(const sp_packed *packed, const sp_strip *strip) {
    if (sp_int8_index(packed->layer) < SP_INT8_LAST)
        convolve(packed, strip, 0, INT_TO_BYTES);
    else
        BF16.conv(packed, strip);
}

static void conv_pool(const sp_packed *packed, const sp_strip *strip) {
    if (sp_int8_index(packed->layer) < SP_INT8_LAST)
        convolve(packed, strip, 1, INT_TO_BYTES);
    else
        convolve(packed, strip, 1, INT_TO_BF16);
}

static void first(const sp_packed *packed, const uint8_t *const pixels[3], uint32_t width, uint8_t *out,
                  size_t out_pitch, void *room) {
    first_row(packed, pixels, width, out, out_pitch, room, 1);
}

static void head(const sp_packed *packed, const sp_strip *strip, float *const *out, size_t stride) {
    BF16.head(packed, strip, out, stride);
}

static void scores(float *logits, uint32_t cells, float *out, size_t stride) {
    BF16.scores(logits, cells, out, stride);
}

static void normalise(float *descriptors, uint32_t cells) {
    BF16.normalise(descriptors, cells);
}

const sp_kernels NAME = {.level = LEVEL,
                         .precision = SP_PRECISION_INT8,
                         .lanes = SP_INT8_ALL_LANES,
                         .needs_int8_weights = true,
                         .rows = 2,
                         .scratch_bytes = 2 * 4 * BLOCK_WORDS * sizeof(float),
                         .packed_bytes = sp_int8_packed_bytes,
                         .pack = sp_int8_pack,
                         .enter = ENTER,
                         .leave = LEAVE,
                         .first = first,
                         .conv = conv,
                         .conv_pool = conv_pool,
                         .head = head,
                         .scores = scores,
                         .normalise = normalise,
                         .peak = peak};
