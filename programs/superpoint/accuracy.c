#include "accuracy.h"

#include <math.h>
#include <stdlib.h>

#include "reference/correlation.h"

static double max_abs(const float *a, const float *b, size_t n) {
    double most = 0;
    for (size_t i = 0; i < n; i++)
        most = fmax(most, fabs((double)a[i] - b[i]));
    return most;
}

static double norm_deviation(const float *descriptors, size_t cells) {
    double most = 0;
    for (size_t c = 0; c < cells; c++) {
        double squares = 0;
        for (int i = 0; i < SP_DESCRIPTOR_DIM; i++)
            squares +=
                (double)descriptors[c * SP_DESCRIPTOR_DIM + (size_t)i] * descriptors[c * SP_DESCRIPTOR_DIM + (size_t)i];
        most = fmax(most, fabs(sqrt(squares) - 1));
    }
    return most;
}

/* The strongest points, without threshold, border or descriptors. */
static sp_status strongest(const sp_maps *maps, const sp_frame *frame, int32_t limit, sp_features *out, sp_error *err) {
    sp_params params;
    sp_params_default(&params);
    params.max_keypoints = limit;
    params.keypoint_threshold = 0;
    params.nms_radius = TOP_RADIUS;
    params.border = 0;
    params.descriptors = false;
    return sp_features_extract(maps, frame, &params, out, err);
}

/* Share of `a`'s points that have one of `b` within the tolerance. */
static double found_share(const sp_features *a, const sp_features *b) {
    size_t found = 0;
    for (size_t i = 0; i < a->count; i++)
        for (size_t j = 0; j < b->count; j++)
            if (abs(a->pixels[2 * i] - b->pixels[2 * j]) <= TOP_TOLERANCE &&
                abs(a->pixels[2 * i + 1] - b->pixels[2 * j + 1]) <= TOP_TOLERANCE) {
                found++;
                break;
            }
    return a->count ? (double)found / (double)a->count : b->count == 0;
}

static sp_status compare_points(const sp_maps *maps, const sp_maps *reference, const sp_frame *frame, accuracy *out,
                                sp_error *err) {
    sp_features ours = {0}, theirs = {0};
    sp_status status = strongest(maps, frame, TOP_POINTS, &ours, err);
    if (status == SP_OK)
        status = strongest(reference, frame, TOP_POINTS, &theirs, err);
    if (status == SP_OK) {
        out->recall = found_share(&theirs, &ours);
        out->precision = found_share(&ours, &theirs);
        const double sum = out->recall + out->precision;
        out->f1 = sum > 0 ? 2 * out->recall * out->precision / sum : 0;
    }
    sp_features_free(&ours);
    sp_features_free(&theirs);
    return status;
}

/* The definition, window by window. */
static bool is_window_maximum(const sp_maps *maps, int x, int y) {
    const float own = maps->scores[(size_t)y * maps->width + (size_t)x];
    for (int v = y - TOP_RADIUS; v <= y + TOP_RADIUS; v++)
        for (int u = x - TOP_RADIUS; u <= x + TOP_RADIUS; u++)
            if (u >= 0 && v >= 0 && u < (int)maps->width && v < (int)maps->height &&
                maps->scores[(size_t)v * maps->width + (size_t)u] > own)
                return false;
    return true;
}

/* Pixels that are a point by one of the two, the engine's suppression or the definition, alone. */
static sp_status count_mismatches(const sp_maps *maps, const sp_frame *frame, uint64_t *mismatches, sp_error *err) {
    sp_features all = {0};
    const size_t pixels = (size_t)maps->width * maps->height;
    uint8_t *kept = calloc(pixels, 1);
    sp_status status = kept ? strongest(maps, frame, -1, &all, err) : SP_ERR_MEMORY;
    *mismatches = 0;
    if (status == SP_OK) {
        for (size_t i = 0; i < all.count; i++)
            kept[all.pixels[2 * i + 1] * (size_t)maps->width + all.pixels[2 * i]] = 1;
        for (size_t i = 0; i < pixels; i++) {
            const int x = (int)(i % maps->width), y = (int)(i / maps->width);
            if (x >= (int)frame->content_width || y >= (int)frame->content_height)
                continue;
            *mismatches += (maps->scores[i] > 0 && is_window_maximum(maps, x, y)) != kept[i];
        }
    }
    sp_features_free(&all);
    free(kept);
    return status;
}

sp_status accuracy_measure(const sp_maps *maps, const sp_maps *reference, const sp_frame *frame, accuracy *out,
                           sp_error *err) {
    const size_t pixels = (size_t)maps->width * maps->height;
    const size_t cells = pixels / (SP_CELL * SP_CELL), elements = cells * SP_DESCRIPTOR_DIM;
    *out = (accuracy){.score_pcc = sp_reference_correlation(maps->scores, reference->scores, pixels),
                      .descriptor_pcc = sp_reference_correlation(maps->descriptors, reference->descriptors, elements),
                      .score_max_abs = max_abs(maps->scores, reference->scores, pixels),
                      .descriptor_max_abs = max_abs(maps->descriptors, reference->descriptors, elements),
                      .norm_deviation = norm_deviation(maps->descriptors, cells)};
    sp_status status = compare_points(maps, reference, frame, out, err);
    return status == SP_OK ? count_mismatches(maps, frame, &out->nms_mismatches, err) : status;
}

bool accuracy_passes(const accuracy *a) {
    return a->score_pcc >= GATE_SCORE_PCC && a->descriptor_pcc >= GATE_DESCRIPTOR_PCC && a->f1 >= GATE_F1;
}

void accuracy_worst(accuracy *worst, const accuracy *a) {
    worst->score_pcc = fmin(worst->score_pcc, a->score_pcc);
    worst->descriptor_pcc = fmin(worst->descriptor_pcc, a->descriptor_pcc);
    worst->recall = fmin(worst->recall, a->recall);
    worst->precision = fmin(worst->precision, a->precision);
    worst->f1 = fmin(worst->f1, a->f1);
    worst->score_max_abs = fmax(worst->score_max_abs, a->score_max_abs);
    worst->descriptor_max_abs = fmax(worst->descriptor_max_abs, a->descriptor_max_abs);
    worst->norm_deviation = fmax(worst->norm_deviation, a->norm_deviation);
    if (a->nms_mismatches > worst->nms_mismatches)
        worst->nms_mismatches = a->nms_mismatches;
}
