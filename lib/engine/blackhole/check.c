/*
 * Bring-up: from bytes that come back to whole frames. Each step uses what the ones before have shown, so that the
 * first that fails says where to look. A report of it is what an owner of a card can send in.
 */
#include "check.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "environment.h"
#include "estimate.h"
#include "model/model.h"
#include "reference.h"

enum { ECHO_BYTES = 4096, DRAM_ECHO_BYTES = 65536, DRAM_ECHO_AT = 0x100000, REPEATS = 50 };
/* Frames on few tiles, small enough to be compared with the plain reference at once. */
enum { SMALL_SIDE = 16, GRID_SIDE = 32 };
#define LEAST_PCC 0.9999
#define NOMINAL_MHZ 1350

typedef struct check {
    const sp_model *model;
    const sp_engine_options *options;
    sp_check_report *report;
    void *context;
    sp_error *err;
    bh_transport *transport;
    bh_firmware firmware;
    bh_weights weights;
    char seen[2048]; /* text of the step that runs; lines after the first are a table */
} check;

typedef sp_status check_step(check *c);

static void say(check *c, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void say(check *c, const char *format, ...) {
    const size_t used = strlen(c->seen);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(c->seen + used, sizeof c->seen - used, format, arguments);
    va_end(arguments);
}

static sp_status take(check *c, const char *name, check_step *step) {
    const double start = sp_now_ms();
    c->seen[0] = 0;
    const sp_status status = step(c);
    const sp_check_step result = {name, status, sp_now_ms() - start, status == SP_OK ? c->seen : c->err->text};
    c->report(c->context, &result);
    return status;
}

/* ------------------------------------------------------------------ memory and NoC ------------- */

static sp_status open_chip(check *c) {
    sp_status status = sp_bh_open_chip(c->options, &c->transport, c->err);
    if (status == SP_OK) {
        const bh_chip *chip = &c->transport->chip;
        say(c, "%s; %s; %zu tiles; %u MHz", chip->name, chip->versions, chip->tiles, chip->clock_mhz);
    }
    return status;
}

static void fill(unsigned char *bytes, size_t n, uint32_t seed) {
    for (size_t i = 0; i < n; i++) {
        seed = seed * 1664525u + 1013904223u;
        bytes[i] = (unsigned char)(seed >> 24);
    }
}

static sp_status echo(check *c, uint32_t at, uint64_t address, size_t n) {
    bh_transport *t = c->transport;
    unsigned char *out = malloc(n), *back = malloc(n);
    sp_status status = out && back ? SP_OK : sp_fail_memory(c->err, "echo", n);
    if (status == SP_OK) {
        fill(out, n, at + 1);
        status = t->write(t, at, address, out, n, c->err);
    }
    if (status == SP_OK)
        status = t->read(t, at, address, back, n, c->err);
    for (size_t i = 0; i < n && status == SP_OK; i++)
        if (out[i] != back[i])
            status =
                sp_fail(c->err, SP_ERR_ENGINE, "blackhole: (%u, %u): byte %zu at 0x%llx reads %02x instead of %02x",
                        NOC_X(at), NOC_Y(at), i, (unsigned long long)address, back[i], out[i]);
    free(out);
    free(back);
    return status;
}

static sp_status hold_tiles(check *c) {
    sp_status status = SP_OK;
    for (size_t k = 0; k < c->transport->chip.tiles && status == SP_OK; k++)
        status = c->transport->hold(c->transport, c->transport->chip.tile[k], c->err);
    say(c, "all cores of %zu tiles held in reset", c->transport->chip.tiles);
    return status;
}

static sp_status echo_l1(check *c) {
    sp_status status = SP_OK;
    for (size_t k = 0; k < c->transport->chip.tiles && status == SP_OK; k++)
        status = echo(c, c->transport->chip.tile[k], L1_BYTES - ECHO_BYTES, ECHO_BYTES);
    say(c, "%d bytes in each of %zu tiles came back", ECHO_BYTES, c->transport->chip.tiles);
    return status;
}

static sp_status echo_dram(check *c) {
    sp_status status = SP_OK;
    for (uint32_t b = 0; b < BH_BANKS && status == SP_OK; b++)
        status = echo(c, c->transport->chip.bank[b], DRAM_ECHO_AT, DRAM_ECHO_BYTES);
    say(c, "%d bytes in each of %d banks came back", DRAM_ECHO_BYTES, BH_BANKS);
    return status;
}

/* One write to a column of tiles arrives in each of them. */
static sp_status multicast(check *c) {
    bh_transport *t = c->transport;
    const uint32_t first = t->chip.tile[0];
    uint32_t last = first, value = 0x5EED1234, there = 0;
    for (size_t k = 0; k < t->chip.tiles; k++)
        if (NOC_X(t->chip.tile[k]) == NOC_X(first) && t->chip.tile[k] == NOC_AT(NOC_X(first), NOC_Y(last) + 1))
            last = t->chip.tile[k];
    sp_status status = t->multicast(t, first, last, ACTIVATIONS, &value, sizeof value, c->err);
    for (uint32_t y = NOC_Y(first); y <= NOC_Y(last) && status == SP_OK; y++) {
        status = t->read(t, NOC_AT(NOC_X(first), y), ACTIVATIONS, &there, sizeof there, c->err);
        if (status == SP_OK && there != value)
            status =
                sp_fail(c->err, SP_ERR_ENGINE, "blackhole: a multicast did not reach tile (%u, %u)", NOC_X(first), y);
    }
    say(c, "one write reached tiles (%u, %u) to (%u, %u)", NOC_X(first), NOC_Y(first), NOC_X(last), NOC_Y(last));
    return status;
}

/* ------------------------------------------------------------------ frames --------------------- */

typedef struct picture {
    uint32_t width, height;
    uint8_t *pixels;
    float *scores, *suppressed, *descriptors;
} picture;

static bool make_picture(picture *p, uint32_t width, uint32_t height) {
    const size_t n = (size_t)width * height;
    *p = (picture){width, height, malloc(n), malloc(n * 4), malloc(n * 4), malloc(n * 16)};
    if (!p->pixels || !p->scores || !p->suppressed || !p->descriptors)
        return false;
    fill(p->pixels, n, 7);
    for (size_t i = 0; i < n; i++) /* blocks with noise: corners, edges, all contrasts */
        p->pixels[i] = (uint8_t)((i / width / 8 + i % width / 8) % 2 * 160 + p->pixels[i] / 4);
    return true;
}

static void free_picture(picture *p) {
    free(p->pixels);
    free(p->scores);
    free(p->suppressed);
    free(p->descriptors);
}

static sp_status run_picture(bh_device *d, picture *p, sp_error *err) {
    sp_status status = sp_bh_device_upload(d, p->pixels, p->width, err);
    if (status == SP_OK)
        status = sp_bh_device_start(d, err);
    if (status == SP_OK)
        status = sp_bh_device_finish(d, err);
    if (status == SP_OK)
        sp_bh_device_collect(d, p->scores, p->suppressed, p->descriptors);
    return status;
}

static sp_status compare(check *c, const picture *p) {
    picture r;
    const size_t n = (size_t)p->width * p->height;
    sp_status status = SP_OK;
    if (!make_picture(&r, p->width, p->height) || !sp_reference_forward(sp_model_weights(c->model), r.pixels, r.width,
                                                                        r.width, r.height, r.scores, r.descriptors))
        status = sp_fail_memory(c->err, "reference frame", n * 20);
    if (status == SP_OK) {
        const double scores = sp_reference_correlation(p->scores, r.scores, n),
                     descriptors = sp_reference_correlation(p->descriptors, r.descriptors, n * 4);
        say(c, "score PCC %.7f, descriptor PCC %.7f against fp32", scores, descriptors);
        if (!(scores >= LEAST_PCC && descriptors >= LEAST_PCC))
            status = sp_fail(c->err, SP_ERR_ENGINE, "blackhole: wrong results: score PCC %.7f, descriptor PCC %.7f",
                             scores, descriptors);
    }
    free_picture(&r);
    return status;
}

/* A frame on a grid of tiles against the reference. */
static sp_status small_frame(check *c, uint32_t side, uint32_t rows, uint32_t cols) {
    const bh_config config = {.grid_rows = rows, .grid_cols = cols, .phases = 3, .suppress = true};
    bh_device *d = NULL;
    picture p;
    sp_status status = make_picture(&p, side, side) ? SP_OK : sp_fail_memory(c->err, "frame", side * side * 25);
    if (status == SP_OK)
        status = sp_bh_device_make(c->transport, &c->firmware, &c->weights, &config, &d, c->err);
    if (status == SP_OK)
        status = sp_bh_device_prepare(d, side, side, c->err);
    if (status == SP_OK)
        status = run_picture(d, &p, c->err);
    if (status == SP_OK)
        status = compare(c, &p);
    sp_bh_device_free(d);
    free_picture(&p);
    return status;
}

static sp_status one_tile(check *c) {
    return small_frame(c, SMALL_SIDE, 1, 1);
}

/* Halos over the NoC, weights by a feeder's multicast, barriers, suppression across tiles. */
static sp_status four_tiles(check *c) {
    return small_frame(c, GRID_SIDE, 2, 2);
}

/* Where the chip's own clock says that a frame went on the last tile, which is one of the largest, beside the estimate.
 */
static sp_status tell_layers(check *c, bh_device *d, double frame_ms) {
    struct mailbox m;
    const bh_plan *plan = sp_bh_device_plan(d);
    const bh_chip *chip = &c->transport->chip;
    sp_frame_estimate estimate;
    sp_status status = c->transport->read(c->transport, chip->tile[plan->tiles - 1], MAILBOX, &m, sizeof m, c->err);
    if (status != SP_OK)
        return status;
    sp_bh_estimate(plan, chip->clock_mhz ? chip->clock_mhz : NOMINAL_MHZ, true, &estimate);
    say(c, "\n%s; %.3f ms a frame by the host, %.3f ms estimated", estimate.layout, frame_ms, estimate.frame_ms);
    say(c, "\ncycles on the last tile%s:", chip->simulated ? " (the simulator's say nothing about a card)" : "");
    say(c, "\n%-36s %9s %9s %9s %9s", "layer", "before", "threads", "after", "estimated");
    for (uint32_t i = 0; i < BH_LAYERS; i++)
        say(c, "\n%-36s %9u %9u %9u %9.0f", estimate.stage[i].stage, m.go_clock[i] - m.begin_clock[i],
            m.threads_clock[i] - m.go_clock[i], m.end_clock[i] - m.threads_clock[i], estimate.stage[i].cycles);
    say(c, "\n%-36s %9u", "of it first taps", m.taps_clock - m.go_clock[0]);
    say(c, "\n%-36s %9u\n%-36s %9u", "softmax", m.tail_clock[1] - m.tail_clock[0], "suppression, scores out",
        m.tail_clock[2] - m.tail_clock[1]);
    return SP_OK;
}

/* The frame asked for, again and again: the same bytes each time, and how long one takes. The simulator runs it once or
 * twice only, and small. */
static sp_status full_frame(check *c) {
    const bool simulated = c->transport->chip.simulated;
    const uint32_t width = simulated ? GRID_SIDE : c->options->width,
                   height = simulated ? GRID_SIDE : c->options->height;
    const uint32_t repeats = simulated ? 2 : REPEATS;
    bh_config config = {.phases = 3, .suppress = true, .grid_rows = simulated ? 2 : 0, .grid_cols = simulated ? 1 : 0};
    bh_device *d = NULL;
    picture p, first;
    const size_t n = (size_t)width * height;
    const bool enough = make_picture(&p, width, height) & make_picture(&first, width, height);
    sp_status status = enough ? SP_OK : sp_fail_memory(c->err, "frame", n * 50);
    if (status == SP_OK)
        status = sp_bh_device_make(c->transport, &c->firmware, &c->weights, &config, &d, c->err);
    if (status == SP_OK)
        status = sp_bh_device_prepare(d, width, height, c->err);
    if (status == SP_OK)
        status = run_picture(d, &first, c->err);
    const double start = sp_now_ms();
    for (uint32_t i = 1; i < repeats && status == SP_OK; i++) {
        status = run_picture(d, &p, c->err);
        if (status == SP_OK &&
            (memcmp(p.scores, first.scores, n * 4) != 0 || memcmp(p.suppressed, first.suppressed, n * 4) != 0 ||
             memcmp(p.descriptors, first.descriptors, n * 16) != 0))
            status = sp_fail(c->err, SP_ERR_ENGINE,
                             "blackhole: frame %u of the same picture gave other bytes than the first", i);
    }
    const double frame_ms = (sp_now_ms() - start) / (repeats - 1);
    if (status == SP_OK)
        status = compare(c, &first);
    if (status == SP_OK) {
        say(c, "; %ux%u, %u times the same bytes", width, height, repeats);
        status = tell_layers(c, d, frame_ms);
    }
    sp_bh_device_free(d);
    free_picture(&p);
    free_picture(&first);
    return status;
}

sp_status sp_bh_check(const sp_model *model, const sp_engine_options *options, bool reset, sp_check_report *report,
                      void *context, sp_error *err) {
    static const struct {
        const char *name;
        check_step *step;
    } steps[] = {{"open the chip", open_chip},
                 {"hold all tiles", hold_tiles},
                 {"L1 echo", echo_l1},
                 {"DRAM echo", echo_dram},
                 {"multicast", multicast},
                 {"frame on one tile", one_tile},
                 {"frame on four tiles", four_tiles},
                 {"full frame", full_frame}};
    sp_error own;
    check c = {.model = model, .options = options, .report = report, .context = context, .err = err ? err : &own};
    sp_bh_firmware_get(&c.firmware);
    sp_status status = reset ? sp_bh_reset_chip(options, c.err) : SP_OK;
    if (status == SP_OK)
        status = sp_bh_weights_make(sp_model_weights(model), &c.weights, c.err);
    for (size_t i = 0; i < sizeof steps / sizeof steps[0] && status == SP_OK; i++)
        status = take(&c, steps[i].name, steps[i].step);
    sp_bh_weights_free(&c.weights);
    if (c.transport)
        c.transport->close(c.transport);
    return status;
}
