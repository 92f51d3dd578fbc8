/* Weights: what is read, what is refused and why. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "model/model.h"
#include "model/safetensors.h"

static const char weights_path[] = "weights/superpoint.safetensors";

static void *read_weights(size_t *size) {
    void *bytes = NULL;
    assert_int_equal(sp_file_read(weights_path, SP_MAX_WEIGHTS_BYTES, &bytes, size, NULL), SP_OK);
    return bytes;
}

static void test_own_weights_open(void **state) {
    (void)state;
    sp_model *model = NULL;
    sp_error err;
    assert_int_equal(sp_model_open(weights_path, NULL, &model, &err), SP_OK);
    const sp_model_info *info = sp_model_get_info(model);
    assert_string_equal(info->id, "superpoint");
    assert_string_equal(info->licence, "Apache-2.0");
    assert_int_equal(strlen(info->sha256), 64);
    assert_int_equal(info->parameters, SP_PARAMETERS);
    sp_model_free(model);
}

static void test_table_counts_the_parameters(void **state) {
    (void)state;
    size_t sum = 0;
    for (int i = 0; i < SP_LAYERS; i++)
        sum += sp_layer_kernel_size(&sp_network[i]) + sp_network[i].out;
    assert_int_equal(sum, SP_PARAMETERS);
}

static sp_status open_bytes(const void *bytes, size_t size, sp_error *err) {
    sp_model *model = NULL;
    /* an exact copy on the heap, so that a sanitizer sees a read past its end */
    void *copy = malloc(size ? size : 1);
    memcpy(copy, bytes, size);
    sp_status status = sp_model_from_memory(copy, size, "test", &model, err);
    free(copy);
    sp_model_free(model);
    return status;
}

static void test_cut_and_padded_files(void **state) {
    (void)state;
    size_t size;
    char *bytes = read_weights(&size);
    sp_error err;
    assert_int_equal(open_bytes(bytes, size, &err), SP_OK);
    const size_t cuts[] = {0, 1, 7, 8, 9, 100, 2000, size / 2};
    for (size_t i = 0; i < sizeof cuts / sizeof cuts[0]; i++) {
        assert_int_equal(open_bytes(bytes, cuts[i], &err), SP_ERR_WEIGHTS_DATA);
        assert_non_null(strstr(err.text, "test"));
    }
    assert_int_equal(open_bytes(bytes, size - 1, &err), SP_ERR_WEIGHTS_DATA);
    char *longer = calloc(1, size + 1);
    memcpy(longer, bytes, size);
    assert_int_equal(open_bytes(longer, size + 1, &err), SP_ERR_WEIGHTS_DATA);
    assert_non_null(strstr(err.text, "follow the last tensor"));
    free(longer);
    free(bytes);
}

/* A file with this header and `data` zero bytes. */
static sp_status open_header(const char *header, size_t data, sp_error *err) {
    const size_t length = strlen(header);
    unsigned char *bytes = calloc(1, 8 + length + data);
    for (int i = 0; i < 8; i++)
        bytes[i] = (unsigned char)(length >> (8 * i));
    memcpy(bytes + 8, header, length);
    sp_status status = open_bytes(bytes, 8 + length + data, err);
    free(bytes);
    return status;
}

static void test_hostile_headers(void **state) {
    (void)state;
    static const struct {
        const char *header;
        size_t data;
        sp_status status;
        const char *says;
    } cases[] = {
        {"{}", 0, SP_ERR_WEIGHTS_NETWORK, "absent"},
        {"[]", 0, SP_ERR_WEIGHTS_DATA, "not a JSON object"},
        {"{", 0, SP_ERR_WEIGHTS_DATA, "not a JSON object"},
        {"{\"a\":{},\"a\":{}}", 0, SP_ERR_WEIGHTS_DATA, "not a JSON object"},
        {"{\"a\":5}", 0, SP_ERR_WEIGHTS_DATA, "dtype"},
        {"{\"a\":{\"dtype\":\"F33\",\"shape\":[],\"data_offsets\":[0,4]}}", 4, SP_ERR_WEIGHTS_DATA, "F33"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[-1],\"data_offsets\":[0,4]}}", 4, SP_ERR_WEIGHTS_DATA, "shape[0]"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1.5],\"data_offsets\":[0,4]}}", 4, SP_ERR_WEIGHTS_DATA, "shape[0]"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[4294967296,4294967296],\"data_offsets\":[0,4]}}", 4, SP_ERR_WEIGHTS_DATA,
         "too large"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[4611686018427387905],\"data_offsets\":[0,4]}}", 4, SP_ERR_WEIGHTS_DATA,
         "do not agree"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1,1,1,1,1,1,1,1,1],\"data_offsets\":[0,4]}}", 4, SP_ERR_WEIGHTS_DATA,
         "at most 8"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0]}}", 4, SP_ERR_WEIGHTS_DATA, "data_offsets"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,0]}}", 4, SP_ERR_WEIGHTS_DATA, "outside"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,8]}}", 4, SP_ERR_WEIGHTS_DATA, "cut short"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,9223372036854775807]}}", 4, SP_ERR_WEIGHTS_DATA,
         "cut short"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,4]}}", 4, SP_ERR_WEIGHTS_DATA, "do not agree"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,8]}}", 8, SP_ERR_WEIGHTS_DATA, "gap"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]},"
         "\"b\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,8]}}",
         8, SP_ERR_WEIGHTS_DATA, "overlaps"},
        {"{\"encoder.conv_blocks.0.conv_a.weight\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4,
         SP_ERR_WEIGHTS_NETWORK, "another shape"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        sp_error err;
        assert_int_equal(open_header(cases[i].header, cases[i].data, &err), cases[i].status);
        if (!strstr(err.text, cases[i].says))
            fail_msg("case %zu says: %s", i, err.text);
    }
    unsigned char huge[8] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f};
    sp_error err;
    assert_int_equal(open_bytes(huge, sizeof huge, &err), SP_ERR_WEIGHTS_DATA);
}

static void test_not_finite_is_refused(void **state) {
    (void)state;
    size_t size;
    unsigned char *bytes = read_weights(&size);
    sp_error err;
    memset(bytes + size - 4, 0xff, 4); /* the last bias becomes NaN */
    assert_int_equal(open_bytes(bytes, size, &err), SP_ERR_WEIGHTS_DATA);
    assert_non_null(strstr(err.text, "not finite"));
    free(bytes);
}

static void test_half_types_are_read(void **state) {
    (void)state;
    static const struct {
        const char *dtype;
        unsigned char bytes[6];
        float values[3];
    } cases[] = {{"F16", {0x00, 0x3c, 0x01, 0x80, 0xff, 0x7b}, {1, -0x1p-24f, 65504}},
                 {"BF16", {0x80, 0x3f, 0x00, 0xc0, 0x49, 0x40}, {1, -2, 3.140625f}}};
    for (size_t i = 0; i < 2; i++) {
        char file[200] = {0};
        const int n = snprintf(file + 8, sizeof file - 8,
                               "{\"a\":{\"dtype\":\"%s\",\"shape\":[3],\"data_offsets\":[0,6]}}", cases[i].dtype);
        file[0] = (char)n;
        memcpy(file + 8 + n, cases[i].bytes, 6);
        sp_safetensors *st = NULL;
        assert_int_equal(sp_safetensors_open(file, (size_t)n + 14, "test", &st, NULL), SP_OK);
        float out[3];
        sp_tensor_to_float(sp_safetensors_find(st, "a"), out);
        assert_memory_equal(out, cases[i].values, sizeof out);
        sp_safetensors_close(st);
    }
}

/* A hub cache in a temporary folder, with the tree's weights as the snapshot's file. */
static void test_hub_cache(void **state) {
    (void)state;
    char root[] = "/tmp/superpoint-test-XXXXXX", path[512], here[256], target[512];
    assert_non_null(mkdtemp(root));
    assert_non_null(getcwd(here, sizeof here));
    static const char *const folders[] = {"models--some--net", "models--some--net/refs", "models--some--net/snapshots",
                                          "models--some--net/snapshots/0123abc"};
    for (size_t i = 0; i < 4; i++) {
        snprintf(path, sizeof path, "%s/%s", root, folders[i]);
        assert_int_equal(mkdir(path, 0777), 0);
    }
    snprintf(target, sizeof target, "%s/%s", here, weights_path);
    snprintf(path, sizeof path, "%s/models--some--net/snapshots/0123abc/model.safetensors", root);
    assert_int_equal(symlink(target, path), 0);
    snprintf(path, sizeof path, "%s/models--some--net/refs/main", root);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs("0123abc\n", f);
    fclose(f);

    const sp_model_options options = {sizeof options, root};
    sp_error err;
    sp_model *model = NULL;
    static const char *const found[] = {"some/net", "some/net@main", "some/net@0123abc"};
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(sp_model_open(found[i], &options, &model, &err), SP_OK);
        assert_string_equal(sp_model_get_info(model)->id, "some/net");
        assert_string_equal(sp_model_get_info(model)->revision, "0123abc");
        sp_model_free(model);
    }
    static const char *const lost[] = {"some/net@other", "some/other",       "../net",
                                       "some/..",        "some/net@../../x", "no-such-file.safetensors",
                                       "a/b/c/d",        "some/net@",        "/"};
    for (size_t i = 0; i < sizeof lost / sizeof lost[0]; i++) {
        assert_int_not_equal(sp_model_open(lost[i], &options, &model, &err), SP_OK);
        assert_null(model);
        assert_true(strlen(err.text) > 0);
    }
    char command[64];
    snprintf(command, sizeof command, "rm -r %s", root);
    assert_int_equal(system(command), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_own_weights_open),
        cmocka_unit_test(test_table_counts_the_parameters),
        cmocka_unit_test(test_cut_and_padded_files),
        cmocka_unit_test(test_hostile_headers),
        cmocka_unit_test(test_not_finite_is_refused),
        cmocka_unit_test(test_half_types_are_read),
        cmocka_unit_test(test_hub_cache),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
