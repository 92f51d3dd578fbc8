#include "engine/engine.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/cpu.h"
#include "base/error.h"

struct sp_engine {
    const sp_engine_kind *kind;
    void *state;
    sp_engine_info info;
};

/* In the order in which "auto" asks them. The reference is never chosen by itself. */
static const sp_engine_kind *const kinds[] = {
#ifdef SP_ENGINE_BLACKHOLE
    &sp_engine_blackhole,
#endif
#ifdef SP_ENGINE_CPU
    &sp_engine_cpu,
#endif
    &sp_engine_reference};

void sp_engine_options_default(sp_engine_options *options) {
    *options = (sp_engine_options){
        .struct_size = sizeof *options, .engine = "auto", .width = 640, .height = 480, .nms_radius = 4};
}

const char *sp_precision_text(sp_precision precision) {
    static const char *const names[] = {"auto", "fp32", "bf16", "int8", "fp16"};
    return (size_t)precision < sizeof names / sizeof names[0] ? names[precision] : "?";
}

/* The caller's options over the defaults: fields beyond the caller's struct_size keep theirs. */
static sp_status complete(const sp_engine_options *given, sp_engine_options *options, sp_error *err) {
    sp_engine_options_default(options);
    if (given) {
        if (given->struct_size < sizeof(size_t) || given->struct_size > sizeof *options)
            return sp_fail(err, SP_ERR_ARGUMENT, "engine options: struct_size %zu is not of this version",
                           given->struct_size);
        memcpy(options, given, given->struct_size);
        options->struct_size = sizeof *options;
    }
    if (!options->engine || !*options->engine)
        options->engine = "auto";
    if (!options->width || !options->height)
        options->width = 640, options->height = 480;
    if (!options->threads)
        options->threads = sp_cpu_count();
    if ((unsigned)options->precision > SP_PRECISION_FP16)
        return sp_fail(err, SP_ERR_ARGUMENT, "precision: %d is not known", (int)options->precision);
    if (options->nms_radius < 0 || options->nms_radius > SP_MAX_NMS_RADIUS)
        return sp_fail(err, SP_ERR_ARGUMENT, "nms_radius: %d is not within 0...%d", options->nms_radius,
                       SP_MAX_NMS_RADIUS);
    return SP_OK;
}

const char *const *sp_engine_names(void) {
    static const char *const names[] = {
#ifdef SP_ENGINE_BLACKHOLE
        "blackhole",
#endif
#ifdef SP_ENGINE_CPU
        "cpu",
#endif
        "reference", NULL};
    return names;
}

sp_status sp_engine_probe(const char *engine, sp_error *err) {
    sp_engine_options options;
    sp_engine_options_default(&options);
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (strcmp(engine, kinds[i]->name) == 0)
            return kinds[i]->probe(&options, err);
    return sp_fail(err, SP_ERR_NOT_FOUND, "engine: %s is not part of this build", engine);
}

/* The first that can run here with these options. Where none can, what the last of them says is what to mend. */
static sp_status choose_automatically(const sp_engine_options *options, const sp_engine_kind **kind, sp_error *err) {
    sp_status status = sp_fail(err, SP_ERR_UNAVAILABLE, "engine: this build has none but the reference");
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (kinds[i] == &sp_engine_reference)
            continue;
        status = kinds[i]->probe(options, err);
        if (status == SP_OK) {
            *kind = kinds[i];
            return SP_OK;
        }
    }
    return status;
}

static sp_status choose(const sp_engine_options *options, const sp_engine_kind **kind, sp_error *err) {
    if (strcmp(options->engine, "auto") == 0)
        return choose_automatically(options, kind, err);
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (strcmp(options->engine, kinds[i]->name) == 0) {
            *kind = kinds[i];
            return kinds[i]->probe(options, err);
        }
    return sp_fail(err, SP_ERR_NOT_FOUND, "engine: %s is not known; there are auto, blackhole, cpu and reference",
                   options->engine);
}

sp_status sp_engine_create(const sp_model *model, const sp_engine_options *given, sp_engine **out, sp_error *err) {
    *out = NULL;
    if (!model)
        return sp_fail(err, SP_ERR_ARGUMENT, "engine: no model was given");
    sp_engine_options options;
    const sp_engine_kind *kind = NULL;
    sp_status status = complete(given, &options, err);
    if (status == SP_OK)
        status = choose(&options, &kind, err);
    if (status != SP_OK)
        return status;
    sp_engine *engine = calloc(1, sizeof *engine);
    if (!engine)
        return sp_fail_memory(err, "engine", sizeof *engine);
    engine->kind = kind;
    engine->info = (sp_engine_info){.engine = kind->name,
                                    .device = "",
                                    .level = "",
                                    .precision = options.precision,
                                    .threads = options.threads,
                                    .fused_stages = ""};
    status = kind->create(model, &options, &engine->state, &engine->info, err);
    if (status != SP_OK) {
        free(engine);
        return status;
    }
    *out = engine;
    return sp_succeed(err);
}

void sp_engine_free(sp_engine *engine) {
    if (!engine)
        return;
    engine->kind->destroy(engine->state);
    free(engine);
}

const sp_engine_info *sp_engine_get_info(const sp_engine *engine) {
    return &engine->info;
}

static sp_status check_and_shape(const sp_frame *frame, sp_maps *maps, sp_error *err) {
    sp_status status = sp_frame_check(frame, err);
    return status == SP_OK ? sp_maps_shape(maps, frame->width, frame->height, err) : status;
}

static sp_status run_one(sp_engine *engine, const sp_frame *frame, sp_maps *maps, sp_error *err) {
    sp_status status = check_and_shape(frame, maps, err);
    double start = sp_now_ms();
    if (status == SP_OK)
        status = engine->kind->run(engine->state, frame, maps, err);
    maps->forward_ms = sp_now_ms() - start;
    return status;
}

sp_status sp_engine_run(sp_engine *engine, const sp_frame *const *frames, size_t n, sp_maps *maps, sp_error *err) {
    const bool overlap = engine->kind->run_many && n > 1;
    sp_status status = SP_OK;
    for (size_t i = 0; i < n && status == SP_OK; i++)
        status = overlap ? check_and_shape(frames[i], &maps[i], err) : run_one(engine, frames[i], &maps[i], err);
    if (overlap && status == SP_OK)
        status = engine->kind->run_many(engine->state, frames, n, maps, err);
    return status == SP_OK ? sp_succeed(err) : status;
}

const char *sp_unit_text(sp_unit unit) {
    static const char *const names[SP_UNITS] = {"matrix", "vector", "unpack",  "pack",
                                                "scalar", "tail",   "network", "memory"};
    return (size_t)unit < SP_UNITS ? names[unit] : "?";
}

/* The engine named in the options, without asking whether it can run here. */
static const sp_engine_kind *find(const char *name) {
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (strcmp(kinds[i]->name, name) == 0)
            return kinds[i];
    return NULL;
}

sp_status sp_engine_estimate(const sp_engine_options *given, sp_frame_estimate *estimate, sp_error *err) {
    sp_engine_options options;
    memset(estimate, 0, sizeof *estimate);
    sp_status status = complete(given, &options, err);
    if (status != SP_OK)
        return status;
    const sp_engine_kind *kind = find(options.engine);
    if (!kind || !kind->estimate)
        return sp_fail(err, SP_ERR_UNAVAILABLE, "engine %s: predicts nothing", options.engine);
    return kind->estimate(&options, estimate, err);
}

sp_status sp_engine_check(const sp_model *model, const sp_engine_options *given, bool reset, sp_check_report *report,
                          void *context, sp_error *err) {
    sp_engine_options options;
    sp_status status = complete(given, &options, err);
    if (status != SP_OK)
        return status;
    const sp_engine_kind *kind = find(options.engine);
    if (!kind || !kind->check)
        return sp_fail(err, SP_ERR_UNAVAILABLE, "engine %s: has no device to bring up", options.engine);
    return kind->check(model, &options, reset, report, context, err);
}
