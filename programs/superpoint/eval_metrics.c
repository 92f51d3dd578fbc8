#include "eval_metrics.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

void eval_warp(const double h[9], const double p[2], double q[2]) {
    double w = p[0] * h[6] + p[1] * h[7] + h[8];
    if (fabs(w) < 1e-12)
        w = 1e-12;
    const double x = p[0] * h[0] + p[1] * h[1] + h[2];
    const double y = p[0] * h[3] + p[1] * h[4] + h[5];
    q[0] = x / w;
    q[1] = y / w;
}

bool eval_invert(const double h[9], double out[9]) {
    const double a = h[4] * h[8] - h[5] * h[7];
    const double b = h[5] * h[6] - h[3] * h[8];
    const double c = h[3] * h[7] - h[4] * h[6];
    const double det = h[0] * a + h[1] * b + h[2] * c;
    if (!(fabs(det) > 1e-300))
        return false;
    const double inverse[9] = {a / det, (h[2] * h[7] - h[1] * h[8]) / det, (h[1] * h[5] - h[2] * h[4]) / det,
                               b / det, (h[0] * h[8] - h[2] * h[6]) / det, (h[2] * h[3] - h[0] * h[5]) / det,
                               c / det, (h[1] * h[6] - h[0] * h[7]) / det, (h[0] * h[4] - h[1] * h[3]) / det};
    memcpy(out, inverse, sizeof inverse);
    return true;
}

static bool inside(const double p[2], eval_size size) {
    return p[0] >= 0 && p[1] >= 0 && p[0] <= size.width - 1 && p[1] <= size.height - 1;
}

/* Points of `from` that h brings inside the frame: their places there, and (when not NULL) their numbers. */
static size_t shared(const eval_points *from, const double h[9], eval_size size, double *places, size_t *numbers) {
    size_t n = 0;
    for (size_t i = 0; i < from->count; i++) {
        double q[2];
        eval_warp(h, from->xy + 2 * i, q);
        if (!inside(q, size))
            continue;
        places[2 * n] = q[0];
        places[2 * n + 1] = q[1];
        if (numbers)
            numbers[n] = i;
        n++;
    }
    return n;
}

static double nearest_distance(const double p[2], const double *points, size_t n) {
    double best = INFINITY;
    for (size_t i = 0; i < n; i++) {
        const double dx = p[0] - points[2 * i], dy = p[1] - points[2 * i + 1];
        const double d = dx * dx + dy * dy;
        if (d < best)
            best = d;
    }
    return sqrt(best);
}

static void count_near(const double *from, size_t n, const double *to, size_t m, size_t *hits, double *sum) {
    for (size_t i = 0; i < n; i++) {
        const double d = nearest_distance(from + 2 * i, to, m);
        if (d <= EVAL_EPSILON) {
            (*hits)++;
            *sum += d;
        }
    }
}

bool eval_repeatability(const eval_points *a, const eval_points *b, const double h[9], eval_size size,
                        double *repeatability, double *error) {
    double back[9];
    *repeatability = 0;
    *error = NAN;
    double *wa = malloc((2 * a->count + 2) * sizeof *wa), *wb = malloc((2 * b->count + 2) * sizeof *wb);
    size_t *kept = malloc((b->count + 1) * sizeof *kept);
    const bool ok = wa && wb && kept && eval_invert(h, back);
    if (ok) {
        const size_t na = shared(a, h, size, wa, NULL), nb = shared(b, back, size, wb, kept);
        for (size_t i = 0; i < nb; i++) /* compared in picture b: its points as they are, a's where they land */
            memcpy(wb + 2 * i, b->xy + 2 * kept[i], 2 * sizeof *wb);
        size_t hits = 0;
        double sum = 0;
        if (na && nb) {
            count_near(wa, na, wb, nb, &hits, &sum);
            count_near(wb, nb, wa, na, &hits, &sum);
            *repeatability = (double)hits / (double)(na + nb);
        }
        if (hits)
            *error = sum / (double)hits;
    }
    free(wa);
    free(wb);
    free(kept);
    return ok;
}

/* Squared descriptor distances [a][b]. The descriptors of b are turned so that the inner loop runs over them. */
static float *all_distances(const eval_points *a, const eval_points *b) {
    float *d = calloc(a->count * b->count + 1, sizeof *d);
    float *turned = malloc((b->count * SP_DESCRIPTOR_DIM + 1) * sizeof *turned);
    if (!d || !turned) {
        free(d);
        free(turned);
        return NULL;
    }
    for (size_t j = 0; j < b->count; j++)
        for (size_t k = 0; k < SP_DESCRIPTOR_DIM; k++)
            turned[k * b->count + j] = b->descriptors[j * SP_DESCRIPTOR_DIM + k];
    for (size_t i = 0; i < a->count; i++) {
        float *restrict row = d + i * b->count;
        for (size_t k = 0; k < SP_DESCRIPTOR_DIM; k++) {
            const float v = a->descriptors[i * SP_DESCRIPTOR_DIM + k];
            const float *restrict column = turned + k * b->count;
            for (size_t j = 0; j < b->count; j++)
                row[j] += v * column[j];
        }
        for (size_t j = 0; j < b->count; j++)
            row[j] = 2.0f - 2.0f * row[j] > 0 ? 2.0f - 2.0f * row[j] : 0;
    }
    free(turned);
    return d;
}

/* Number of the smallest of n values that lie `stride` apart; the first of equal ones. */
static size_t smallest(const float *values, size_t n, size_t stride) {
    size_t best = 0;
    for (size_t i = 1; i < n; i++)
        if (values[i * stride] < values[best * stride])
            best = i;
    return best;
}

typedef struct ranked {
    float distance;
    uint32_t order;
    bool right;
} ranked;

static int by_distance(const void *p, const void *q) {
    const ranked *a = p, *b = q;
    if (a->distance != b->distance)
        return a->distance < b->distance ? -1 : 1;
    return a->order < b->order ? -1 : a->order > b->order;
}

/* Area under the precision-recall curve of n matches, `possible` of which could be right. */
static double area(ranked *matches, size_t n, size_t possible) {
    qsort(matches, n, sizeof *matches, by_distance);
    double sum = 0;
    size_t right = 0;
    for (size_t i = 0; i < n; i++)
        if (matches[i].right)
            sum += (double)++right / (double)(i + 1);
    return possible ? sum / (double)possible : 0;
}

/* One direction. `d` holds the distance of from's point i to to's point j at d[i * row + j * column]. */
static bool one_way(const float *d, size_t row, size_t column, const eval_points *from, const eval_points *to,
                    const double h[9], eval_size size, double *score, double *precision) {
    double *places = malloc((2 * from->count + 1) * sizeof *places);
    size_t *numbers = malloc((from->count + 1) * sizeof *numbers);
    ranked *matches = malloc((from->count + 1) * sizeof *matches);
    const bool ok = places && numbers && matches;
    if (ok) {
        const size_t n = shared(from, h, size, places, numbers);
        size_t right = 0, possible = 0;
        for (size_t i = 0; i < n; i++) {
            const float *line = d + numbers[i] * row;
            const size_t j = smallest(line, to->count, column);
            const double apart = nearest_distance(places + 2 * i, to->xy + 2 * j, 1);
            matches[i] = (ranked){line[j * column], (uint32_t)i, apart <= EVAL_EPSILON};
            right += matches[i].right;
            possible += nearest_distance(places + 2 * i, to->xy, to->count) <= EVAL_EPSILON;
        }
        *score += n ? (double)right / (double)n / 2 : 0;
        *precision += area(matches, n, possible) / 2;
    }
    free(places);
    free(numbers);
    free(matches);
    return ok;
}

bool eval_matching(const eval_points *a, const eval_points *b, const double h[9], eval_size size, double *score,
                   double *average_precision, size_t (*mutual)[2], size_t *pairs) {
    double back[9];
    *score = *average_precision = 0;
    *pairs = 0;
    if (!a->count || !b->count)
        return true;
    float *d = all_distances(a, b);
    bool ok = d && eval_invert(h, back) && one_way(d, b->count, 1, a, b, h, size, score, average_precision) &&
              one_way(d, 1, b->count, b, a, back, size, score, average_precision);
    for (size_t i = 0; ok && i < a->count; i++) {
        const size_t j = smallest(d + i * b->count, b->count, 1);
        if (smallest(d + j, a->count, b->count) == i) {
            mutual[*pairs][0] = i;
            mutual[(*pairs)++][1] = j;
        }
    }
    free(d);
    return ok;
}
