/* Matching at every level against a plain search in double precision. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <math.h>

#include "base/cpu.h"
#include "features/features.h"
#include "superpoint.h"

enum { DIM = SP_DESCRIPTOR_DIM };

static uint32_t seed = 1;

static float noise(void) {
    seed = seed * 1664525u + 1013904223u;
    return (float)(int32_t)seed * 0x1p-31f;
}

static float *random_set(size_t count) {
    float *set = malloc((count ? count : 1) * DIM * sizeof *set);
    for (size_t i = 0; i < count; i++) {
        double squares = 0;
        for (int k = 0; k < DIM; k++) {
            set[i * DIM + k] = noise();
            squares += (double)set[i * DIM + k] * set[i * DIM + k];
        }
        for (int k = 0; k < DIM; k++)
            set[i * DIM + k] = (float)(set[i * DIM + k] / sqrt(squares));
    }
    return set;
}

/* Half of b are noisy copies of descriptors of a, so that there is something to find. */
static float *related_set(const float *a, size_t na, size_t count) {
    float *b = random_set(count);
    for (size_t i = 0; na && i < count; i += 2)
        for (int k = 0; k < DIM; k++)
            b[i * DIM + k] = 0.8f * a[(i * 7 % na) * DIM + k] + 0.6f * b[i * DIM + k];
    for (size_t i = 0; i < count; i++) {
        double squares = 0;
        for (int k = 0; k < DIM; k++)
            squares += (double)b[i * DIM + k] * b[i * DIM + k];
        for (int k = 0; k < DIM; k++)
            b[i * DIM + k] = (float)(b[i * DIM + k] / sqrt(squares));
    }
    return b;
}

typedef struct nearest {
    double best, second;
    size_t index;
} nearest;

static double dot(const float *a, const float *b) {
    double sum = 0;
    for (int k = 0; k < DIM; k++)
        sum += (double)a[k] * b[k];
    return sum;
}

static nearest find(const float *one, const float *set, size_t count) {
    nearest n = {-INFINITY, -INFINITY, 0};
    for (size_t i = 0; i < count; i++) {
        double s = dot(one, set + i * DIM);
        if (s > n.best)
            n = (nearest){s, n.best, i};
        else if (s > n.second)
            n.second = s;
    }
    return n;
}

static bool passes(const sp_match_options *o, nearest n) {
    double d = sqrt(fmax(0, 2 - 2 * n.best)), d2 = sqrt(fmax(0, 2 - 2 * n.second));
    return d <= o->max_distance && (o->max_ratio >= 1 || n.second == -INFINITY || d <= o->max_ratio * d2);
}

static void compare(const sp_match_options *o, const float *a, size_t na, const float *b, size_t nb) {
    sp_matcher *matcher = NULL;
    sp_error err;
    assert_int_equal(sp_matcher_create(o, &matcher, &err), SP_OK);
    sp_matches m;
    sp_descriptors sa = {a, na, SP_DTYPE_FLOAT32}, sb = {b, nb, SP_DTYPE_FLOAT32};
    assert_int_equal(sp_match(matcher, &sa, &sb, &m, &err), SP_OK);
    nearest *back_of = malloc((nb + 1) * sizeof *back_of);
    for (size_t i = 0; na && i < nb; i++)
        back_of[i] = find(b + i * DIM, a, na);
    size_t at = 0;
    for (size_t i = 0; nb && i < na; i++) {
        nearest there = find(a + i * DIM, b, nb), back = back_of[there.index];
        if (!passes(o, there) || (o->mutual && (back.index != i || !passes(o, back))))
            continue;
        assert_true(at < m.count);
        assert_int_equal(m.pairs[2 * at], i);
        assert_int_equal(m.pairs[2 * at + 1], there.index);
        assert_true(fabs(m.similarities[at] - there.best) < 2e-6);
        at++;
    }
    assert_int_equal(at, m.count);
    free(back_of);
    sp_matches_free(&m);
    sp_matcher_free(matcher);
}

static void test_every_level_finds_the_same(void **state) {
    (void)state;
    static const size_t sizes[][2] = {{0, 5},   {5, 0},   {1, 1},    {1, 33},   {33, 1},
                                      {12, 32}, {13, 31}, {97, 203}, {600, 65}, {1300, 70}};
    for (int level = SP_CPU_C; level <= SP_CPU_NEON; level++) {
        if (!sp_cpu_has((sp_cpu_level)level))
            continue;
        for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
            float *a = random_set(sizes[s][0]), *b = related_set(a, sizes[s][0], sizes[s][1]);
            for (int variant = 0; variant < 8; variant++) {
                sp_match_options o;
                sp_match_options_default(&o);
                o.level = sp_cpu_level_text((sp_cpu_level)level);
                o.threads = 1 + (uint32_t)variant % 3;
                o.mutual = variant & 1;
                o.max_ratio = variant & 2 ? 0.8f : 1;
                o.max_distance = variant & 4 ? 0.7f : 2;
                compare(&o, a, sizes[s][0], b, sizes[s][1]);
            }
            free(a);
            free(b);
        }
    }
}

static void test_threads_do_not_change_a_bit(void **state) {
    (void)state;
    float *a = random_set(700), *b = related_set(a, 700, 650);
    sp_descriptors sa = {a, 700, SP_DTYPE_FLOAT32}, sb = {b, 650, SP_DTYPE_FLOAT32};
    sp_matches first = {0};
    for (uint32_t threads = 1; threads <= 5; threads++) {
        sp_match_options o;
        sp_match_options_default(&o);
        o.threads = threads;
        sp_matcher *matcher = NULL;
        sp_matches m;
        assert_int_equal(sp_matcher_create(&o, &matcher, NULL), SP_OK);
        assert_int_equal(sp_match(matcher, &sa, &sb, &m, NULL), SP_OK);
        sp_matcher_free(matcher);
        if (threads == 1) {
            first = m;
            assert_true(m.count > 100);
            continue;
        }
        assert_int_equal(m.count, first.count);
        assert_memory_equal(m.pairs, first.pairs, m.count * 2 * sizeof *m.pairs);
        assert_memory_equal(m.similarities, first.similarities, m.count * sizeof *m.similarities);
        sp_matches_free(&m);
    }
    sp_matches_free(&first);
    free(a);
    free(b);
}

static void test_equal_ones_and_the_first_is_taken(void **state) {
    (void)state;
    float *a = random_set(3), *b = malloc(100 * DIM * sizeof *b);
    for (int i = 0; i < 100; i++)
        memcpy(b + i * DIM, a + (i % 3) * DIM, DIM * sizeof *b);
    sp_descriptors sa = {a, 3, SP_DTYPE_FLOAT32}, sb = {b, 100, SP_DTYPE_FLOAT32};
    for (int level = SP_CPU_C; level <= SP_CPU_NEON; level++) {
        if (!sp_cpu_has((sp_cpu_level)level))
            continue;
        sp_match_options o;
        sp_match_options_default(&o);
        o.level = sp_cpu_level_text((sp_cpu_level)level);
        sp_matcher *matcher = NULL;
        sp_matches m;
        assert_int_equal(sp_matcher_create(&o, &matcher, NULL), SP_OK);
        assert_int_equal(sp_match(matcher, &sa, &sb, &m, NULL), SP_OK);
        assert_int_equal(m.count, 3);
        for (uint32_t i = 0; i < 3; i++)
            assert_int_equal(m.pairs[2 * i + 1], i);
        sp_matches_free(&m);
        sp_matcher_free(matcher);
    }
    free(a);
    free(b);
}

/* float16 and uint8 are the float32 search over what they decode to. */
static void test_dtypes(void **state) {
    (void)state;
    enum { N = 200 };
    float *a = random_set(N), *b = related_set(a, N, N);
    static const double tolerance[] = {1e-3, 2e-6, 3e-2};
    for (int dtype = SP_DTYPE_FLOAT16; dtype <= SP_DTYPE_UINT8; dtype++) {
        void *qa = malloc(N * DIM * 4), *qb = malloc(N * DIM * 4);
        sp_convert(a, N * DIM, (sp_dtype)dtype, qa);
        sp_convert(b, N * DIM, (sp_dtype)dtype, qb);
        sp_matcher *matcher = NULL;
        sp_matches m;
        assert_int_equal(sp_matcher_create(NULL, &matcher, NULL), SP_OK);
        assert_int_equal(sp_match(matcher, &(sp_descriptors){qa, N, (sp_dtype)dtype},
                                  &(sp_descriptors){qb, N, (sp_dtype)dtype}, &m, NULL),
                         SP_OK);
        assert_true(m.count >= N / 2);
        for (size_t i = 0; i < m.count; i++) {
            double exact = dot(a + m.pairs[2 * i] * DIM, b + m.pairs[2 * i + 1] * DIM);
            assert_true(fabs(exact - m.similarities[i]) < tolerance[dtype]);
        }
        sp_matches_free(&m);
        sp_matcher_free(matcher);
        free(qa);
        free(qb);
    }
    free(a);
    free(b);
}

static void test_not_a_number_is_nobodys_neighbour(void **state) {
    (void)state;
    float *a = random_set(20), *b = related_set(a, 20, 40);
    for (int k = 0; k < DIM; k++)
        a[3 * DIM + k] = b[8 * DIM + k] = NAN;
    sp_matcher *matcher = NULL;
    sp_matches m;
    assert_int_equal(sp_matcher_create(NULL, &matcher, NULL), SP_OK);
    assert_int_equal(sp_match(matcher, &(sp_descriptors){a, 20, SP_DTYPE_FLOAT32},
                              &(sp_descriptors){b, 40, SP_DTYPE_FLOAT32}, &m, NULL),
                     SP_OK);
    assert_true(m.count > 0);
    for (size_t i = 0; i < m.count; i++) {
        assert_int_not_equal(m.pairs[2 * i], 3);
        assert_int_not_equal(m.pairs[2 * i + 1], 8);
    }
    sp_matches_free(&m);
    sp_matcher_free(matcher);
    free(a);
    free(b);
}

static void refuse(sp_match_options o, sp_status expected) {
    sp_matcher *matcher = NULL;
    sp_error err;
    assert_int_equal(sp_matcher_create(&o, &matcher, &err), expected);
    assert_null(matcher);
    assert_string_not_equal(err.text, "");
}

static void test_refusals(void **state) {
    (void)state;
    sp_match_options o;
    sp_match_options_default(&o);
    sp_match_options bad = o;
    bad.max_ratio = 0;
    refuse(bad, SP_ERR_ARGUMENT);
    bad.max_ratio = NAN;
    refuse(bad, SP_ERR_ARGUMENT);
    bad = o;
    bad.max_distance = 2.5f;
    refuse(bad, SP_ERR_ARGUMENT);
    bad = o;
    bad.level = "sse9";
    refuse(bad, SP_ERR_ARGUMENT);
    bad = o;
    bad.struct_size = 1;
    refuse(bad, SP_ERR_ARGUMENT);
    sp_matcher *matcher = NULL;
    sp_matches m;
    float one[DIM] = {1};
    assert_int_equal(sp_matcher_create(NULL, &matcher, NULL), SP_OK);
    const sp_descriptors good = {one, 1, SP_DTYPE_FLOAT32}, none = {NULL, 1, SP_DTYPE_FLOAT32},
                         many = {one, (size_t)SP_MAX_MATCH_DESCRIPTORS + 1, SP_DTYPE_FLOAT32},
                         odd = {one, 1, (sp_dtype)7};
    assert_int_equal(sp_match(matcher, &good, &none, &m, NULL), SP_ERR_ARGUMENT);
    assert_int_equal(sp_match(matcher, &many, &good, &m, NULL), SP_ERR_LIMIT);
    assert_int_equal(sp_match(matcher, &good, &odd, &m, NULL), SP_ERR_ARGUMENT);
    assert_int_equal(sp_match(matcher, &good, &good, &m, NULL), SP_OK);
    assert_int_equal(m.count, 1);
    sp_matches_free(&m);
    sp_matcher_free(matcher);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_level_finds_the_same),        cmocka_unit_test(test_threads_do_not_change_a_bit),
        cmocka_unit_test(test_equal_ones_and_the_first_is_taken), cmocka_unit_test(test_dtypes),
        cmocka_unit_test(test_not_a_number_is_nobodys_neighbour), cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
