/* Every set of image kernels that this machine can run against the plain one: random and extreme inputs, odd tails, and
 * bytes around the output that must not change. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/cpu.h"
#include "image/kernels.h"

enum { GUARD = 64, GUARD_BYTE = 0xA5, LONGEST = 1700 };

static uint64_t state = 88172645463325252ULL;

static uint32_t next_random(void) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (uint32_t)(state >> 32);
}

/* Exactly `n` bytes on the heap, so that a sanitizer sees a read too far: noise, extremes, all 0 or all 255. */
static uint8_t *make_bytes(size_t n, int kind) {
    uint8_t *bytes = malloc(n ? n : 1);
    assert_non_null(bytes);
    for (size_t i = 0; i < n; i++)
        bytes[i] = (uint8_t)(kind == 0 ? next_random() : kind == 1 ? -(next_random() & 1) : kind == 2 ? 0 : 255);
    return bytes;
}

typedef struct output {
    uint8_t bytes[GUARD + 2 * LONGEST + GUARD];
} output;

static uint8_t *clear(output *o) {
    memset(o->bytes, GUARD_BYTE, sizeof o->bytes);
    return o->bytes + GUARD;
}

static void compare(const output *expected, const output *ours, size_t n, const char *what) {
    for (size_t i = 0; i < sizeof ours->bytes; i++) {
        if (i < GUARD || i >= GUARD + n)
            assert_int_equal(expected->bytes[i], GUARD_BYTE);
        if (expected->bytes[i] != ours->bytes[i])
            fail_msg("%s of %zu: byte %zd is %d instead of %d", what, n, (ptrdiff_t)i - GUARD, ours->bytes[i],
                     expected->bytes[i]);
    }
}

static void check_row(const sp_image_kernels *k, uint32_t in, uint32_t out, int kind) {
    output expected, ours;
    sp_filter plain, f;
    sp_error err;
    assert_int_equal(sp_filter_make(in, out, &plain, &err), SP_OK);
    assert_int_equal(sp_filter_make(in, out, &f, &err), SP_OK);
    assert_true(sp_image_kernels_c.choose_row(&plain));
    assert_true(k->choose_row(&f));
    uint8_t *row = make_bytes(in, kind);
    plain.row(&plain, row, clear(&expected));
    f.row(&f, row, clear(&ours));
    compare(&expected, &ours, out, "a row");
    free(row);
    sp_filter_free(&plain);
    sp_filter_free(&f);
}

static void check_columns(const sp_image_kernels *k, uint32_t in, uint32_t out, size_t n, int kind) {
    output expected, ours;
    sp_filter f;
    sp_error err;
    assert_int_equal(sp_filter_make(in, out, &f, &err), SP_OK);
    uint8_t **rows = malloc(f.taps * sizeof *rows);
    assert_non_null(rows);
    for (uint32_t t = 0; t < f.taps; t++)
        rows[t] = make_bytes(n, kind);
    for (uint32_t i = 0; i < out; i += 1 + out / 5) {
        const int32_t *w = f.weights + (size_t)i * f.taps;
        sp_image_kernels_c.resample_columns((const uint8_t *const *)rows, w, f.count[i], n, clear(&expected));
        k->resample_columns((const uint8_t *const *)rows, w, f.count[i], n, clear(&ours));
        compare(&expected, &ours, n, "resample_columns");
    }
    for (uint32_t t = 0; t < f.taps; t++)
        free(rows[t]);
    free(rows);
    sp_filter_free(&f);
}

static void check_colour(const sp_image_kernels *k, size_t n, int kind) {
    output expected, ours;
    uint8_t *a = make_bytes(n, kind), *b = make_bytes(n, kind ? next_random() % 4 : 0);
    sp_image_kernels_c.red(a, b, n, clear(&expected));
    k->red(a, b, n, clear(&ours));
    compare(&expected, &ours, n, "red");
    if (n >= 3) {
        sp_image_kernels_c.upsample_h2v1(a, n, clear(&expected));
        k->upsample_h2v1(a, n, clear(&ours));
        compare(&expected, &ours, 2 * n, "upsample_h2v1");
        sp_image_kernels_c.upsample_h2v2(a, b, n, clear(&expected));
        k->upsample_h2v2(a, b, n, clear(&ours));
        compare(&expected, &ours, 2 * n, "upsample_h2v2");
    }
    free(a);
    free(b);
}

static void check_all(const sp_image_kernels *k) {
    static const uint32_t sides[] = {1,  2,  3,   7,   8,   9,   15,  16,  17,  31,   33,
                                     40, 64, 100, 129, 255, 333, 480, 640, 641, 1600, 1699};
    enum { SIDES = sizeof sides / sizeof sides[0] };
    for (int kind = 0; kind < 4; kind++) {
        for (size_t i = 0; i < SIDES; i++)
            for (size_t j = 0; j < SIDES; j++)
                check_row(k, sides[i], sides[j], kind);
        for (size_t i = 0; i < SIDES; i++)
            check_columns(k, sides[i], sides[(i * 7 + 3) % SIDES], sides[(i * 5 + 1) % SIDES], kind);
        for (size_t n = 0; n < 100; n++)
            check_colour(k, n, kind);
        check_colour(k, LONGEST, kind);
    }
}

static void test_red_of_every_pair(void **unused) {
    (void)unused;
    const sp_image_kernels *k = sp_image_kernels_for(sp_cpu_best());
    uint8_t y[256], cr[256], ours[256];
    for (int i = 0; i < 256; i++)
        y[i] = (uint8_t)i;
    for (int c = 0; c < 256; c++) {
        memset(cr, c, sizeof cr);
        k->red(y, cr, sizeof y, ours);
        for (int i = 0; i < 256; i++) {
            const int offset = (91881 * (c - 128) + 32768) >> 16, r = i + offset;
            assert_int_equal(ours[i], r < 0 ? 0 : r > 255 ? 255 : r);
        }
    }
}

static void test_levels(void **unused) {
    (void)unused;
    for (int level = SP_CPU_C; level <= SP_CPU_NEON; level++) {
        if (!sp_cpu_has((sp_cpu_level)level)) {
            printf("%s: cannot run on this machine\n", sp_cpu_level_text((sp_cpu_level)level));
            continue;
        }
        check_all(sp_image_kernels_for((sp_cpu_level)level));
        printf("%s: same bytes\n", sp_cpu_level_text((sp_cpu_level)level));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_red_of_every_pair), cmocka_unit_test(test_levels)};
    return cmocka_run_group_tests_name("image kernels", tests, NULL, NULL);
}
