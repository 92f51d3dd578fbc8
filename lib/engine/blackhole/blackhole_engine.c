/*
 * The Blackhole engine behind the engine interface: owns transport and device.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "check.h"
#include "engine/engine.h"
#include "environment.h"
#include "estimate.h"

enum { PHASES = 3 };

typedef struct state {
    char description[192]; /* of the device */
    bh_transport *transport;
    bh_device *device;
    bool suppress;
    char level[128];
} state;

static void destroy(void *opaque) {
    state *s = opaque;
    if (!s)
        return;
    sp_bh_device_free(s->device);
    if (s->transport)
        s->transport->close(s->transport);
    free(s);
}

static sp_status open_chip(state *s, const sp_model *model, const sp_engine_options *options, sp_error *err) {
    bh_config config = {.phases = PHASES, .layer_by_layer = options->legacy};
    config.suppress = !options->legacy && options->nms_radius == (int32_t)SUPPRESS_RADIUS;
    s->suppress = config.suppress;
    sp_status status = sp_bh_read_grid(&config, err);
    if (status == SP_OK)
        status = sp_bh_open_chip(options, &s->transport, err);
    bh_firmware firmware;
    sp_bh_firmware_get(&firmware);
    bh_weights weights = {0};
    if (status == SP_OK)
        status = sp_bh_weights_make(sp_model_weights(model), &weights, err);
    if (status == SP_OK)
        status = sp_bh_device_make(s->transport, &firmware, &weights, &config, &s->device, err);
    sp_bh_weights_free(&weights);
    return status == SP_OK ? sp_bh_device_prepare(s->device, options->width, options->height, err) : status;
}

static sp_status create(const sp_model *model, const sp_engine_options *options, void **out, sp_engine_info *info,
                        sp_error *err) {
    if (info->precision != SP_PRECISION_AUTO && info->precision != SP_PRECISION_FP16)
        return sp_fail(err, SP_ERR_UNAVAILABLE, "engine blackhole: has only fp16");
    state *s = calloc(1, sizeof *s);
    if (!s)
        return sp_fail_memory(err, "blackhole engine", sizeof *s);
    sp_status status = open_chip(s, model, options, err);
    if (status != SP_OK) {
        destroy(s);
        return status;
    }
    snprintf(s->level, sizeof s->level, "firmware %u, %s", TILE_VERSION, s->transport->chip.versions);
    const bh_chip *chip = &s->transport->chip;
    snprintf(s->description, sizeof s->description, "%s: %u of %zu tiles, %u MHz", chip->name,
             sp_bh_device_plan(s->device)->tiles, chip->tiles, chip->clock_mhz);
    info->device = s->description;
    info->level = s->level;
    info->precision = SP_PRECISION_FP16;
    info->threads = sp_bh_device_plan(s->device)->tiles;
    info->traced = !options->legacy;
    info->device_nms = s->suppress;
    info->nms_radius = s->suppress ? (int32_t)SUPPRESS_RADIUS : 0;
    info->fused_stages =
        s->suppress ? "convolutions,softmax,suppression,normalisation" : "convolutions,softmax,normalisation";
    *out = s;
    return SP_OK;
}

static void collect(state *s, sp_maps *maps) {
    float *suppressed = s->suppress ? sp_maps_room_for_suppressed(maps) : NULL;
    sp_bh_device_collect(s->device, maps->scores, suppressed, maps->descriptors);
    if (suppressed) {
        maps->suppressed = suppressed;
        maps->nms_radius = (int32_t)SUPPRESS_RADIUS;
    }
}

static sp_status upload(state *s, const sp_frame *frame, sp_error *err) {
    return sp_bh_device_upload(s->device, frame->pixels, frame->stride, err);
}

/* Run `frame`, which has been uploaded or not; meanwhile upload `next`, which has the same size, or is NULL. */
static sp_status run_frame(state *s, const sp_frame *frame, bool uploaded, const sp_frame *next, sp_maps *maps,
                           sp_error *err) {
    sp_status status = sp_bh_device_prepare(s->device, frame->width, frame->height, err);
    if (status == SP_OK && !uploaded)
        status = upload(s, frame, err);
    if (status == SP_OK)
        status = sp_bh_device_start(s->device, err);
    if (status == SP_OK && next)
        status = upload(s, next, err);
    if (status == SP_OK)
        status = sp_bh_device_finish(s->device, err);
    if (status == SP_OK)
        collect(s, maps);
    else
        sp_bh_device_stop(s->device);
    return status;
}

static sp_status run(void *opaque, const sp_frame *frame, sp_maps *maps, sp_error *err) {
    return run_frame(opaque, frame, false, NULL, maps, err);
}

static sp_status run_many(void *opaque, const sp_frame *const *frames, size_t n, sp_maps *maps, sp_error *err) {
    bool uploaded = false;
    sp_status status = SP_OK;
    for (size_t i = 0; i < n && status == SP_OK; i++) {
        const bool same =
            i + 1 < n && frames[i + 1]->width == frames[i]->width && frames[i + 1]->height == frames[i]->height;
        const double start = sp_now_ms();
        status = run_frame(opaque, frames[i], uploaded, same ? frames[i + 1] : NULL, &maps[i], err);
        maps[i].forward_ms = sp_now_ms() - start;
        uploaded = same;
    }
    return status;
}

/* A board of 140 tiles at full clock, unless a grid is forced. */
static sp_status estimate(const sp_engine_options *options, sp_frame_estimate *out, sp_error *err) {
    enum { TILES = 140, FEEDERS = 2, CLOCK_MHZ = 1350 };
    bh_config config = {.phases = PHASES};
    bh_plan plan;
    sp_status status = sp_bh_read_grid(&config, err);
    if (status == SP_OK)
        status = sp_bh_plan_make(options->width, options->height, config.grid_rows ? TILES : TILES - FEEDERS,
                                 config.grid_rows, config.grid_cols, PHASES, &plan, err);
    if (status == SP_OK)
        sp_bh_estimate(&plan, CLOCK_MHZ, plan.tiles + FEEDERS <= TILES, out);
    return status;
}

const sp_engine_kind sp_engine_blackhole = {.name = "blackhole",
                                            .probe = sp_bh_find_chip,
                                            .create = create,
                                            .run = run,
                                            .destroy = destroy,
                                            .run_many = run_many,
                                            .estimate = estimate,
                                            .check = sp_bh_check};
