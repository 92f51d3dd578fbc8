/*
 * Suppression by window maxima. A window of 2r+1 is a maximum along x of maxima along y. Along one
 * direction, windows of 1, 2, 4, ... up to the largest power of two that fits are built by doubling,
 * and two of the last, overlapping, cover the whole window: about log2(2r+1) maxima a pixel.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/size.h"
#include "features/features.h"

static inline float larger(float a, float b) {
    return a > b ? a : b;
}

/* out[i] = max(a[i], b[i]) */
static void maximum_of(const float *a, const float *b, float *out, size_t n) {
    for (size_t i = 0; i < n; i++)
        out[i] = larger(a[i], b[i]);
}

/* Maxima over windows of 2r+1 along a row. `line` has room for width + 2r values. */
static void row_maximum(const float *in, uint32_t width, int radius, float *line, float *out) {
    const size_t padded = (size_t)width + 2 * (size_t)radius;
    const size_t window = 2 * (size_t)radius + 1;
    for (int i = 0; i < radius; i++)
        line[i] = line[padded - 1 - (size_t)i] = -INFINITY;
    memcpy(line + radius, in, width * sizeof *in);
    size_t reach = 1; /* line[i] is the maximum of `reach` values from i on */
    for (; 2 * reach <= window; reach *= 2)
        for (size_t i = 0; i + reach < padded; i++)
            line[i] = larger(line[i], line[i + reach]);
    maximum_of(line, line + (window - reach), out, width);
}

/* Maxima over windows of 2r+1 down the columns, a whole row at a time; `rows` has room for
 * height + 2r rows. */
static void column_maximum(float *rows, uint32_t width, uint32_t height, int radius, float *out) {
    const size_t padded = (size_t)height + 2 * (size_t)radius;
    const size_t window = 2 * (size_t)radius + 1;
    size_t reach = 1;
    for (; 2 * reach <= window; reach *= 2)
        for (size_t y = 0; y + reach < padded; y++)
            maximum_of(rows + y * width, rows + (y + reach) * width, rows + y * width, width);
    for (size_t y = 0; y < height; y++)
        maximum_of(rows + y * width, rows + (y + window - reach) * width, out + y * width, width);
}

sp_status sp_window_maximum(const float *in, uint32_t width, uint32_t height, int radius, float *out, sp_error *err) {
    const size_t side = (size_t)radius;
    const size_t floats = ((size_t)height + 2 * side) * width + width + 2 * side;
    float *rows = malloc(floats * sizeof *rows);
    if (!rows)
        return sp_fail_memory(err, "suppression", floats * sizeof *rows);
    float *line = rows + ((size_t)height + 2 * side) * width;
    for (size_t i = 0; i < side * width; i++)
        rows[i] = rows[(height + side) * width + i] = -INFINITY;
    for (size_t y = 0; y < height; y++)
        row_maximum(in + y * width, width, radius, line, rows + (y + side) * width);
    column_maximum(rows, width, height, radius, out);
    free(rows);
    return SP_OK;
}

sp_status sp_nms_single(const float *scores, uint32_t width, uint32_t height, int radius, float *out, sp_error *err) {
    const size_t pixels = (size_t)width * height;
    if (radius == 0) {
        memcpy(out, scores, pixels * sizeof *out);
        return SP_OK;
    }
    sp_status status = sp_window_maximum(scores, width, height, radius, out, err);
    for (size_t i = 0; status == SP_OK && i < pixels; i++)
        out[i] = out[i] == scores[i] ? scores[i] : 0;
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
