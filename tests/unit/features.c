/* Post-processing against its plain definition: suppression, selection, sampling, conversion. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <math.h>

#include "features/features.h"
#include "reference.h"

static uint32_t seed = 1;

static uint32_t next_random(void) {
    seed = seed * 1664525u + 1013904223u;
    return seed >> 8;
}

/* Scores with `levels` different values: few levels make plateaus and ties. */
static void fill_scores(float *map, int pixels, uint32_t levels) {
    for (int i = 0; i < pixels; i++)
        map[i] = (float)(next_random() % levels) / (float)levels;
}

static const struct { int width, height; } sizes[] = {{8, 8}, {24, 8}, {8, 80}, {56, 48}, {104, 64}};
static const uint32_t level_counts[] = {1, 2, 5, 1000, 1u << 20};
enum { MAX_PIXELS = 104 * 64 };

/* The plain windows take radius^2 a pixel: large radii get the maps that they reach across, and ties. */
static void check_nms(int radius) {
    static float map[MAX_PIXELS], ours[MAX_PIXELS], plain[MAX_PIXELS];
    const size_t last_size = radius <= 8 ? sizeof sizes / sizeof sizes[0] : 3;
    for (size_t s = 0; s < last_size; s++)
        for (size_t l = 0; l < sizeof level_counts / sizeof level_counts[0]; l++) {
            const int w = sizes[s].width, h = sizes[s].height;
            const size_t bytes = (size_t)w * (size_t)h * sizeof *map;
            fill_scores(map, w * h, level_counts[l]);
            assert_int_equal(sp_nms_single(map, (uint32_t)w, (uint32_t)h, radius, ours, NULL), SP_OK);
            sp_reference_nms_single(map, w, h, radius, plain);
            assert_memory_equal(ours, plain, bytes);
            if (radius > 4 && s > 2)
                continue;
            assert_int_equal(sp_nms_hf(map, (uint32_t)w, (uint32_t)h, radius, ours, NULL), SP_OK);
            assert_true(sp_reference_nms_hf(map, w, h, radius, plain));
            assert_memory_equal(ours, plain, bytes);
        }
}

static void test_suppression_for_every_radius(void **state) {
    (void)state;
    for (int radius = 0; radius <= SP_MAX_NMS_RADIUS; radius++)
        check_nms(radius);
}

/* One large map at the largest radius and some others, by the plain definition of one pass. */
static void test_suppression_on_a_larger_map(void **state) {
    (void)state;
    static float map[MAX_PIXELS], ours[MAX_PIXELS], plain[MAX_PIXELS];
    static const int radii[] = {15, 16, 31, 64};
    for (size_t i = 0; i < sizeof radii / sizeof radii[0]; i++) {
        fill_scores(map, MAX_PIXELS, 1000);
        assert_int_equal(sp_nms_single(map, 104, 64, radii[i], ours, NULL), SP_OK);
        sp_reference_nms_single(map, 104, 64, radii[i], plain);
        assert_memory_equal(ours, plain, sizeof map);
    }
}

static void test_plateau_survives_one_pass(void **state) {
    (void)state;
    float map[64], out[64];
    for (int i = 0; i < 64; i++)
        map[i] = 0.25f;
    assert_int_equal(sp_nms_single(map, 8, 8, 4, out, NULL), SP_OK);
    assert_memory_equal(map, out, sizeof map);
}

static void check_selection(const float *map, int w, int h, const uint8_t *mask, float threshold, int border,
                            int limit) {
    static int xy[2 * MAX_PIXELS];
    static float scores[MAX_PIXELS];
    const int cw = w - (int)(next_random() % 8), ch = h - (int)(next_random() % 8);
    const int expected = sp_reference_select(map, w, h, cw, ch, mask, threshold, border, limit, xy, scores);
    assert_true(expected >= 0);
    const uint32_t b = (uint32_t)border, uw = (uint32_t)w, uh = (uint32_t)h;
    sp_area area = {b, b, uw > b ? uw - b : 0, uh > b ? uh - b : 0, mask};
    if (area.x1 > (uint32_t)cw)
        area.x1 = (uint32_t)cw;
    if (area.y1 > (uint32_t)ch)
        area.y1 = (uint32_t)ch;
    sp_key *keys = NULL;
    size_t count = 0;
    assert_int_equal(sp_select(map, uw, &area, threshold, limit, &keys, &count, NULL), SP_OK);
    assert_int_equal(count, expected);
    for (int i = 0; i < expected; i++) {
        assert_int_equal(sp_key_pixel(keys[i]), xy[2 * i + 1] * w + xy[2 * i]);
        assert_true(sp_key_score(keys[i]) == scores[i]);
    }
    free(keys);
}

static void test_selection(void **state) {
    (void)state;
    static float map[MAX_PIXELS];
    static uint8_t mask[MAX_PIXELS];
    static const int limits[] = {-1, 0, 1, 2, 7, 100, 1024, 100000};
    static const float thresholds[] = {0, 0.3f, 0.999f, 1, 2};
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++)
        for (size_t l = 0; l < sizeof level_counts / sizeof level_counts[0]; l++) {
            const int w = sizes[s].width, h = sizes[s].height;
            fill_scores(map, w * h, level_counts[l]);
            for (int i = 0; i < w * h; i++)
                mask[i] = next_random() % 3 != 0;
            for (size_t n = 0; n < sizeof limits / sizeof limits[0]; n++)
                for (size_t t = 0; t < sizeof thresholds / sizeof thresholds[0]; t++)
                    for (int border = 0; border <= 64; border += border < 6 ? 1 : 29)
                        check_selection(map, w, h, n % 2 ? mask : NULL, thresholds[t], border, limits[n]);
        }
}

static void test_sorted_inputs_are_selected(void **state) {
    (void)state;
    static float map[MAX_PIXELS];
    for (int falling = 0; falling < 2; falling++) {
        for (int i = 0; i < MAX_PIXELS; i++)
            map[i] = (float)(falling ? MAX_PIXELS - i : i + 1) / MAX_PIXELS;
        for (int limit = 1; limit < 3000; limit += 97)
            check_selection(map, 104, 64, NULL, 0, 0, limit);
    }
}

static void test_sampling(void **state) {
    (void)state;
    static const int grids[][2] = {{1, 1}, {2, 1}, {1, 3}, {5, 4}, {13, 8}};
    static float map[13 * 8 * SP_DESCRIPTOR_DIM];
    float ours[SP_DESCRIPTOR_DIM], plain[SP_DESCRIPTOR_DIM];
    for (size_t i = 0; i < sizeof map / sizeof map[0]; i++)
        map[i] = (float)(int)(next_random() % 2001) / 1000 - 1;
    for (size_t g = 0; g < sizeof grids / sizeof grids[0]; g++)
        for (int y = 0; y < 8 * grids[g][1]; y++)
            for (int x = 0; x < 8 * grids[g][0]; x++) {
                sp_sample_descriptor(map, (uint32_t)grids[g][0], (uint32_t)grids[g][1], (uint32_t)x, (uint32_t)y, ours);
                sp_reference_sample(map, grids[g][0], grids[g][1], x, y, plain);
                for (int i = 0; i < SP_DESCRIPTOR_DIM; i++)
                    assert_true(fabsf(ours[i] - plain[i]) < 2e-5f);
            }
}

static void test_zero_map_samples_to_zero(void **state) {
    (void)state;
    static float map[4 * SP_DESCRIPTOR_DIM];
    float out[SP_DESCRIPTOR_DIM];
    sp_sample_descriptor(map, 2, 2, 5, 5, out);
    for (int i = 0; i < SP_DESCRIPTOR_DIM; i++)
        assert_true(out[i] == 0);
}

/* binary16 to binary32, by the definition of the format. */
static double half_value(uint16_t h) {
    const int exponent = h >> 10 & 31, fraction = h & 1023;
    const double magnitude = exponent ? ldexp(1024 + fraction, exponent - 25) : ldexp(fraction, -24);
    return h & 0x8000 ? -magnitude : magnitude;
}

static void test_half_precision(void **state) {
    (void)state;
    for (uint32_t h = 0; h < 0x7c00; h++) { /* every finite one, and the points between two */
        const double low = half_value((uint16_t)h), high = h < 0x7bff ? half_value((uint16_t)(h + 1)) : 65536;
        assert_int_equal(sp_float_to_half((float)low), h);
        assert_int_equal(sp_float_to_half(-(float)low), h | 0x8000);
        const float middle = (float)((low + high) / 2);
        assert_int_equal(sp_float_to_half(middle), h + (h & 1));
        assert_int_equal(sp_float_to_half(nextafterf(middle, 0)), h);
        assert_int_equal(sp_float_to_half(nextafterf(middle, INFINITY)), h + 1);
    }
    assert_int_equal(sp_float_to_half(INFINITY), 0x7c00);
    assert_int_equal(sp_float_to_half(-1e30f), 0xfc00);
    assert_true(sp_float_to_half(NAN) > 0x7c00);
}

static void test_bytes(void **state) {
    (void)state;
    const float in[] = {0, 1.0f / 256, -1.0f / 256, 0.5f, -0.5f, 1, -1, 0.0019f, 0.002f};
    const uint8_t expected[] = {128, 129, 127, 255, 0, 255, 0, 128, 129};
    uint8_t out[9];
    sp_convert(in, 9, SP_DTYPE_UINT8, out);
    assert_memory_equal(out, expected, sizeof expected);
}

static void test_parameters_are_checked(void **state) {
    (void)state;
    sp_params p;
    sp_error err;
    assert_int_equal(sp_params_check(NULL, &err), SP_OK);
#define REFUSED(field, bad)                                                                                            \
    sp_params_default(&p);                                                                                             \
    p.field = bad;                                                                                                     \
    assert_int_equal(sp_params_check(&p, &err), SP_ERR_ARGUMENT);                                                      \
    assert_true(strlen(err.text) > 8)
    REFUSED(nms_radius, 65);
    REFUSED(nms_radius, -1);
    REFUSED(border, 65);
    REFUSED(max_keypoints, -2);
    REFUSED(keypoint_threshold, NAN);
    REFUSED(keypoint_threshold, INFINITY);
    REFUSED(width, 641);
    REFUSED(height, 0);
    REFUSED(width, SP_MAX_FRAME_SIDE + 8);
    REFUSED(roi.width, 5);
    REFUSED(nms, (sp_nms)7);
    REFUSED(struct_size, sizeof p + 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_suppression_for_every_radius),
        cmocka_unit_test(test_suppression_on_a_larger_map),
        cmocka_unit_test(test_plateau_survives_one_pass),
        cmocka_unit_test(test_selection),
        cmocka_unit_test(test_sorted_inputs_are_selected),
        cmocka_unit_test(test_sampling),
        cmocka_unit_test(test_zero_map_samples_to_zero),
        cmocka_unit_test(test_half_precision),
        cmocka_unit_test(test_bytes),
        cmocka_unit_test(test_parameters_are_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
