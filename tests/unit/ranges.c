/* Ranges beside a weights file: taken when they are whole and belong to it, refused when broken. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "model/ranges.h"

static const char digest[] = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";
static const char other[] = "ff112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";

static char folder[] = "/tmp/ranges-XXXXXX";
static char weights_path[64], ranges_path[64];

static int make_folder(void **state) {
    (void)state;
    if (!mkdtemp(folder))
        return 1;
    snprintf(weights_path, sizeof weights_path, "%s/w.safetensors", folder);
    snprintf(ranges_path, sizeof ranges_path, "%s/w.ranges", folder);
    return 0;
}

static int remove_folder(void **state) {
    (void)state;
    remove(ranges_path);
    return rmdir(folder);
}

/* A whole file, in which the number at `index` is written as `number`; `layers` of them. */
static void write_ranges(const char *header, const char *sha256, int layers, int index, const char *number) {
    FILE *f = fopen(ranges_path, "w");
    assert_non_null(f);
    fprintf(f, "%s\nsha256 %s\n", header, sha256);
    int at = 0;
    for (int layer = 0; layer < layers; layer++) {
        fprintf(f, "layer %d %d\n", layer, sp_network[layer].out);
        for (int i = 0; i < sp_network[layer].out; i++, at++) {
            if (at == index)
                fprintf(f, "%s ", number);
            else
                fprintf(f, "%d.5 ", at);
        }
        fputc('\n', f);
    }
    fclose(f);
}

static sp_status load(sp_weights *weights) {
    static float values[SP_RANGES];
    memset(weights, 0, sizeof *weights);
    return sp_ranges_load(weights_path, digest, values, weights, NULL);
}

static void test_whole(void **state) {
    (void)state;
    sp_weights w;
    write_ranges("superpoint ranges 1", digest, SP_RANGED_LAYERS, -1, "");
    assert_int_equal(load(&w), SP_OK);
    assert_non_null(w.range[4]);
    assert_null(w.range[5]);
    assert_true(w.range[0][0] == 0.5f && w.range[1][0] == 64.5f && w.range[4][127] == 383.5f);
}

static void test_absent_or_of_other_weights(void **state) {
    (void)state;
    sp_weights w;
    remove(ranges_path);
    assert_int_equal(load(&w), SP_OK);
    assert_null(w.range[0]);
    write_ranges("superpoint ranges 1", other, SP_RANGED_LAYERS, -1, "");
    assert_int_equal(load(&w), SP_OK);
    assert_null(w.range[0]);
}

static void test_broken(void **state) {
    (void)state;
    static const char *const numbers[] = {"0", "-1", "nan", "inf", "x", "1e999"};
    sp_weights w;
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        write_ranges("superpoint ranges 1", digest, SP_RANGED_LAYERS, 100, numbers[i]);
        assert_int_equal(load(&w), SP_ERR_WEIGHTS_DATA);
        assert_null(w.range[0]);
    }
    write_ranges("superpoint ranges 2", digest, SP_RANGED_LAYERS, -1, "");
    assert_int_equal(load(&w), SP_ERR_WEIGHTS_DATA);
    write_ranges("superpoint ranges 1", digest, SP_RANGED_LAYERS - 1, -1, "");
    assert_int_equal(load(&w), SP_ERR_WEIGHTS_DATA);
    write_ranges("", "", 0, -1, "");
    assert_int_equal(load(&w), SP_ERR_WEIGHTS_DATA);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_whole), cmocka_unit_test(test_absent_or_of_other_weights),
                                       cmocka_unit_test(test_broken)};
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
