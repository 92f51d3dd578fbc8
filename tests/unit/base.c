/* Errors and the thread pool. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/cpu.h"
#include "base/error.h"
#include "base/pool.h"

static void test_every_status_has_a_meaning(void **state) {
    (void)state;
    for (int s = SP_OK; s <= SP_ERR_INTERNAL; s++) {
        assert_string_not_equal(sp_status_text((sp_status)s), "unknown status");
        assert_true(sp_status_http((sp_status)s) == 200 ? s == SP_OK : sp_status_http((sp_status)s) >= 400);
        assert_int_equal(sp_status_exit((sp_status)s) == 0, s == SP_OK);
    }
    assert_string_equal(sp_status_text((sp_status)99), "unknown status");
    assert_int_equal(sp_status_http((sp_status)-1), 500);
}

static void test_long_texts_are_cut(void **state) {
    (void)state;
    char big[2000];
    memset(big, 'x', sizeof big - 1);
    big[sizeof big - 1] = '\0';
    sp_error err;
    assert_int_equal(sp_fail(&err, SP_ERR_IO, "%s", big), SP_ERR_IO);
    assert_int_equal(strlen(err.text), sizeof err.text - 1);
    assert_int_equal(sp_fail(NULL, SP_ERR_IO, "%s", big), SP_ERR_IO);
    assert_int_equal(sp_succeed(&err), SP_OK);
    assert_string_equal(err.text, "");
}

typedef struct tally {
    uint8_t *seen;
    uint32_t threads;
} tally;

static void count(void *context, size_t first, size_t last, uint32_t thread) {
    tally *t = context;
    assert_true(thread < t->threads);
    for (size_t i = first; i < last; i++)
        t->seen[i]++;
}

static void test_pool_does_every_item_once(void **state) {
    (void)state;
    uint8_t seen[1000];
    for (uint32_t threads = 1; threads <= 5; threads++) {
        sp_pool *pool = NULL;
        assert_int_equal(sp_pool_create(threads, &pool, NULL), SP_OK);
        assert_int_equal(sp_pool_threads(pool), threads);
        tally t = {seen, threads};
        for (size_t items = 0; items < sizeof seen; items += 37) {
            memset(seen, 0, sizeof seen);
            sp_pool_run(pool, items, count, &t);
            for (size_t i = 0; i < sizeof seen; i++)
                assert_int_equal(seen[i], i < items);
            sp_pool_share(pool, items, count, &t);
            for (size_t i = 0; i < sizeof seen; i++)
                assert_int_equal(seen[i], 2 * (i < items));
        }
        sp_pool_free(pool);
    }
    sp_pool *none = NULL;
    assert_int_equal(sp_pool_create(0, &none, NULL), SP_ERR_ARGUMENT);
    assert_null(none);
}

static void test_levels_have_names(void **state) {
    (void)state;
    for (int i = SP_CPU_C; i <= SP_CPU_NEON; i++) {
        sp_cpu_level level;
        assert_true(sp_cpu_level_parse(sp_cpu_level_text((sp_cpu_level)i), &level));
        assert_int_equal(level, i);
    }
    assert_true(sp_cpu_has(SP_CPU_C));
    assert_true(sp_cpu_has(sp_cpu_best()));
    assert_false(sp_cpu_level_parse("sse9", &(sp_cpu_level){0}));
    assert_true(sp_cpu_count() >= 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_status_has_a_meaning),
        cmocka_unit_test(test_long_texts_are_cut),
        cmocka_unit_test(test_pool_does_every_item_once),
        cmocka_unit_test(test_levels_have_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
