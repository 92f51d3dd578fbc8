/* A 95 % interval of a mean, by drawing whole pictures with replacement. */
#include "eval_bootstrap.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "eval_homography.h"

/* The values of one picture. */
typedef struct share {
    const char *picture;
    double sum;
    size_t count;
} share;

static int by_picture(const void *a, const void *b) {
    return strcmp(((const share *)a)->picture, ((const share *)b)->picture);
}

static int by_size(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Gathers the finite values by picture, pictures in order of their names: the number of pictures. */
static size_t gather(const double *values, const char *const *pictures, size_t n, share *out) {
    size_t finite = 0, distinct = 0;
    for (size_t i = 0; i < n; i++)
        if (isfinite(values[i]))
            out[finite++] = (share){pictures[i], values[i], 1};
    qsort(out, finite, sizeof *out, by_picture);
    for (size_t i = 0; i < finite; i++)
        if (distinct && strcmp(out[distinct - 1].picture, out[i].picture) == 0) {
            out[distinct - 1].sum += out[i].sum;
            out[distinct - 1].count++;
        } else
            out[distinct++] = out[i];
    return distinct;
}

/* Between the two nearest of sorted numbers, in proportion. */
static double quantile(const double *sorted, size_t n, double share_below) {
    const double at = share_below * (double)(n - 1);
    const size_t i = (size_t)at;
    return i + 1 < n ? sorted[i] + (at - (double)i) * (sorted[i + 1] - sorted[i]) : sorted[n - 1];
}

bool eval_bootstrap(const double *values, const char *const *pictures, size_t n, double *low, double *high) {
    share *shares = calloc(n + 1, sizeof *shares);
    double *means = malloc(EVAL_BOOTSTRAP_ROUNDS * sizeof *means);
    const bool ok = shares && means;
    *low = *high = NAN;
    const size_t distinct = ok ? gather(values, pictures, n, shares) : 0;
    uint64_t random = EVAL_BOOTSTRAP_SEED;
    for (int round = 0; distinct && round < EVAL_BOOTSTRAP_ROUNDS; round++) {
        double sum = 0;
        size_t count = 0;
        for (size_t i = 0; i < distinct; i++) {
            const share *s = &shares[(eval_random(&random) >> 32) * distinct >> 32];
            sum += s->sum;
            count += s->count;
        }
        means[round] = sum / (double)count;
    }
    if (distinct) {
        qsort(means, EVAL_BOOTSTRAP_ROUNDS, sizeof *means, by_size);
        *low = quantile(means, EVAL_BOOTSTRAP_ROUNDS, 0.025);
        *high = quantile(means, EVAL_BOOTSTRAP_ROUNDS, 0.975);
    }
    free(shares);
    free(means);
    return ok;
}
