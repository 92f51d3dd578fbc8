/* The whole forward pass at each level and precision against the reference. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/pool.h"
#include "check.h"
#include "engine/cpu/plan.h"
#include "engine/engine.h"
#include "model/model.h"
#include "reference.h"

/* What a precision promises beside the reference: the largest difference of a score or a descriptor's element, and
 * the smallest correlations. Flat frames have nothing to correlate. */
typedef struct bounds {
    double difference, scores, descriptors;
} bounds;

typedef struct promise {
    sp_precision precision;
    bounds noise, photograph;
} promise;

static const promise promises[] = {
    {SP_PRECISION_FP32, {1e-5, 0.999999, 0.999999}, {1e-5, 0.999999, 0.999999}},
    /* its steps are those of photographs, not of noise or stripes, where this only sees that nothing is grossly wrong
     * (check_int8.c looks at every bit); the gates of `superpoint validate` */
    {SP_PRECISION_INT8, {0.3, 0.90, 0.97}, {0.03, 0.9971, 0.9991}},
    /* the gates, and what eight significant bits should do on a photograph */
    {SP_PRECISION_BF16, {0.03, 0.9971, 0.9991}, {0.02, 0.9995, 0.9998}},
};

/* Narrow, odd numbers of cells, one cell, enough rows for several bands, and wide enough for several columns. */
static const uint32_t sizes[][2] = {{8, 8}, {24, 16}, {72, 40}, {168, 104}, {16, 264}, {2056, 8}};
enum { PHOTOGRAPH_SIZE = 3 };

typedef enum filling { RANDOM, BLACK, WHITE, STRIPES, PHOTOGRAPH, FILLINGS } filling;
static const char *const filling_names[] = {"random", "black", "white", "stripes", "photograph"};

/* The sample picture, as large as the frame. */
static bool put_photograph(const sp_frame *frame) {
    void *bytes = NULL;
    size_t size = 0;
    sp_frame photograph = {0};
    sp_params params;
    sp_params_default(&params);
    params.width = frame->width;
    params.height = frame->height;
    const bool ok = sp_file_read("sample_data/bridge.jpg", (size_t)1 << 24, &bytes, &size, NULL) == SP_OK &&
                    sp_frame_decode(bytes, size, &params, &photograph, NULL, NULL) == SP_OK;
    for (uint32_t y = 0; ok && y < frame->height; y++)
        memcpy(frame->pixels + y * frame->stride, photograph.pixels + y * photograph.stride, frame->width);
    sp_frame_free(&photograph);
    free(bytes);
    return ok;
}

static sp_frame make_frame(check *c, uint32_t width, uint32_t height, filling kind) {
    const size_t stride = (size_t)width + 5; /* rows need not be next to each other */
    sp_frame frame = {.width = width,
                      .height = height,
                      .content_width = width,
                      .content_height = height,
                      .original_width = width,
                      .original_height = height,
                      .scale_x = 1,
                      .scale_y = 1,
                      .stride = stride,
                      .pixels = malloc(stride * height)};
    for (size_t i = 0; frame.pixels && i < stride * height; i++)
        frame.pixels[i] = kind == RANDOM  ? (uint8_t)check_random(c)
                          : kind == BLACK ? 0
                          : kind == WHITE ? 255
                                          : (uint8_t)(i / 3 % 2 * 255);
    if (kind == PHOTOGRAPH)
        check_that(c, frame.pixels && put_photograph(&frame), "the sample picture cannot be read");
    return frame;
}

static bool run(const sp_model *model, const sp_engine_options *options, const sp_frame *frame, sp_maps *maps) {
    sp_error err;
    sp_engine *engine = NULL;
    const bool ok = sp_engine_create(model, options, &engine, &err) == SP_OK &&
                    sp_engine_run(engine, &frame, 1, maps, &err) == SP_OK;
    if (!ok)
        printf("%s\n", err.text);
    sp_engine_free(engine);
    return ok;
}

static bool same_bytes(const sp_maps *a, const sp_maps *b) {
    const size_t pixels = (size_t)a->width * a->height;
    return memcmp(a->scores, b->scores, pixels * sizeof(float)) == 0 &&
           memcmp(a->descriptors, b->descriptors, 4 * pixels * sizeof(float)) == 0;
}

static void compare(check *c, const sp_model *model, sp_cpu_level level, const promise *promised, const sp_frame *frame,
                    const sp_maps *expected, filling kind) {
    const size_t pixels = (size_t)frame->width * frame->height;
    const char *what = filling_names[kind];
    const bounds *bound = kind == PHOTOGRAPH ? &promised->photograph : &promised->noise;
    const bool correlated = kind == RANDOM || kind == PHOTOGRAPH || promised->precision == SP_PRECISION_FP32;
    const char *name = sp_cpu_level_text(level), *precision = sp_precision_text(promised->precision);
    sp_engine_options options;
    sp_engine_options_default(&options);
    options.engine = "cpu";
    options.level = name;
    options.precision = promised->precision;
    options.threads = 1;
    options.width = frame->width;
    options.height = frame->height;
    sp_maps maps = {0}, others = {0};
    const bool ran = run(model, &options, frame, &maps);
    check_that(c, ran, "%s %s does not run", name, precision);
    if (ran) {
        const double ds = check_largest_difference(maps.scores, expected->scores, pixels);
        const double dd = check_largest_difference(maps.descriptors, expected->descriptors, 4 * pixels);
        const double cs = sp_reference_correlation(maps.scores, expected->scores, pixels);
        const double cd = sp_reference_correlation(maps.descriptors, expected->descriptors, 4 * pixels);
        check_that(c,
                   ds <= bound->difference && dd <= bound->difference &&
                       (!correlated || (cs >= bound->scores && cd >= bound->descriptors)),
                   "%s %s %ux%u %s: scores differ by %.3g, correlate %.7f; descriptors %.3g, %.7f", name, precision,
                   frame->width, frame->height, what, ds, cs, dd, cd);
        for (uint32_t threads = 2; threads <= 5; threads += 3) {
            options.threads = threads;
            check_that(c, run(model, &options, frame, &others) && same_bytes(&maps, &others),
                       "%s %s %ux%u %s: %u threads give other bytes", name, precision, frame->width, frame->height,
                       what, threads);
        }
    }
    sp_maps_free(&maps);
    sp_maps_free(&others);
}

/* Whether there are such kernels, this machine has what they need, and so have the weights. */
static bool can_run(const sp_model *model, sp_cpu_level level, sp_precision precision) {
    const sp_kernels *k = sp_kernels_find(level, precision);
    return sp_cpu_has(level) && k && (!k->needs_int8_weights || sp_model_weights(model)->int8);
}

/* Levels and precisions of this machine on one frame. */
static void check_frame(check *c, const sp_model *model, uint32_t width, uint32_t height, filling kind) {
    sp_frame frame = make_frame(c, width, height, kind);
    sp_maps expected = {0};
    sp_engine_options options;
    sp_engine_options_default(&options);
    options.engine = "reference";
    options.precision = SP_PRECISION_FP32;
    const bool ran = frame.pixels && run(model, &options, &frame, &expected);
    check_that(c, ran, "the reference does not run");
    for (int level = SP_CPU_C; ran && level <= SP_CPU_NEON; level++)
        for (size_t b = 0; b < sizeof promises / sizeof promises[0]; b++)
            if (can_run(model, (sp_cpu_level)level, promises[b].precision))
                compare(c, model, (sp_cpu_level)level, &promises[b], &frame, &expected, kind);
    sp_maps_free(&expected);
    free(frame.pixels);
}

/* Bands of every height give the bytes of the whole frame at once. */
static void check_bands(check *c, const sp_model *model) {
    sp_frame frame = make_frame(c, 24, 200, RANDOM);
    sp_pool *pool = NULL;
    sp_maps whole = {0}, banded = {0};
    bool ready = sp_pool_create(2, &pool, NULL) == SP_OK && sp_maps_alloc(24, 200, &whole, NULL) == SP_OK &&
                 sp_maps_alloc(24, 200, &banded, NULL) == SP_OK;
    const sp_precision precision =
        sp_kernels_find(sp_cpu_best(), SP_PRECISION_BF16) ? SP_PRECISION_BF16 : SP_PRECISION_FP32;
    for (uint32_t cells = 0; ready && cells <= 25; cells++) {
        sp_plan *plan = NULL;
        ready = sp_plan_create(sp_model_weights(model), sp_kernels_find(sp_cpu_best(), precision), pool, cells, &plan,
                               NULL) == SP_OK &&
                sp_plan_run(plan, &frame, cells ? &banded : &whole, NULL) == SP_OK;
        sp_plan_free(plan);
        check_that(c, ready && (!cells || same_bytes(&whole, &banded)), "bands of %u rows of cells give other bytes",
                   cells);
    }
    check_that(c, ready, "bands do not run");
    sp_maps_free(&whole);
    sp_maps_free(&banded);
    sp_pool_free(pool);
    free(frame.pixels);
}

void check_engines(check *c, const sp_model *model) {
    if (c->only && !strstr("engine", c->only))
        return;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        for (int kind = 0; kind < FILLINGS; kind++)
            if (kind == RANDOM || (kind == PHOTOGRAPH ? i == PHOTOGRAPH_SIZE : i == 2))
                check_frame(c, model, sizes[i][0], sizes[i][1], (filling)kind);
    check_bands(c, model);
}
