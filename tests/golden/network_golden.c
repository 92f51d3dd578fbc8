/*
 * Engines in fp32 against stored results of transformers (make_network_golden.py): dense maps to
 * 1e-5, and the very same keypoints by both rules of suppression.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <math.h>

#include "superpoint.h"

#define FOLDER "tests/golden/network/"

typedef struct golden {
    char name[32];
    uint32_t width, height;
    int has_maps;
} golden;

static golden frames[8];
static size_t frame_count;

static void *read_file(const char *name, const char *suffix, size_t size) {
    char path[256];
    snprintf(path, sizeof path, FOLDER "%s%s", name, suffix);
    FILE *f = fopen(path, "rb");
    if (!f)
        fail_msg("%s is missing", path);
    void *bytes = malloc(size + 1);
    assert_int_equal(fread(bytes, 1, size + 1, f), size);
    fclose(f);
    return bytes;
}

static void check_maps(const golden *g, const sp_maps *maps) {
    const size_t pixels = (size_t)g->width * g->height, elements = pixels * 4;
    float *scores = read_file(g->name, ".scores.f32", pixels * sizeof *scores);
    float *descriptors = read_file(g->name, ".descriptors.f32", elements * sizeof *descriptors);
    double score = 0, descriptor = 0;
    for (size_t i = 0; i < pixels; i++)
        score = fmax(score, fabs((double)maps->scores[i] - scores[i]));
    for (size_t i = 0; i < elements; i++)
        descriptor = fmax(descriptor, fabs((double)maps->descriptors[i] - descriptors[i]));
    print_message("    %-6s scores %.1e, descriptors %.1e\n", g->name, score, descriptor);
    assert_true(score <= 1e-5 && descriptor <= 1e-5);
    free(scores);
    free(descriptors);
}

static int by_raster(const void *a, const void *b) {
    const uint16_t *p = a, *q = b;
    return p[1] != q[1] ? p[1] - q[1] : p[0] - q[0];
}

static void check_points(const golden *g, const sp_maps *maps, const sp_frame *frame, sp_nms nms) {
    sp_params params;
    sp_params_default(&params);
    params.nms = nms;
    if (nms == SP_NMS_HF) {
        params.border = 0;
        params.max_keypoints = -1;
    }
    sp_features found = {0};
    assert_int_equal(sp_features_extract(maps, frame, &params, &found, NULL), SP_OK);
    if (found.count) /* scores that differ in the last bit may change places */
        qsort(found.pixels, found.count, 2 * sizeof *found.pixels, by_raster);
    char path[256];
    snprintf(path, sizeof path, FOLDER "%s.%s.txt", g->name, nms == SP_NMS_HF ? "hf" : "default");
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    unsigned x, y;
    size_t n = 0;
    while (fscanf(f, "%u %u", &x, &y) == 2) {
        assert_true(n < found.count);
        assert_int_equal(found.pixels[2 * n], x);
        assert_int_equal(found.pixels[2 * n + 1], y);
        n++;
    }
    fclose(f);
    assert_int_equal(n, found.count);
    sp_features_free(&found);
}

static void check_engine(const char *name, const char *level, uint32_t threads) {
    const sp_engine_options options = {.struct_size = sizeof options,
                                       .engine = name,
                                       .level = level,
                                       .precision = SP_PRECISION_FP32,
                                       .threads = threads,
                                       .nms_radius = 4};
    sp_model *model = NULL;
    sp_engine *engine = NULL;
    sp_error err = {0};
    if (sp_model_open("weights/superpoint.safetensors", NULL, &model, &err) != SP_OK ||
        sp_engine_create(model, &options, &engine, &err) != SP_OK)
        fail_msg("%s", err.text);
    print_message("  engine %s, level %s\n", name, level ? level : "-");
    sp_maps maps = {0};
    for (size_t i = 0; i < frame_count; i++) {
        const golden *g = &frames[i];
        if (!g->has_maps && strcmp(name, "reference") == 0)
            continue; /* the full frame is for the fast engines */
        uint8_t *pixels = read_file(g->name, ".u8", (size_t)g->width * g->height);
        const sp_frame frame = {.width = g->width,
                                .height = g->height,
                                .content_width = g->width,
                                .content_height = g->height,
                                .original_width = g->width,
                                .original_height = g->height,
                                .scale_x = 1,
                                .scale_y = 1,
                                .stride = g->width,
                                .pixels = pixels};
        assert_int_equal(sp_engine_run(engine, &(const sp_frame *){&frame}, 1, &maps, &err), SP_OK);
        if (g->has_maps)
            check_maps(g, &maps);
        check_points(g, &maps, &frame, SP_NMS_SINGLE);
        check_points(g, &maps, &frame, SP_NMS_HF);
        free(pixels);
    }
    sp_maps_free(&maps);
    sp_engine_free(engine);
    sp_model_free(model);
}

static void test_reference(void **state) {
    (void)state;
    check_engine("reference", NULL, 1);
}

static void test_cpu_levels(void **state) {
    (void)state;
    if (sp_engine_probe("cpu", NULL) != SP_OK)
        skip();
    for (const char *const *level = sp_cpu_levels(); *level; level++)
        if (sp_cpu_level_available(*level))
            for (uint32_t threads = 1; threads <= 2; threads++)
                check_engine("cpu", *level, threads);
        else
            print_message("  skipped: this machine has no level %s\n", *level);
}

int main(void) {
    FILE *index = fopen(FOLDER "frames.txt", "r");
    if (!index) {
        fprintf(stderr, FOLDER "frames.txt is missing\n");
        return 1;
    }
    golden *g = frames;
    while (frame_count < 8 && fscanf(index, "%31s %u %u %d", g->name, &g->width, &g->height, &g->has_maps) == 4)
        g = &frames[++frame_count];
    fclose(index);
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_reference), cmocka_unit_test(test_cpu_levels)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
