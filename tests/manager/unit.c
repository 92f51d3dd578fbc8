/* unit.c - the manager's own arithmetic: names, merging, boards, orders, times, addresses. */
#include "base/fs.h"
#include "base/progress.h"
#include "base/text.h"
#include "hub/cache.h"
#include "hub/http.h"
#include "package/code.h"
#include "package/manifest.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void names(void **state) {
    (void)state;
    assert_true(tm_path_is_safe("a/b-c/d.txt") && tm_path_is_safe("image/blobs/sha256/ab") && tm_path_is_safe("..a"));
    static const char *const bad[] = {"", "/a", "a//b", "a/", "..", "a/..", "a/../b", "./a", "a\\b", "a\nb"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(tm_path_is_safe(bad[i]));
    assert_true(tm_is_repo_id("changh95/superpoint-p150") && tm_is_repo_id("A_b.c/d"));
    static const char *const not_ids[] = {"a", "a/b/c", "/b", "a/", "../b", "a/..", "a b/c", "a/b@c", "a--b/c", "-a/b"};
    for (size_t i = 0; i < sizeof not_ids / sizeof *not_ids; i++)
        assert_false(tm_is_repo_id(not_ids[i]));
    assert_true(tm_is_slug("superpoint-p150") && !tm_is_slug("A") && !tm_is_slug("a..b") && !tm_is_slug("a/b"));
    assert_true(tm_is_revision("refs/pr/1") && !tm_is_revision("../x") && !tm_is_revision("-x") &&
                !tm_is_revision("a b"));
}

static void boards_and_meshes(void **state) {
    (void)state;
    static const struct {
        const char *name;
        int chips;
    } boards[] = {{"p150", 1},    {"p150b", 1},   {"p150x4", 4}, {"p300", 2},    {"p300x2", 4},
                  {"n150", 1},    {"p300cx2", 4}, {"p999", 0},   {"p150x", 0},   {"p150x0", 0},
                  {"p150x-1", 0}, {"p150 ", 0},   {"P150", 0},   {"p150x999", 0}};
    for (size_t i = 0; i < sizeof boards / sizeof *boards; i++)
        assert_int_equal(tm_hardware_chips(boards[i].name), boards[i].chips);
    int r, c;
    assert_true(tm_mesh_shape("(2, 4)", &r, &c) && r == 2 && c == 4);
    assert_true(tm_mesh_shape("P300x2", &r, &c) && r == 1 && c == 4);
    assert_true(tm_mesh_shape("BH-Galaxy", &r, &c) && r == 4 && c == 8);
    assert_false(tm_mesh_shape("(0, 4)", &r, &c) || tm_mesh_shape("(2, 4)x", &r, &c) || tm_mesh_shape("2,4", &r, &c));
}

static json_t *parse(const char *text) {
    json_error_t e;
    json_t *v = json_loads(text, 0, &e);
    assert_non_null(v);
    return v;
}

static void merging(void **state) {
    (void)state;
    json_t *base = parse("{\"a\": 1, \"env\": {\"X\": \"1\", \"Y\": \"2\"}, \"args\": [\"p\"], \"keep\": \"k\"}");
    json_t *over = parse("{\"a\": 2, \"env\": {\"Y\": \"3\"}, \"args\": [], \"keep\": null, \"new\": {\"n\": 1}}");
    json_t *want = parse(
        "{\"a\": 2, \"env\": {\"X\": \"1\", \"Y\": \"3\"}, \"args\": [\"p\"], \"keep\": \"k\", \"new\": {\"n\": 1}}");
    json_t *got = tm_merge(base, over);
    assert_true(json_equal(got, want));
    json_decref(base);
    json_decref(over);
    json_decref(want);
    json_decref(got);
}

static void orders(void **state) {
    (void)state;
    assert_true(tm_path_order("a/x", "a-b/x") < 0); /* a plain comparison of the texts says the opposite */
    assert_true(strcmp("a/x", "a-b/x") > 0);
    assert_true(tm_path_order("a/b", "a/b/c") < 0 && tm_path_order("a/c", "a/b/c") > 0);
    assert_int_equal(tm_path_order("a/b", "a/b"), 0);
}

static void times_and_sizes(void **state) {
    (void)state;
    char text[32];
    assert_string_equal(tm_human_bytes(12, text), "12 B");
    assert_string_equal(tm_human_bytes(3000, text), "3.0 kB");
    assert_string_equal(tm_human_bytes(999960, text), "1.0 MB");
    assert_string_equal(tm_human_bytes(2.1e9, text), "2.1 GB");
    assert_string_equal(tm_human_seconds(0.42, text), "420ms");
    assert_string_equal(tm_human_seconds(214, text), "3m 34s");
    assert_true(tm_parse_iso("1970-01-01T00:01:00Z") == 60);
    assert_true(tm_parse_iso("1970-01-01T01:00:00.5+01:00") == 0.5);
    assert_true(tm_parse_iso("yesterday") < 0 && tm_parse_iso("2026-01-01T00:00:00 or so") < 0);
}

static void addresses(void **state) {
    (void)state;
    assert_true(tm_same_origin("https://hub/a", "https://hub:443/b"));
    assert_false(tm_same_origin("https://hub/a", "http://hub/a"));
    assert_false(tm_same_origin("http://127.0.0.1:80/a", "http://127.0.0.1:81/a"));
    assert_false(tm_same_origin("https://hub/a", "https://hub.evil/a"));
    assert_false(tm_same_origin("https://hub/a", "https://hub@evil/a"));
    char *u = tm_resolve_url("https://hub/x/y", "/z");
    assert_string_equal(u, "https://hub/z");
    free(u);
    assert_null(tm_resolve_url("https://hub/x", "file:///etc/passwd"));
    char *escaped = tm_url_escape("a b/ü", true);
    assert_string_equal(escaped, "a%20b/%C3%BC");
    free(escaped);
}

static void patterns(void **state) {
    (void)state;
    tm_list allow = {0}, ignore = {0};
    assert_true(tm_pattern_selects("x", &allow, &ignore));
    tm_list_add(&allow, "*.json");
    tm_list_add(&allow, "sub/");
    tm_list_add(&ignore, "secret*");
    assert_true(tm_pattern_selects("deep/er/config.json", &allow, &ignore)); /* a star crosses slashes */
    assert_true(tm_pattern_selects("sub/x.bin", &allow, &ignore));
    assert_false(tm_pattern_selects("x.bin", &allow, &ignore) || tm_pattern_selects("secret.json", &allow, &ignore));
    tm_list_free(&allow);
    tm_list_free(&ignore);
}

static void shell_words(void **state) {
    (void)state;
    tm_buf b = {0};
    tm_buf_shell_word(&b, "plain-1.0");
    tm_buf_puts(&b, " ");
    tm_buf_shell_word(&b, "it's $HOME");
    tm_buf_puts(&b, " ");
    tm_buf_shell_word(&b, "");
    assert_string_equal(b.data, "plain-1.0 'it'\"'\"'s $HOME' ''");
    tm_buf_free(&b);
}

/* On every terminal that is wide enough for a few letters the row takes less than a line; the bar stays at 80. */
static void progress_row(void **state) {
    (void)state;
    const char *label = "weights magic-leap-community/superpoint@734450e9";
    tm_progress p = {.total = 2600000, .bytes = true};
    for (double t = 0; t < 8; t += 0.5) {
        p.done = (uint64_t)(300000 * t);
        tm_progress_measure(&p, t);
        for (int columns = 64; columns < 200; columns++) {
            char *row = tm_progress_row(&p, "*", label, NULL, t, columns);
            assert_true(tm_columns(row) < columns);
            assert_true(columns < 80 || strstr(row, "▏"));
            assert_true(columns < 140 || strstr(row, label));
            free(row);
        }
    }
    assert_int_equal(p.rate, 300000);
    char *row = tm_progress_row(&p, "*", "x", NULL, 0, 80);
    assert_string_equal(row, "  * x  ▕████████████░░▏ 2.2 MB/2.6 MB · 86% · 300.0 kB/s · 0:01 left");
    free(row);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names),    cmocka_unit_test(boards_and_meshes), cmocka_unit_test(merging),
        cmocka_unit_test(orders),   cmocka_unit_test(times_and_sizes),   cmocka_unit_test(addresses),
        cmocka_unit_test(patterns), cmocka_unit_test(shell_words),       cmocka_unit_test(progress_row),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
