/* int8 weights beside a weights file: taken when they are whole and belong to it, refused when broken. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "model/int8_weights.h"

static const char digest[] = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";
static const char other[] = "ff112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";
static const char current[] = "superpoint int8 1";

static char folder[] = "/tmp/int8-XXXXXX";
static char weights_path[64], int8_path[64];

static int make_folder(void **state) {
    (void)state;
    if (!mkdtemp(folder))
        return 1;
    snprintf(weights_path, sizeof weights_path, "%s/w.safetensors", folder);
    snprintf(int8_path, sizeof int8_path, "%s/w.int8", folder);
    return 0;
}

static int remove_folder(void **state) {
    (void)state;
    remove(int8_path);
    return rmdir(folder);
}

/* What a file says; the rest of it is right. */
typedef struct content {
    const char *format, *sha256;
    const char *tensor; /* whose values are `value`; others hold their number in the file, from 1 */
    float value;
    const char *absent; /* this tensor is left out */
    const char *longer; /* this one has a channel too many */
    const char *type;   /* of the weights */
} content;

typedef struct writer {
    const content *c;
    char header[8192];
    size_t length, bytes;
    char *data;
    int number;
} writer;

static void add(writer *w, int layer, const char *what) {
    const content *c = w->c;
    const sp_layer *l = &sp_network[layer];
    const bool weight = strcmp(what, "weight") == 0;
    char name[128];
    snprintf(name, sizeof name, "%s.%s", l->name, what);
    w->number++;
    if (c->absent && strcmp(name, c->absent) == 0)
        return;
    const unsigned out = l->out + (c->longer && strcmp(name, c->longer) == 0);
    const size_t count = weight ? (size_t)out * l->in * 9 : out, bytes = weight ? count : 4 * count;
    const char *type = weight ? c->type ? c->type : "I8" : "F32";
    char shape[64];
    if (weight)
        snprintf(shape, sizeof shape, "%u,%u,3,3", out, l->in);
    else
        snprintf(shape, sizeof shape, "%u", out);
    w->length += (size_t)snprintf(w->header + w->length, sizeof w->header - w->length,
                                  ",\"%s\":{\"dtype\":\"%s\",\"shape\":[%s],\"data_offsets\":[%zu,%zu]}", name, type,
                                  shape, w->bytes, w->bytes + bytes);
    const float value = c->tensor && strcmp(name, c->tensor) == 0 ? c->value : (float)w->number;
    w->data = realloc(w->data, w->bytes + bytes);
    assert_non_null(w->data);
    if (weight)
        memset(w->data + w->bytes, w->number, bytes);
    for (size_t i = 0; !weight && i < count; i++)
        memcpy(w->data + w->bytes + 4 * i, &value, sizeof value);
    w->bytes += bytes;
}

static void write_file(const content *c) {
    writer w = {.c = c};
    w.length = (size_t)snprintf(w.header, sizeof w.header, "{\"__metadata__\":{\"format\":\"%s\",\"weights\":\"%s\"}",
                                c->format ? c->format : current, c->sha256 ? c->sha256 : digest);
    for (int layer = 0; layer <= SP_INT8_LAST; layer++) {
        if (layer < SP_INT8_LAST)
            add(&w, layer, "step");
        for (size_t i = 0; layer >= SP_INT8_FIRST && i < 3; i++)
            add(&w, layer, (const char *const[]){"weight", "scale", "bias"}[i]);
    }
    w.header[w.length++] = '}';
    const uint64_t length = w.length;
    FILE *f = fopen(int8_path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(&length, sizeof length, 1, f), 1); /* little-endian, as is every machine that runs this */
    assert_int_equal(fwrite(w.header, w.length, 1, f), 1);
    assert_int_equal(fwrite(w.data, w.bytes, 1, f), 1);
    assert_int_equal(fclose(f), 0);
    free(w.data);
}

/* What loading the file says, and whether it gave weights. */
static sp_status load(bool *given) {
    struct sp_int8_weights *w;
    sp_error err = {0};
    const sp_status status = sp_int8_weights_load(weights_path, digest, &w, &err);
    if (status != SP_OK) /* names the file */
        assert_non_null(strstr(err.text, "w.int8"));
    *given = w != NULL;
    free(w);
    return status;
}

static void test_whole(void **state) {
    (void)state;
    struct sp_int8_weights *w;
    write_file(&(content){0});
    assert_int_equal(sp_int8_weights_load(weights_path, digest, &w, NULL), SP_OK);
    assert_non_null(w);
    assert_true(w->layer[0].step[63] == 1 && w->layer[1].step[0] == 2);
    assert_null(w->layer[0].weight);
    assert_int_equal(w->layer[1].weight[0], 3);
    assert_int_equal(w->layer[1].weight[64 * 64 * 9 - 1], 3);
    assert_true(w->layer[1].scale[0] == 4 && w->layer[1].bias[63] == 5);
    assert_int_equal(w->layer[5].weight[128 * 128 * 9 - 1], 18);
    assert_true(w->layer[5].scale[127] == 19 && w->layer[5].bias[127] == 20);
    free(w);
}

static void test_absent_or_of_other_weights(void **state) {
    (void)state;
    bool given;
    remove(int8_path);
    assert_int_equal(load(&given), SP_OK);
    assert_false(given);
    write_file(&(content){.sha256 = other});
    assert_int_equal(load(&given), SP_OK);
    assert_false(given);
}

static void assert_refused(const content *c) {
    bool given;
    write_file(c);
    assert_int_equal(load(&given), SP_ERR_WEIGHTS_DATA);
    assert_false(given);
}

static void test_broken(void **state) {
    (void)state;
    static const char step[] = "encoder.conv_blocks.1.conv_a.step", weight[] = "encoder.conv_blocks.1.conv_a.weight",
                      scale[] = "encoder.conv_blocks.2.conv_b.scale", bias[] = "encoder.conv_blocks.0.conv_b.bias";
    static const float values[] = {0, -1, NAN, INFINITY, 1e30f, 1e-30f};
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        assert_refused(&(content){.tensor = step, .value = values[i]});
        assert_refused(&(content){.tensor = scale, .value = values[i]});
    }
    assert_refused(&(content){.tensor = bias, .value = NAN});
    assert_refused(&(content){.tensor = bias, .value = -INFINITY});
    assert_refused(&(content){.absent = weight});
    assert_refused(&(content){.absent = scale});
    assert_refused(&(content){.longer = weight});
    assert_refused(&(content){.longer = bias});
    assert_refused(&(content){.type = "U8"});
    assert_refused(&(content){.format = "superpoint int8 2"});
}

static void test_cut(void **state) {
    (void)state;
    bool given;
    write_file(&(content){0});
    assert_int_equal(truncate(int8_path, 1000), 0);
    assert_int_equal(load(&given), SP_ERR_WEIGHTS_DATA);
    assert_int_equal(truncate(int8_path, 0), 0);
    assert_int_equal(load(&given), SP_ERR_WEIGHTS_DATA);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_whole), cmocka_unit_test(test_absent_or_of_other_weights),
                                       cmocka_unit_test(test_broken), cmocka_unit_test(test_cut)};
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
