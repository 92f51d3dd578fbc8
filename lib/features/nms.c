/*
 * Suppression by window maxima. A window of 2r+1 squared is a maximum down the columns of maxima along the rows.
 * Down the columns, rows are taken in groups as high as a window (van Herk, Gil and Werman): a window
 * then is the end of one group and the start of the next, and with running maxima from both sides a pixel
 * needs three comparisons whatever the radius.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/size.h"
#include "features/features.h"
#include "features/rows.h"

typedef struct columns {
    const sp_row_kernels *kernels;
    const float *in; /* [height][width] */
    uint32_t width, height;
    int radius;
    float *line;   /* room of a row's windows */
    float *prefix; /* maximum of the current group's rows so far */
    float *group;  /* 2r+1 rows; row i becomes the maximum of rows i, i+1, ... of its group */
} columns;

/* The row of window maxima along x of padded row p, the frame's row p - r, into `out`. */
static void padded_row(const columns *c, size_t p, float *out) {
    const size_t radius = (size_t)c->radius;
    if (p < radius || p >= c->height + radius)
        for (uint32_t x = 0; x < c->width; x++)
            out[x] = -INFINITY;
    else
        c->kernels->window(c->in + (p - radius) * c->width, c->width, c->radius, c->line, out);
}

/* The maximum of the window of output row y is that of a[x] and b[x]. */
typedef sp_status row_sink(void *context, uint32_t y, const float *a, const float *b, sp_error *err);

static sp_status walk_columns(const columns *c, row_sink *sink, void *context, sp_error *err) {
    const size_t window = 2 * (size_t)c->radius + 1, padded = (size_t)c->height + window - 1, width = c->width;
    for (size_t start = 0; start < padded; start += window) {
        for (size_t i = 0; i < window && start + i < padded; i++) {
            /* row i of the group before is needed no more: its windows are complete */
            float *row = c->group + i * width;
            padded_row(c, start + i, row);
            if (i == 0)
                memcpy(c->prefix, row, width * sizeof *row);
            else
                c->kernels->larger(c->prefix, row, c->prefix, width);
            if (start + i + 1 < window)
                continue;
            const float *rest = i + 1 < window ? c->group + (i + 1) * width : c->prefix;
            const sp_status status = sink(context, (uint32_t)(start + i + 1 - window), c->prefix, rest, err);
            if (status != SP_OK)
                return status;
        }
        for (size_t i = window - 1; i-- > 0;)
            c->kernels->larger(c->group + i * width, c->group + (i + 1) * width, c->group + i * width, width);
    }
    return SP_OK;
}

/* Walk over all rows; radius at least 1. */
static sp_status walk(const float *in, uint32_t width, uint32_t height, int radius, row_sink *sink, void *context,
                      sp_error *err) {
    const size_t window = 2 * (size_t)radius + 1;
    const size_t floats = (window + 1) * width + width + window;
    float *room = malloc(floats * sizeof *room);
    if (!room)
        return sp_fail_memory(err, "suppression", floats * sizeof *room);
    const columns c = {.kernels = sp_row_kernels_best(),
                       .in = in,
                       .width = width,
                       .height = height,
                       .radius = radius,
                       .group = room,
                       .prefix = room + window * width,
                       .line = room + (window + 1) * width};
    const sp_status status = walk_columns(&c, sink, context, err);
    free(room);
    return status;
}

typedef struct output {
    const sp_row_kernels *kernels;
    const float *scores;
    float *out; /* the map, or one row */
    uint32_t width;
    sp_row_taker *take;
    void *context;
} output;

static sp_status store_maximum(void *context, uint32_t y, const float *a, const float *b, sp_error *err) {
    const output *o = context;
    (void)err;
    o->kernels->larger(a, b, o->out + (size_t)y * o->width, o->width);
    return SP_OK;
}

static sp_status store_kept(void *context, uint32_t y, const float *a, const float *b, sp_error *err) {
    const output *o = context;
    const size_t at = (size_t)y * o->width;
    (void)err;
    o->kernels->keep(a, b, o->scores + at, o->out + at, o->width);
    return SP_OK;
}

static sp_status hand_over(void *context, uint32_t y, const float *a, const float *b, sp_error *err) {
    const output *o = context;
    o->kernels->keep(a, b, o->scores + (size_t)y * o->width, o->out, o->width);
    return o->take(o->context, y, o->out, err);
}

sp_status sp_window_maximum(const float *in, uint32_t width, uint32_t height, int radius, float *out, sp_error *err) {
    output o = {.kernels = sp_row_kernels_best(), .out = out, .width = width};
    if (radius == 0) {
        memcpy(out, in, (size_t)width * height * sizeof *out);
        return SP_OK;
    }
    return walk(in, width, height, radius, store_maximum, &o, err);
}

sp_status sp_nms_single(const float *scores, uint32_t width, uint32_t height, int radius, float *out, sp_error *err) {
    output o = {.kernels = sp_row_kernels_best(), .scores = scores, .out = out, .width = width};
    if (radius == 0) {
        memcpy(out, scores, (size_t)width * height * sizeof *out);
        return SP_OK;
    }
    return walk(scores, width, height, radius, store_kept, &o, err);
}

sp_status sp_nms_single_rows(const float *scores, uint32_t width, uint32_t height, int radius, sp_row_taker *take,
                             void *context, sp_error *err) {
    sp_status status = SP_OK;
    if (radius == 0) {
        for (uint32_t y = 0; status == SP_OK && y < height; y++)
            status = take(context, y, scores + (size_t)y * width, err);
        return status;
    }
    float *row = malloc(width * sizeof *row);
    if (!row)
        return sp_fail_memory(err, "suppression", width * sizeof *row);
    output o = {sp_row_kernels_best(), scores, row, width, take, context};
    status = walk(scores, width, height, radius, hand_over, &o, err);
    free(row);
    return status;
}

/* One of the two recovering rounds. `kept` has 1 where a pixel is kept so far; `near` and `rest` are
 * room for a map each. */
static sp_status recover(const float *scores, uint32_t width, uint32_t height, int radius, float *kept, float *near,
                         float *rest, float *best, sp_error *err) {
    const size_t pixels = (size_t)width * height;
    sp_status status = sp_window_maximum(kept, width, height, radius, near, err);
    if (status != SP_OK)
        return status;
    for (size_t i = 0; i < pixels; i++)
        rest[i] = near[i] > 0 ? 0 : scores[i];
    status = sp_window_maximum(rest, width, height, radius, best, err);
    for (size_t i = 0; status == SP_OK && i < pixels; i++)
        if (near[i] <= 0 && rest[i] == best[i])
            kept[i] = 1;
    return status;
}

sp_status sp_nms_hf(const float *scores, uint32_t width, uint32_t height, int radius, float *out, sp_error *err) {
    const size_t pixels = (size_t)width * height;
    if (radius == 0) {
        memcpy(out, scores, pixels * sizeof *out);
        return SP_OK;
    }
    float *room = malloc(4 * pixels * sizeof *room);
    if (!room)
        return sp_fail_memory(err, "suppression", 4 * pixels * sizeof *room);
    float *kept = room, *near = room + pixels, *rest = near + pixels, *best = rest + pixels;
    sp_status status = sp_window_maximum(scores, width, height, radius, best, err);
    for (size_t i = 0; status == SP_OK && i < pixels; i++)
        kept[i] = scores[i] == best[i];
    for (int round = 0; status == SP_OK && round < 2; round++)
        status = recover(scores, width, height, radius, kept, near, rest, best, err);
    for (size_t i = 0; status == SP_OK && i < pixels; i++)
        out[i] = kept[i] > 0 ? scores[i] : 0;
    free(room);
    return status;
}
