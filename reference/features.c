#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "reference.h"

static int larger(int a, int b) {
    return a > b ? a : b;
}

static int smaller(int a, int b) {
    return a < b ? a : b;
}

/* The largest value in the window around (x, y), which is cut at the map's edges. */
static float window_maximum(const float *map, int width, int height, int x, int y, int radius) {
    float most = -INFINITY;
    for (int v = larger(y - radius, 0); v <= smaller(y + radius, height - 1); v++)
        for (int u = larger(x - radius, 0); u <= smaller(x + radius, width - 1); u++)
            if (map[v * width + u] > most)
                most = map[v * width + u];
    return most;
}

void sp_reference_nms_single(const float *scores, int width, int height, int radius, float *out) {
    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++) {
            const float s = scores[y * width + x];
            out[y * width + x] = s == window_maximum(scores, width, height, x, y, radius) ? s : 0;
        }
}

bool sp_reference_nms_hf(const float *scores, int width, int height, int radius, float *out) {
    const int pixels = width * height;
    float *kept = malloc((size_t)pixels * sizeof *kept), *rest = malloc((size_t)pixels * sizeof *rest);
    float *next = malloc((size_t)pixels * sizeof *next);
    const bool ok = kept && rest && next;
    for (int i = 0; ok && i < pixels; i++)
        kept[i] = scores[i] == window_maximum(scores, width, height, i % width, i / width, radius);
    for (int round = 0; ok && round < 2; round++) {
        /* What lies near no kept pixel may still be a maximum among its like. */
        for (int i = 0; i < pixels; i++)
            rest[i] = window_maximum(kept, width, height, i % width, i / width, radius) > 0 ? 0 : scores[i];
        for (int i = 0; i < pixels; i++) {
            const bool near = window_maximum(kept, width, height, i % width, i / width, radius) > 0;
            next[i] =
                kept[i] || (!near && rest[i] == window_maximum(rest, width, height, i % width, i / width, radius));
        }
        memcpy(kept, next, (size_t)pixels * sizeof *kept);
    }
    for (int i = 0; ok && i < pixels; i++)
        out[i] = kept[i] > 0 ? scores[i] : 0;
    free(kept);
    free(rest);
    free(next);
    return ok;
}

typedef struct candidate {
    float score;
    int x, y;
} candidate;

static int strongest_first(const void *a, const void *b) {
    const candidate *p = a, *q = b;
    if (p->score != q->score)
        return p->score > q->score ? -1 : 1;
    return p->y != q->y ? p->y - q->y : p->x - q->x;
}

int sp_reference_select(const float *scores, int width, int height, int content_width, int content_height,
                        const uint8_t *mask, float threshold, int border, int limit, int *xy, float *selected) {
    candidate *all = malloc(((size_t)width * (size_t)height + 1) * sizeof *all);
    int count = 0;
    if (!all)
        return -1;
    for (int y = border; y < height - border; y++)
        for (int x = border; x < width - border; x++)
            if (scores[y * width + x] > threshold && x < content_width && y < content_height &&
                (!mask || mask[y * width + x]))
                all[count++] = (candidate){scores[y * width + x], x, y};
    qsort(all, (size_t)count, sizeof *all, strongest_first);
    if (limit >= 0 && count > limit)
        count = limit;
    for (int i = 0; i < count; i++) {
        xy[2 * i] = all[i].x;
        xy[2 * i + 1] = all[i].y;
        selected[i] = all[i].score;
    }
    free(all);
    return count;
}

/* One element of the map, zero outside. */
static double element(const float *map, int columns, int rows, int cx, int cy, int i) {
    if (cx < 0 || cy < 0 || cx >= columns || cy >= rows)
        return 0;
    return map[((size_t)cy * (size_t)columns + (size_t)cx) * SP_DESCRIPTOR_DIM + (size_t)i];
}

static double refined(double before, double at, double after) {
    if (before <= 0 || at <= 0 || after <= 0)
        return 0;
    const double slope = (log(after) - log(before)) / 2, bend = log(after) - 2 * log(at) + log(before);
    if (bend >= 0)
        return 0;
    return fmin(fmax(-slope / bend, -0.5), 0.5);
}

void sp_reference_refine(const float *scores, int width, int height, int x, int y, double place[2]) {
    place[0] = x;
    place[1] = y;
    if (x > 0 && x < width - 1)
        place[0] += refined(scores[y * width + x - 1], scores[y * width + x], scores[y * width + x + 1]);
    if (y > 0 && y < height - 1)
        place[1] += refined(scores[(y - 1) * width + x], scores[y * width + x], scores[(y + 1) * width + x]);
}

void sp_reference_sample(const float *map, int columns, int rows, double x, double y, float *out) {
    /* to -1...1 over the map, then, corners aligned, to cells */
    const double gx = (x - 3.5) / (8 * columns - 4.5) * 2 - 1, gy = (y - 3.5) / (8 * rows - 4.5) * 2 - 1;
    const double px = (gx + 1) / 2 * (columns - 1), py = (gy + 1) / 2 * (rows - 1);
    const int cx = (int)floor(px), cy = (int)floor(py);
    const double wx = px - cx, wy = py - cy;
    double sampled[SP_DESCRIPTOR_DIM], squares = 0;
    for (int i = 0; i < SP_DESCRIPTOR_DIM; i++) {
        sampled[i] = (1 - wy) * ((1 - wx) * element(map, columns, rows, cx, cy, i) +
                                 wx * element(map, columns, rows, cx + 1, cy, i)) +
                     wy * ((1 - wx) * element(map, columns, rows, cx, cy + 1, i) +
                           wx * element(map, columns, rows, cx + 1, cy + 1, i));
        squares += sampled[i] * sampled[i];
    }
    const double length = fmax(sqrt(squares), 1e-12);
    for (int i = 0; i < SP_DESCRIPTOR_DIM; i++)
        out[i] = (float)(sampled[i] / length);
}
