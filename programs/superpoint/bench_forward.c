/*
 * The forward pass, every engine that can be made here beside the others: each round runs each of them
 * once, so that what else the machine does falls on all alike.
 */
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "common/clock.h"

enum { MAX_CASES = 64 };

typedef struct bench_case {
    sp_engine *engine;
    sp_maps maps;
    double peak; /* multiply-adds a second; 0: not known */
    bench_times *times;
} bench_case;

typedef struct cases {
    bench_case list[MAX_CASES];
    int count;
} cases;

/* Add an engine if this machine can have it, and if it is not one that is there already: a level without
 * kernels of its own falls back to the one below. */
static sp_status add_case(cases *all, const sp_model *model, const sp_engine_options *options, sp_error *err) {
    sp_engine *engine = NULL;
    sp_status status = all->count < MAX_CASES ? sp_engine_create(model, options, &engine, err) : SP_ERR_UNAVAILABLE;
    if (status != SP_OK)
        return status == SP_ERR_UNAVAILABLE ? SP_OK : status;
    const sp_engine_info *info = sp_engine_get_info(engine);
    bool known = options->level && strcmp(info->level, options->level) != 0;
    bench_times *times = known ? NULL : calloc(1, sizeof *times);
    if (!times) {
        sp_engine_free(engine);
        return SP_OK;
    }
    all->list[all->count++] = (bench_case){.engine = engine, .times = times};
    return SP_OK;
}

static sp_status add_precisions(cases *all, const sp_model *model, sp_engine_options *options, sp_precision wanted,
                                sp_error *err) {
    sp_status status = SP_OK;
    for (int p = SP_PRECISION_FP32; status == SP_OK && p <= SP_PRECISION_FP16; p++) {
        options->precision = (sp_precision)p;
        if (wanted == SP_PRECISION_AUTO || (int)wanted == p)
            status = add_case(all, model, options, err);
    }
    return status;
}

/* Levels of the CPU engine, from best to plain; other engines have one. */
static sp_status add_engine(cases *all, const bench_options *o, const sp_model *model, const char *name,
                            uint32_t threads, sp_error *err) {
    sp_engine_options options = o->setup.engine;
    options.engine = name;
    options.threads = threads;
    options.width = o->params.width;
    options.height = o->params.height;
    if (strcmp(name, "cpu") != 0 || options.level)
        return add_precisions(all, model, &options, o->setup.engine.precision, err);
    sp_status status = SP_OK;
    for (const char *const *level = sp_cpu_levels(); status == SP_OK && *level; level++)
        if (sp_cpu_level_available(*level)) {
            options.level = *level;
            status = add_precisions(all, model, &options, o->setup.engine.precision, err);
        }
    return status;
}

static sp_status add_all(cases *all, const bench_options *o, const sp_model *model, sp_error *err) {
    const char *wanted = o->setup.engine.engine;
    const bool any = !wanted || strcmp(wanted, "auto") == 0;
    const uint32_t asked = o->setup.engine.threads, most = sp_cpu_count();
    sp_status status = SP_OK;
    for (const char *const *name = sp_engine_names(); status == SP_OK && *name; name++) {
        if (any ? strcmp(*name, "reference") == 0 : strcmp(*name, wanted) != 0)
            continue; /* the reference takes seconds: only when it is asked for by name */
        if (sp_engine_probe(*name, err) != SP_OK)
            continue;
        status = add_engine(all, o, model, *name, asked ? asked : 1, err);
        if (status == SP_OK && !asked && most > 1)
            status = add_engine(all, o, model, *name, most, err);
    }
    return status;
}

static sp_status run_round(cases *all, const sp_frame *frame, bool record, sp_error *err) {
    for (int i = 0; i < all->count; i++) {
        bench_case *c = &all->list[i];
        const sp_engine_info *info = sp_engine_get_info(c->engine);
        double peak;
        if (strcmp(info->engine, "cpu") == 0 &&
            sp_cpu_measure_peak(info->level, info->precision, info->threads, &peak, NULL) == SP_OK && peak > c->peak)
            c->peak = peak;
        const double start = now_ms();
        sp_status status = sp_engine_run(c->engine, &frame, 1, &c->maps, err);
        if (status != SP_OK)
            return status;
        if (record)
            bench_record(c->times, now_ms() - start);
    }
    return SP_OK;
}

static json_t *row(const bench_case *c, const sp_frame *frame) {
    const sp_engine_info *info = sp_engine_get_info(c->engine);
    const double least = bench_least(c->times);
    const double rate = (double)sp_forward_multiplications(frame->width, frame->height) / least * 1e3;
    json_t *object = json_pack("{s:s, s:s, s:s, s:s, s:i, s:[i, i], s:f, s:f, s:i}", "name", "forward", "engine",
                               info->engine, "level", info->level, "precision", sp_precision_text(info->precision),
                               "threads", (int)info->threads, "size", (int)frame->height, (int)frame->width, "min_ms",
                               least, "median_ms", bench_median(c->times), "rounds", c->times->count);
    json_object_set_new(object, "gmac_per_s", json_real(rate / 1e9));
    json_object_set_new(object, "peak_gmac_per_s", c->peak > 0 ? json_real(c->peak / 1e9) : json_null());
    json_object_set_new(object, "peak_share", c->peak > 0 ? json_real(rate / c->peak) : json_null());
    return object;
}

sp_status bench_forward(const bench_options *o, const sp_model *model, const sp_frame *frame, json_t *results,
                        sp_error *err) {
    cases *all = calloc(1, sizeof *all);
    if (!all)
        return SP_ERR_MEMORY;
    sp_status status = add_all(all, o, model, err);
    if (status == SP_OK)
        status = run_round(all, frame, false, err);
    const double end = now_ms() + 1e3 * o->seconds;
    for (int round = 0; status == SP_OK && (round < 2 || now_ms() < end) && round < BENCH_MAX_ROUNDS; round++)
        status = run_round(all, frame, true, err);
    for (int i = 0; i < all->count; i++) {
        bench_case *c = &all->list[i];
        if (status == SP_OK)
            json_array_append_new(results, row(c, frame));
        sp_engine_free(c->engine);
        sp_maps_free(&c->maps);
        free(c->times);
    }
    free(all);
    return status;
}
