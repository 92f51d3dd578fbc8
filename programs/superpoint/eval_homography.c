#include "eval_homography.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

uint64_t eval_random(uint64_t *state) {
    *state += 0x9E3779B97F4A7C15u;
    uint64_t z = *state;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

/* Four different numbers below n (at least 4). */
static void draw_four(uint64_t *state, size_t n, size_t out[4]) {
    int have = 0;
    while (have < 4) {
        const size_t i = (size_t)(((eval_random(state) >> 32) * (uint64_t)n) >> 32);
        bool seen = false;
        for (int k = 0; k < have; k++)
            seen |= out[k] == i;
        if (!seen)
            out[have++] = i;
    }
}

/* Solve m x = r for eight unknowns, with partial pivoting; x replaces r. False when m is singular. */
static bool solve8(double m[8][8], double r[8], double least) {
    double det = 1;
    for (int c = 0; c < 8; c++) {
        int pivot = c;
        for (int i = c + 1; i < 8; i++)
            if (fabs(m[i][c]) > fabs(m[pivot][c]))
                pivot = i;
        det *= m[pivot][c];
        if (m[pivot][c] == 0)
            return false;
        for (int k = 0; pivot != c && k < 8; k++) {
            const double t = m[c][k];
            m[c][k] = m[pivot][k];
            m[pivot][k] = t;
        }
        if (pivot != c) {
            const double t = r[c];
            r[c] = r[pivot];
            r[pivot] = t;
        }
        for (int i = c + 1; i < 8; i++) {
            const double f = m[i][c] / m[c][c];
            for (int k = c; k < 8; k++)
                m[i][k] -= f * m[c][k];
            r[i] -= f * r[c];
        }
    }
    if (!(fabs(det) > least))
        return false;
    for (int c = 7; c >= 0; c--) {
        for (int k = c + 1; k < 8; k++)
            r[c] -= m[c][k] * r[k];
        r[c] /= m[c][c];
    }
    return true;
}

/* The homography through four pairs, its last element 1. */
static bool exact(const double (*a)[2], const double (*b)[2], const size_t index[4], double h[9]) {
    double m[8][8] = {{0}}, r[8];
    for (int i = 0; i < 4; i++) {
        const double x = a[index[i]][0], y = a[index[i]][1], u = b[index[i]][0], v = b[index[i]][1];
        const double top[8] = {x, y, 1, 0, 0, 0, -u * x, -u * y}, low[8] = {0, 0, 0, x, y, 1, -v * x, -v * y};
        memcpy(m[i], top, sizeof top);
        memcpy(m[i + 4], low, sizeof low);
        r[i] = u;
        r[i + 4] = v;
    }
    if (!solve8(m, r, 1e-12))
        return false;
    memcpy(h, r, sizeof r);
    h[8] = 1;
    return true;
}

/* Squared transfer error; infinite for a point that goes behind the picture. */
static double residual(const double h[9], const double a[2], const double b[2]) {
    const double w = a[0] * h[6] + a[1] * h[7] + h[8];
    if (w <= 1e-9)
        return INFINITY;
    const double x = (a[0] * h[0] + a[1] * h[1] + h[2]) / w - b[0];
    const double y = (a[0] * h[3] + a[1] * h[4] + h[5]) / w - b[1];
    return x * x + y * y;
}

/* Sum of the residuals, each cut at `limit`; gives up once it is above `enough`. */
static double cost(const double h[9], const double (*a)[2], const double (*b)[2], size_t n, double limit,
                   double enough) {
    double sum = 0;
    for (size_t i = 0; i < n && sum < enough; i++) {
        const double e = residual(h, a[i], b[i]);
        sum += e < limit ? e : limit;
    }
    return sum;
}

/* Adds one equation (row of the Jacobian, residual) to the normal equations. */
static void accumulate(double m[8][8], double r[8], const double row[8], double value) {
    for (int i = 0; i < 8; i++) {
        for (int k = 0; k < 8; k++)
            m[i][k] += row[i] * row[k];
        r[i] += row[i] * value;
    }
}

static void refine(double h[9], const double (*a)[2], const double (*b)[2], size_t n, double limit) {
    for (int round = 0; round < EVAL_REFINE_ROUNDS; round++) {
        double m[8][8] = {{0}}, r[8] = {0};
        size_t inliers = 0;
        for (size_t i = 0; i < n; i++) {
            if (!(residual(h, a[i], b[i]) < limit))
                continue;
            const double p = a[i][0], q = a[i][1];
            const double w = p * h[6] + q * h[7] + h[8];
            const double x = (p * h[0] + q * h[1] + h[2]) / w, y = (p * h[3] + q * h[4] + h[5]) / w;
            const double dx[8] = {p / w, q / w, 1 / w, 0, 0, 0, -x * p / w, -x * q / w};
            const double dy[8] = {0, 0, 0, p / w, q / w, 1 / w, -y * p / w, -y * q / w};
            accumulate(m, r, dx, b[i][0] - x);
            accumulate(m, r, dy, b[i][1] - y);
            inliers++;
        }
        if (inliers < 4 || !solve8(m, r, 0))
            return;
        for (int k = 0; k < 8; k++)
            h[k] += r[k];
    }
}

static void multiply(const double a[9], const double b[9], double out[9]) {
    double c[9];
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++)
            c[3 * i + j] = a[3 * i] * b[j] + a[3 * i + 1] * b[3 + j] + a[3 * i + 2] * b[6 + j];
    memcpy(out, c, sizeof c);
}

bool eval_estimate(const double (*a)[2], const double (*b)[2], size_t n, eval_size size, double h[9]) {
    if (n < 4 || n > UINT32_MAX)
        return false;
    /* Both pictures are brought to about [-1, 1], where the equations are well conditioned. */
    const double half = size.width / 2, cx = size.width / 2, cy = size.height / 2;
    const double limit = (EVAL_RANSAC_THRESHOLD / half) * (EVAL_RANSAC_THRESHOLD / half);
    double(*pa)[2] = malloc(n * sizeof *pa), (*pb)[2] = malloc(n * sizeof *pb);
    bool found = false;
    if (pa && pb) {
        for (size_t i = 0; i < n; i++) {
            pa[i][0] = (a[i][0] - cx) / half;
            pa[i][1] = (a[i][1] - cy) / half;
            pb[i][0] = (b[i][0] - cx) / half;
            pb[i][1] = (b[i][1] - cy) / half;
        }
        const double(*const ca)[2] = (const double(*)[2])pa, (*const cb)[2] = (const double(*)[2])pb;
        uint64_t state = EVAL_RANSAC_SEED;
        double best = INFINITY;
        for (int s = 0; s < EVAL_RANSAC_SAMPLES; s++) {
            size_t index[4];
            double candidate[9];
            draw_four(&state, n, index);
            if (!exact(ca, cb, index, candidate))
                continue;
            const double c = cost(candidate, ca, cb, n, limit, best);
            if (c < best) {
                best = c;
                memcpy(h, candidate, sizeof candidate);
                found = true;
            }
        }
        if (found) {
            const double in[9] = {1 / half, 0, -cx / half, 0, 1 / half, -cy / half, 0, 0, 1};
            double out[9];
            refine(h, ca, cb, n, limit);
            found = eval_invert(in, out);
            multiply(h, in, h);
            multiply(out, h, h);
        }
    }
    free(pa);
    free(pb);
    return found;
}

double eval_corner_error(const double h[9], const double truth[9], eval_size size) {
    const double x = size.width - 1, y = size.height - 1;
    const double corners[4][2] = {{0, 0}, {x, 0}, {x, y}, {0, y}};
    double sum = 0;
    for (int i = 0; i < 4; i++) {
        double p[2], q[2];
        eval_warp(h, corners[i], p);
        eval_warp(truth, corners[i], q);
        sum += sqrt((p[0] - q[0]) * (p[0] - q[0]) + (p[1] - q[1]) * (p[1] - q[1]));
    }
    return isfinite(sum) ? sum / 4 : INFINITY;
}
