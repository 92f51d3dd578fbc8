/* The plain reference behind the engine interface: what `validate` holds the fast engines against. */
#include <stdlib.h>

#include "base/error.h"
#include "engine/engine.h"
#include "reference.h"

typedef struct state {
    const sp_weights *weights;
} state;

static sp_status probe(const sp_engine_options *options, sp_error *err) {
    (void)options;
    return sp_succeed(err);
}

static sp_status create(const sp_model *model, const sp_engine_options *options, void **out, sp_engine_info *info,
                        sp_error *err) {
    (void)options;
    if (info->precision != SP_PRECISION_AUTO && info->precision != SP_PRECISION_FP32)
        return sp_fail(err, SP_ERR_UNAVAILABLE, "engine reference: has only fp32");
    state *s = malloc(sizeof *s);
    if (!s)
        return sp_fail_memory(err, "reference engine", sizeof *s);
    s->weights = sp_model_weights(model);
    info->device = "plain C";
    info->level = "c";
    info->precision = SP_PRECISION_FP32;
    info->threads = 1;
    *out = s;
    return SP_OK;
}

static sp_status run(void *opaque, const sp_frame *frame, sp_maps *maps, sp_error *err) {
    const state *s = opaque;
    if (!sp_reference_forward(s->weights, frame->pixels, frame->stride, frame->width, frame->height, maps->scores,
                              maps->descriptors))
        return sp_fail(err, SP_ERR_MEMORY, "reference engine: out of memory for a frame of %u x %u", frame->width,
                       frame->height);
    return SP_OK;
}

static void destroy(void *opaque) {
    free(opaque);
}

const sp_engine_kind sp_engine_reference = {
    .name = "reference", .probe = probe, .create = create, .run = run, .destroy = destroy};
