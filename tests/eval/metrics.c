/* The evaluator is tested before it judges: identity, a known shift, swapped axes, and the figures of train/metrics.py.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <math.h>

#include "eval_golden.h"
#include "superpoint/eval_bootstrap.h"
#include "superpoint/eval_homography.h"
#include "superpoint/eval_metrics.h"

enum { COLUMNS = 30, ROWS = 22, GRID = COLUMNS * ROWS };
static const eval_size frame = {640, 480};
static const double identity[9] = {1, 0, 0, 0, 1, 0, 0, 0, 1};

/* A grid of step 20, moved by dx, dy, with a descriptor of its own for each point. */
typedef struct grid {
    double xy[2 * GRID];
    float descriptors[GRID * SP_DESCRIPTOR_DIM];
} grid;

/* The direction of a seed; with `weight`, pulled away from it by the direction of `own`. */
static void describe(float *out, uint64_t seed, double weight, uint64_t own) {
    double v[SP_DESCRIPTOR_DIM], squares = 0;
    for (int k = 0; k < SP_DESCRIPTOR_DIM; k++) {
        v[k] = (double)(eval_random(&seed) >> 56) - 127.5;
        v[k] += weight * ((double)(eval_random(&own) >> 56) - 127.5);
        squares += v[k] * v[k];
    }
    for (int k = 0; k < SP_DESCRIPTOR_DIM; k++)
        out[k] = (float)(v[k] / sqrt(squares));
}

static eval_points make_grid(grid *g, double dx, double dy) {
    for (int i = 0; i < GRID; i++) {
        g->xy[2 * i] = 20 + 20 * (i % COLUMNS) + dx;
        g->xy[2 * i + 1] = 20 + 20 * (i / COLUMNS) + dy;
        describe(g->descriptors + (size_t)i * SP_DESCRIPTOR_DIM, (uint64_t)i, 0, 0);
    }
    return (eval_points){GRID, g->xy, g->descriptors};
}

static double repeat(const eval_points *a, const eval_points *b, const double h[9], double *error) {
    double r;
    assert_true(eval_repeatability(a, b, h, frame, &r, error));
    return r;
}

static grid first, second;

static void identity_is_one(void **state) {
    (void)state;
    const eval_points a = make_grid(&first, 0, 0);
    double error, score, precision;
    size_t(*mutual)[2] = malloc(GRID * sizeof *mutual), pairs;
    assert_true(repeat(&a, &a, identity, &error) == 1 && error == 0);
    assert_true(eval_matching(&a, &a, identity, frame, &score, &precision, mutual, &pairs));
    assert_true(score == 1 && precision == 1 && pairs == GRID);
    free(mutual);
}

static void known_shift(void **state) {
    (void)state;
    const double eight[9] = {1, 0, 8, 0, 1, 0, 0, 0, 1};
    const eval_points a = make_grid(&first, 0, 0);
    eval_points b = make_grid(&second, 8, 0);
    double error;
    assert_true(repeat(&a, &b, eight, &error) == 1 && error < 1e-9);
    b = make_grid(&second, 2, 0);
    assert_true(repeat(&a, &b, identity, &error) == 1);
    assert_float_equal(error, 2, 1e-12);
    b = make_grid(&second, 4, 0);
    assert_true(repeat(&a, &b, identity, &error) == 0 && isnan(error));
}

static void swapped_axes_fail(void **state) {
    (void)state;
    eval_points a = make_grid(&first, 0, 0), b = make_grid(&second, 0, 0);
    double error;
    for (int i = 0; i < GRID; i++)
        eval_warp(golden_h, a.xy + 2 * i, b.xy + 2 * i);
    assert_true(repeat(&a, &b, golden_h, &error) > 0.9);
    for (int i = 0; i < GRID; i++) {
        const double x = a.xy[2 * i], u = b.xy[2 * i];
        a.xy[2 * i] = a.xy[2 * i + 1];
        a.xy[2 * i + 1] = x;
        b.xy[2 * i] = b.xy[2 * i + 1];
        b.xy[2 * i + 1] = u;
    }
    assert_true(repeat(&a, &b, golden_h, &error) < 0.3);
}

static void nothing_found(void **state) {
    (void)state;
    const eval_points a = make_grid(&first, 0, 0), none = {0};
    double error, score, precision, h[9];
    size_t pairs, mutual[1][2];
    assert_true(repeat(&a, &none, identity, &error) == 0 && isnan(error));
    assert_true(eval_matching(&a, &none, identity, frame, &score, &precision, mutual, &pairs));
    assert_true(score == 0 && precision == 0 && pairs == 0);
    const double p[3][2] = {{1, 2}, {3, 4}, {9, 1}};
    assert_false(eval_estimate(p, p, 3, frame, h));
    const double same[6][2] = {{5, 5}, {5, 5}, {5, 5}, {5, 5}, {5, 5}, {5, 5}};
    assert_false(eval_estimate(same, same, 6, frame, h)); /* no sample spans a plane */
    const double flat[9] = {0};
    assert_false(eval_repeatability(&a, &a, flat, frame, &score, &error));
}

static void generator_is_splitmix64(void **state) {
    (void)state;
    uint64_t s = 1234567; /* the published test vector */
    assert_true(eval_random(&s) == 6457827717110365317u);
    assert_true(eval_random(&s) == 3203168211198807973u);
    assert_true(eval_random(&s) == 9817491932198370423u);
}

static void figures_of_the_training_tools(void **state) {
    (void)state;
    static float da[GOLDEN_A * SP_DESCRIPTOR_DIM], db[GOLDEN_B * SP_DESCRIPTOR_DIM];
    static double xa[2 * GOLDEN_A], xb[2 * GOLDEN_B];
    memcpy(xa, golden_a, sizeof xa);
    memcpy(xb, golden_b, sizeof xb);
    for (int i = 0; i < GOLDEN_A; i++)
        describe(da + (size_t)i * SP_DESCRIPTOR_DIM, (uint64_t)golden_seed_a[i], 0, 0);
    for (int i = 0; i < GOLDEN_B; i++)
        describe(db + (size_t)i * SP_DESCRIPTOR_DIM, (uint64_t)golden_seed_b[i], 0.25 * (1 + i % 5),
                 (uint64_t)(5000 + i));
    const eval_points a = {GOLDEN_A, xa, da}, b = {GOLDEN_B, xb, db};
    double error, score, precision, h[9];
    size_t pairs, mutual[GOLDEN_A][2];
    assert_float_equal(repeat(&a, &b, golden_h, &error), golden_repeatability, 1e-9);
    assert_float_equal(error, golden_error, 1e-9);
    assert_true(eval_matching(&a, &b, golden_h, frame, &score, &precision, mutual, &pairs));
    assert_float_equal(score, golden_score, 1e-9);
    assert_float_equal(precision, golden_precision, 1e-9);
    assert_int_equal(pairs, golden_mutual);
    double p[GOLDEN_A][2], q[GOLDEN_A][2];
    for (size_t i = 0; i < pairs; i++) {
        memcpy(p[i], xa + 2 * mutual[i][0], sizeof p[i]);
        memcpy(q[i], xb + 2 * mutual[i][1], sizeof q[i]);
    }
    assert_true(eval_estimate((const double(*)[2])p, (const double(*)[2])q, pairs, frame, h));
    assert_float_equal(eval_corner_error(h, golden_h, frame), golden_corner_error, 1e-6);
}

static void intervals(void **state) {
    (void)state;
    double low, high;
    assert_true(eval_bootstrap(golden_values, golden_scenes, 24, &low, &high)); /* train/metrics.py's draws */
    assert_float_equal(low, golden_low, 1e-12);
    assert_float_equal(high, golden_high, 1e-12);
    const double same[4] = {0.5, 0.5, 0.5, 0.5};
    assert_true(eval_bootstrap(same, golden_scenes, 4, &low, &high) && low == 0.5 && high == 0.5);
    const char *const one[3] = {"a", "a", "a"}; /* one picture: always drawn, so nothing varies */
    assert_true(eval_bootstrap((const double[]){0, 1, NAN}, one, 3, &low, &high) && low == 0.5 && high == 0.5);
    assert_true(eval_bootstrap((const double[]){NAN, INFINITY, NAN}, one, 3, &low, &high) && isnan(low) && isnan(high));
    assert_true(eval_bootstrap(same, one, 0, &low, &high) && isnan(low));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(identity_is_one),
        cmocka_unit_test(known_shift),
        cmocka_unit_test(swapped_axes_fail),
        cmocka_unit_test(nothing_found),
        cmocka_unit_test(generator_is_splitmix64),
        cmocka_unit_test(figures_of_the_training_tools),
        cmocka_unit_test(intervals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
