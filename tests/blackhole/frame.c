/*
 * Whole frames through the engine interface, on the simulated chip: the same bytes however the frame is spread and
 * started, accuracy against the reference, suppression against the library's own, frames one after another.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common.h"
#include "reference.h"
#include "superpoint.h"

/* Gates of the project for the exact path; the published package holds 0.9971 and 0.9991. */
#define LEAST_SCORE_PCC 0.99999
#define LEAST_DESCRIPTOR_PCC 0.99999

static sp_engine *open_engine(const char *name, const char *grid, bool legacy, int32_t radius, uint32_t width,
                              uint32_t height) {
    sp_engine_options options;
    sp_engine_options_default(&options);
    options.engine = name;
    options.legacy = legacy;
    options.nms_radius = radius;
    options.width = width;
    options.height = height;
    if (grid)
        setenv("SUPERPOINT_BLACKHOLE_GRID", grid, 1);
    else
        unsetenv("SUPERPOINT_BLACKHOLE_GRID");
    sp_engine *engine = NULL;
    sp_error err;
    assert_ok(sp_engine_create(test_model(), &options, &engine, &err), &err);
    return engine;
}

static sp_frame make_frame(uint32_t width, uint32_t height, uint32_t seed) {
    return (sp_frame){.width = width,
                      .height = height,
                      .content_width = width,
                      .content_height = height,
                      .original_width = width,
                      .original_height = height,
                      .scale_x = 1,
                      .scale_y = 1,
                      .stride = width,
                      .pixels = test_picture(width, height, seed)};
}

static void run_one(sp_engine *engine, const sp_frame *frame, sp_maps *maps) {
    sp_error err;
    assert_ok(sp_engine_run(engine, &frame, 1, maps, &err), &err);
}

static bool same_maps(const sp_maps *a, const sp_maps *b) {
    const size_t pixels = (size_t)a->width * a->height;
    return a->width == b->width && a->height == b->height &&
           memcmp(a->scores, b->scores, pixels * sizeof(float)) == 0 &&
           memcmp(a->descriptors, b->descriptors, pixels / 64 * SP_DESCRIPTOR_DIM * sizeof(float)) == 0;
}

/* What the chip suppressed is what the definition says: kept where no pixel of the 9 x 9 window is greater. */
static void check_suppression(const sp_maps *maps) {
    const int32_t w = (int32_t)maps->width, h = (int32_t)maps->height, r = 4;
    assert_non_null(maps->suppressed);
    assert_int_equal(maps->nms_radius, r);
    for (int32_t y = 0; y < h; y++)
        for (int32_t x = 0; x < w; x++) {
            const float score = maps->scores[y * w + x];
            bool greatest = true;
            for (int32_t j = y < r ? 0 : y - r; j <= y + r && j < h; j++)
                for (int32_t i = x < r ? 0 : x - r; i <= x + r && i < w; i++)
                    greatest &= maps->scores[j * w + i] <= score;
            assert_true(maps->suppressed[y * w + x] == (greatest ? score : 0.0f));
        }
}

static void against_reference(void **state) {
    (void)state;
    sp_frame frame = make_frame(64, 64, 3);
    sp_maps chip = {0}, reference = {0};
    sp_engine *engine = open_engine("blackhole", "2x2", false, 4, 64, 64);
    run_one(engine, &frame, &chip);
    const sp_engine_info *info = sp_engine_get_info(engine);
    assert_true(info->traced && info->device_nms);
    assert_int_equal(info->precision, SP_PRECISION_FP16);
    sp_engine_free(engine);
    engine = open_engine("reference", NULL, false, 4, 64, 64);
    run_one(engine, &frame, &reference);
    sp_engine_free(engine);
    const double scores = sp_reference_correlation(chip.scores, reference.scores, 64 * 64);
    const double descriptors =
        sp_reference_correlation(chip.descriptors, reference.descriptors, 64 * SP_DESCRIPTOR_DIM);
    printf("  64x64: score PCC %.7f, descriptor PCC %.7f\n", scores, descriptors);
    assert_true(scores >= LEAST_SCORE_PCC);
    assert_true(descriptors >= LEAST_DESCRIPTOR_PCC);
    check_suppression(&chip);
    for (size_t c = 0; c < 64; c++) {
        double norm = 0;
        for (size_t i = 0; i < SP_DESCRIPTOR_DIM; i++)
            norm += (double)chip.descriptors[c * SP_DESCRIPTOR_DIM + i] * chip.descriptors[c * SP_DESCRIPTOR_DIM + i];
        assert_true(fabs(sqrt(norm) - 1) < 1e-3);
    }
    sp_maps_free(&chip);
    sp_maps_free(&reference);
    free(frame.pixels);
}

/* One tile, halos in each direction, uneven blocks, a start a layer, suppression off: the same bytes. */
static void same_bytes(void **state) {
    (void)state;
    enum { WIDTH = 40, HEIGHT = 32 }; /* 5 x 4 cells */
    static const struct {
        const char *grid;
        bool legacy;
        int32_t radius;
    } way[] = {{"1x1", false, 4}, {"1x2", false, 4}, {"3x2", false, 4},
               {"4x5", false, 4}, {"2x2", true, 4},  {"1x3", false, 7}};
    sp_frame frame = make_frame(WIDTH, HEIGHT, 5);
    sp_maps first = {0};
    for (size_t i = 0; i < sizeof way / sizeof way[0]; i++) {
        sp_maps maps = {0};
        sp_engine *engine = open_engine("blackhole", way[i].grid, way[i].legacy, way[i].radius, WIDTH, HEIGHT);
        const sp_engine_info *info = sp_engine_get_info(engine);
        assert_int_equal(info->traced, !way[i].legacy);
        assert_int_equal(info->device_nms, !way[i].legacy && way[i].radius == 4);
        run_one(engine, &frame, &maps);
        sp_engine_free(engine);
        printf("  grid %s%s, radius %d\n", way[i].grid, way[i].legacy ? ", layer by layer" : "", way[i].radius);
        if (!way[i].legacy && way[i].radius == 4)
            check_suppression(&maps);
        else
            assert_null(maps.suppressed);
        if (i == 0)
            first = maps;
        else
            assert_true(same_maps(&first, &maps));
        if (i)
            sp_maps_free(&maps);
    }
    sp_maps_free(&first);
    free(frame.pixels);
}

/* Frames A, B, A, then another size, then A again: nothing of one is left in the next. */
static void one_after_another(void **state) {
    (void)state;
    sp_engine *engine = open_engine("blackhole", "2x1", false, 4, 24, 16);
    sp_frame a = make_frame(24, 16, 1), b = make_frame(24, 16, 2), other = make_frame(16, 32, 3);
    memset(b.pixels, 255, 24 * 16 / 2);
    const sp_frame *order[] = {&a, &b, &a, &other, &a}; /* in one call: uploads overlap where sizes agree */
    sp_maps maps[5] = {{0}};
    sp_error err;
    assert_ok(sp_engine_run(engine, order, 5, maps, &err), &err);
    assert_true(same_maps(&maps[0], &maps[2]));
    assert_true(same_maps(&maps[0], &maps[4]));
    assert_false(same_maps(&maps[0], &maps[1]));
    for (size_t i = 0; i < 5; i++) {
        check_suppression(&maps[i]);
        sp_maps_free(&maps[i]);
    }
    sp_engine_free(engine);
    free(a.pixels);
    free(b.pixels);
    free(other.pixels);
}

/* A black picture: equal scores everywhere in a cell's place stay, as the definition says. */
static void plateau(void **state) {
    (void)state;
    sp_engine *engine = open_engine("blackhole", "2x1", false, 4, 24, 24);
    sp_frame black = make_frame(24, 24, 1);
    memset(black.pixels, 0, 24 * 24);
    sp_maps maps = {0};
    run_one(engine, &black, &maps);
    check_suppression(&maps);
    sp_maps_free(&maps);
    sp_engine_free(engine);
    free(black.pixels);
}

static void refusals(void **state) {
    (void)state;
    sp_engine_options options;
    sp_engine_options_default(&options);
    options.engine = "blackhole";
    sp_engine *engine = NULL;
    sp_error err;
    options.precision = SP_PRECISION_INT8;
    assert_int_equal(sp_engine_create(test_model(), &options, &engine, &err), SP_ERR_UNAVAILABLE);
    options.precision = SP_PRECISION_AUTO;
    setenv("SUPERPOINT_BLACKHOLE_GRID", "12by10", 1);
    assert_int_equal(sp_engine_create(test_model(), &options, &engine, &err), SP_ERR_ARGUMENT);
    setenv("SUPERPOINT_BLACKHOLE_GRID", "20x10", 1);
    assert_int_equal(sp_engine_create(test_model(), &options, &engine, &err), SP_ERR_ARGUMENT);
    assert_non_null(strstr(err.text, "140"));
    setenv("SUPERPOINT_BLACKHOLE_GRID", "1x1", 1);
    assert_int_equal(sp_engine_create(test_model(), &options, &engine, &err), SP_ERR_LIMIT); /* 640x480 on one tile */
    options.width = options.height = 16;
    assert_ok(sp_engine_create(test_model(), &options, &engine, &err), &err);
    sp_engine *second = NULL;
    assert_int_equal(sp_engine_create(test_model(), &options, &second, &err), SP_ERR_UNAVAILABLE);
    assert_non_null(strstr(err.text, "in use"));
    sp_engine_free(engine);
}

int main(void) {
    if (!simulator_or_skip("blackhole.frame"))
        return SKIPPED;
    const struct CMUnitTest tests[] = {cmocka_unit_test(refusals), cmocka_unit_test(same_bytes),
                                       cmocka_unit_test(one_after_another), cmocka_unit_test(plateau),
                                       cmocka_unit_test(against_reference)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
