/* The heads' second layers in bf16, in the blocks of blocks.h. */

/* Outputs o...o+31 at a time; the last 16 of the logits are computed twice over rather than by a kernel of their
 * own. */
static void head(const sp_packed *packed, const sp_strip *strip, float *const *out, size_t stride) {
    const uint32_t groups = packed->layer->in / SP_BF16_LANES;
    const uint32_t outs = (packed->layer->out + SP_OUT_UNIT - 1u) / SP_OUT_UNIT * SP_OUT_UNIT;
    block b = {.rows = strip->in,
               .pitch = strip->in_pitch,
               .groups = groups,
               .next = groups * WEIGHT_BYTES,
               .sums = strip->scratch};
    for (uint32_t at = 0; at < outs; at += BLOCK_OUTS) {
        b.o = at + BLOCK_OUTS <= outs ? at : outs - BLOCK_OUTS;
        b.w = (const uint8_t *)packed->weights + b.o / SP_OUT_UNIT * b.next;
        b.bias = packed->bias + b.o;
        for (b.x = 0; b.x < strip->width; b.x += BLOCK_PIXELS) {
            accumulate(&b, 1);
            for (int y = 0; y < 2 && out[y]; y++)
                for (uint32_t p = 0; p < pixels_left(b.x, strip->width); p++) {
                    const int32_t *s = b.sums + 2 * y * BLOCK_WORDS + p * 16;
                    float *to = out[y] + (b.x + p) * stride + b.o;
                    _mm512_storeu_si512(to, _mm512_load_si512(s));
                    _mm512_storeu_si512(to + 16, _mm512_load_si512(s + BLOCK_WORDS));
                }
        }
    }
}
