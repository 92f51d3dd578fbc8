#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "reference.h"

/* A map of floats, channel by channel: [channels][height][width]. */
typedef struct map {
    uint32_t channels, height, width;
    float *values;
} map;

static float *row_of(const map *m, uint32_t channel, uint32_t y) {
    return m->values + ((size_t)channel * m->height + y) * m->width;
}

static bool map_alloc(map *m, uint32_t channels, uint32_t height, uint32_t width) {
    *m = (map){channels, height, width, malloc((size_t)channels * height * width * sizeof(float))};
    return m->values != NULL;
}

/* Row `y` of channel `c` in double, with a zero on either side; all zeros outside the map. */
static void padded_row(const map *in, uint32_t c, int64_t y, double *row) {
    const bool inside = y >= 0 && y < (int64_t)in->height;
    row[0] = row[in->width + 1] = 0;
    for (uint32_t x = 0; x < in->width; x++)
        row[x + 1] = inside ? row_of(in, c, (uint32_t)y)[x] : 0;
}

/* sums[x] += what the taps of one kernel row (3 or 1 of them) make of a padded row */
static void add_row(double *sums, const double *row, uint32_t width, const float *taps, int k) {
    const double left = k == 3 ? taps[0] : 0, middle = k == 3 ? taps[1] : taps[0], right = k == 3 ? taps[2] : 0;
    for (uint32_t x = 0; x < width; x++)
        sums[x] += left * row[x] + middle * row[x + 1] + right * row[x + 2];
}

/* Row `y` of all output channels. `sums`: [out][width], `row`: width + 2. */
static void convolve_row(const map *in, const sp_layer *layer, const float *kernel, const float *bias, uint32_t y,
                         double *sums, double *row, map *out) {
    const uint32_t k = layer->kernel, width = in->width;
    for (uint32_t o = 0; o < layer->out; o++)
        for (uint32_t x = 0; x < width; x++)
            sums[(size_t)o * width + x] = bias[o];
    for (uint32_t c = 0; c < layer->in; c++)
        for (uint32_t ky = 0; ky < k; ky++) {
            padded_row(in, c, (int64_t)y + ky - k / 2, row);
            for (uint32_t o = 0; o < layer->out; o++)
                add_row(sums + (size_t)o * width, row, width, kernel + (((size_t)o * layer->in + c) * k + ky) * k,
                        (int)k);
        }
    for (uint32_t o = 0; o < layer->out; o++)
        for (uint32_t x = 0; x < width; x++) {
            const float v = (float)sums[(size_t)o * width + x];
            row_of(out, o, y)[x] = layer->relu && v < 0 ? 0 : v;
        }
}

static bool convolve(const map *in, const sp_layer *layer, const float *kernel, const float *bias, map *out) {
    double *sums = malloc((size_t)layer->out * in->width * sizeof *sums);
    double *row = malloc(((size_t)in->width + 2) * sizeof *row);
    const bool ok = sums && row && map_alloc(out, layer->out, in->height, in->width);
    for (uint32_t y = 0; ok && y < in->height; y++)
        convolve_row(in, layer, kernel, bias, y, sums, row, out);
    free(sums);
    free(row);
    return ok;
}

/* 2 x 2 maximum, stride 2. */
static bool pool(const map *in, map *out) {
    if (!map_alloc(out, in->channels, in->height / 2, in->width / 2))
        return false;
    for (uint32_t c = 0; c < in->channels; c++)
        for (uint32_t y = 0; y < out->height; y++) {
            const float *a = row_of(in, c, 2 * y), *b = row_of(in, c, 2 * y + 1);
            float *o = row_of(out, c, y);
            for (uint32_t x = 0; x < out->width; x++)
                o[x] = fmaxf(fmaxf(a[2 * x], a[2 * x + 1]), fmaxf(b[2 * x], b[2 * x + 1]));
        }
    return true;
}

/* Layer `i` on `in`, pooling included. */
static bool run_layer(const sp_weights *weights, int i, const map *in, map *out) {
    const sp_layer *layer = &sp_network[i];
    if (!layer->pool)
        return convolve(in, layer, weights->kernel[i], weights->bias[i], out);
    map full = {0};
    bool ok = convolve(in, layer, weights->kernel[i], weights->bias[i], &full) && pool(&full, out);
    free(full.values);
    return ok;
}

/* Softmax over the 65 logits of each cell; the first 64 are the cell's pixels, row by row. */
static void unfold_scores(const map *logits, float *scores) {
    const uint32_t width = logits->width * SP_CELL;
    for (uint32_t cy = 0; cy < logits->height; cy++)
        for (uint32_t cx = 0; cx < logits->width; cx++) {
            double largest = -INFINITY, sum = 0, e[SP_LOGITS];
            for (uint32_t i = 0; i < SP_LOGITS; i++)
                largest = fmax(largest, row_of(logits, i, cy)[cx]);
            for (uint32_t i = 0; i < SP_LOGITS; i++)
                sum += e[i] = exp(row_of(logits, i, cy)[cx] - largest);
            for (uint32_t i = 0; i < SP_CELL * SP_CELL; i++)
                scores[(size_t)(cy * SP_CELL + i / SP_CELL) * width + cx * SP_CELL + i % SP_CELL] = (float)(e[i] / sum);
        }
}

/* Each cell's 256 numbers side by side, divided by their length (at least 1e-12, as PyTorch does). */
static void normalise_descriptors(const map *raw, float *descriptors) {
    for (uint32_t cy = 0; cy < raw->height; cy++)
        for (uint32_t cx = 0; cx < raw->width; cx++) {
            float *out = descriptors + ((size_t)cy * raw->width + cx) * SP_DESCRIPTOR_DIM;
            double squares = 0;
            for (uint32_t i = 0; i < SP_DESCRIPTOR_DIM; i++) {
                double v = row_of(raw, i, cy)[cx];
                squares += v * v;
            }
            double length = fmax(sqrt(squares), 1e-12);
            for (uint32_t i = 0; i < SP_DESCRIPTOR_DIM; i++)
                out[i] = (float)(row_of(raw, i, cy)[cx] / length);
        }
}

static bool run_head(const sp_weights *weights, int first, const map *encoded, map *out) {
    map hidden = {0};
    bool ok = run_layer(weights, first, encoded, &hidden) && run_layer(weights, first + 1, &hidden, out);
    free(hidden.values);
    return ok;
}

bool sp_reference_forward(const sp_weights *weights, const uint8_t *pixels, size_t stride, uint32_t width,
                          uint32_t height, float *scores, float *descriptors) {
    map at = {0}, logits = {0}, raw = {0};
    bool ok = map_alloc(&at, 1, height, width);
    for (uint32_t y = 0; ok && y < height; y++)
        for (uint32_t x = 0; x < width; x++)
            row_of(&at, 0, y)[x] = (float)pixels[y * stride + x] / 255.0f;
    for (int i = 0; ok && i < SP_ENCODER_END; i++) {
        map next = {0};
        ok = run_layer(weights, i, &at, &next);
        free(at.values);
        at = next;
    }
    ok = ok && run_head(weights, SP_DETECTOR_A, &at, &logits) && run_head(weights, SP_DESCRIPTOR_A, &at, &raw);
    if (ok) {
        unfold_scores(&logits, scores);
        normalise_descriptors(&raw, descriptors);
    }
    free(at.values);
    free(logits.values);
    free(raw.values);
    return ok;
}
