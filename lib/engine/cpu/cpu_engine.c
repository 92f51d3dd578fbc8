/* The network on the processor at hand. */
#include <stdlib.h>

#include "base/cpu.h"
#include "base/error.h"
#include "base/pool.h"
#include "engine/cpu/plan.h"
#include "engine/engine.h"

typedef struct state {
    sp_pool *pool;
    sp_plan *plan;
    char device[64];
} state;

/* The level to use: the options', else the environment's, else the best. */
static sp_status choose_level(const sp_engine_options *options, sp_cpu_level *level, sp_error *err) {
    const char *text = options->level, *source = "level";
    if (!text || !*text) {
        text = getenv("SUPERPOINT_CPU");
        source = "SUPERPOINT_CPU";
    }
    if (!text || !*text) {
        *level = sp_cpu_best();
        return SP_OK;
    }
    if (!sp_cpu_level_parse(text, level))
        return sp_fail(err, SP_ERR_ARGUMENT, "%s: %s is not known; there are c, avx2, avx512, avx512vnni, amx and neon",
                       source, text);
    if (!sp_cpu_has(*level))
        return sp_fail(err, SP_ERR_UNAVAILABLE, "%s: this machine cannot run %s, its best is %s", source, text,
                       sp_cpu_level_text(sp_cpu_best()));
    return SP_OK;
}

static sp_status probe(const sp_engine_options *options, sp_error *err) {
    sp_cpu_level level;
    return choose_level(options, &level, err);
}

/* The fastest precision that holds the accuracy gates (docs/performance.md has the measurements). */
static sp_precision automatic(sp_cpu_level level) {
    return level == SP_CPU_AMX ? SP_PRECISION_BF16 : SP_PRECISION_FP32;
}

static void destroy(void *opaque) {
    state *s = opaque;
    if (!s)
        return;
    sp_plan_free(s->plan);
    sp_pool_free(s->pool);
    free(s);
}

static sp_status create(const sp_model *model, const sp_engine_options *options, void **out, sp_engine_info *info,
                        sp_error *err) {
    sp_cpu_level level;
    sp_status status = choose_level(options, &level, err);
    if (status != SP_OK)
        return status;
    if (info->precision == SP_PRECISION_AUTO)
        info->precision = automatic(level);
    const sp_kernels *kernels = sp_kernels_find(level, info->precision);
    if (!kernels)
        return sp_fail(err, SP_ERR_UNAVAILABLE, "engine cpu: has no %s at level %s", sp_precision_text(info->precision),
                       sp_cpu_level_text(level));
    if (kernels->needs_int8_weights && !sp_model_weights(model)->int8)
        return sp_fail(err, SP_ERR_UNAVAILABLE,
                       "engine cpu: int8 needs the file NAME.int8 of these weights (train/calibrate.py makes it)");
    state *s = calloc(1, sizeof *s);
    if (!s)
        return sp_fail_memory(err, "CPU engine", sizeof *s);
    status = sp_pool_create(options->threads, &s->pool, err);
    if (status == SP_OK)
        status = sp_plan_create(sp_model_weights(model), kernels, s->pool, 0, &s->plan, err);
    if (status == SP_OK)
        status = sp_plan_prepare(s->plan, options->width, options->height, err);
    if (status != SP_OK) {
        destroy(s);
        return status;
    }
    sp_cpu_describe(s->device, sizeof s->device);
    info->device = s->device;
    info->level = sp_cpu_level_text(kernels->level);
    info->traced = !options->legacy;
    info->fused_stages = "conv1,encoder,softmax,normalise";
    *out = s;
    return SP_OK;
}

static sp_status run(void *opaque, const sp_frame *frame, sp_maps *maps, sp_error *err) {
    state *s = opaque;
    return sp_plan_run(s->plan, frame, maps, err);
}

const sp_engine_kind sp_engine_cpu = {.name = "cpu", .probe = probe, .create = create, .run = run, .destroy = destroy};
