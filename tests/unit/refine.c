/* Points between the pixels: peaks whose place is known, what stays where it is, and the way through the features. */
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

enum { WIDTH = 64, HEIGHT = 48, PIXELS = WIDTH * HEIGHT };

/* A round Gaussian of `sigma` pixels at (x, y), on top of what is there. */
static void add_peak(float *map, double x, double y, double sigma, double height) {
    for (int v = 0; v < HEIGHT; v++)
        for (int u = 0; u < WIDTH; u++)
            map[v * WIDTH + u] += (float)(height * exp(-((u - x) * (u - x) + (v - y) * (v - y)) / (2 * sigma * sigma)));
}

static void test_places_of_gaussians(void **state) {
    (void)state;
    for (double sigma = 0.6; sigma < 3; sigma += 0.3)
        for (double dx = -0.5; dx <= 0.5; dx += 0.125)
            for (double dy = -0.5; dy <= 0.5; dy += 0.125) {
                float map[PIXELS] = {0};
                double place[2];
                add_peak(map, 20 + dx, 31 + dy, sigma, 0.7);
                sp_refine_peak(map, WIDTH, HEIGHT, 20, 31, place);
                assert_true(fabs(place[0] - 20 - dx) < 1e-5 && fabs(place[1] - 31 - dy) < 1e-5);
            }
}

/* Three scores along each axis around the middle of a map of 3 x 3; the other four do not count. */
static void refine_three(const float row[3], const float column[3], double place[2]) {
    const float map[9] = {9, column[0], 9, row[0], row[1], row[2], 9, column[2], 9};
    sp_refine_peak(map, 3, 3, 1, 1, place);
}

static void check_three(float before, float at, float after, double expected) {
    const float three[3] = {before, at, after}, even[3] = {at, at, at};
    double place[2];
    refine_three(three, even, place);
    assert_true(fabs(place[0] - 1 - expected) < 1e-9 && place[1] == 1);
    refine_three(even, three, place);
    assert_true(fabs(place[1] - 1 - expected) < 1e-9 && place[0] == 1);
}

static void test_what_stays_and_what_is_clamped(void **state) {
    (void)state;
    check_three(0.25f, 0.5f, 0.25f, 0);
    check_three(0.25f, 0.5f, 0.5f, 0.5); /* two equal: half way, from either */
    check_three(0.5f, 0.5f, 0.25f, -0.5);
    check_three(0.125f, 0.5f, 0.25f, 1.0 / 6); /* a = 2 log 2, b = log 2 */
    check_three(0.5f, 0.5f, 0.5f, 0);          /* flat */
    check_three(0.25f, 0.5f, 1, 0);            /* straight */
    check_three(0.5f, 0.25f, 0.5f, 0);         /* a valley */
    check_three(0.25f, 0.3f, 0.5f, 0);         /* a slope that bends upwards */
    check_three(0.25f, 0.75f, 1, 0.5);         /* no peak, as points without suppression are: the top is farther away */
    check_three(0, 0.5f, 0.25f, 0);            /* no logarithm */
    check_three(0.25f, 0.5f, 0, 0);
    check_three(0.25f, 0, 0.25f, 0);
    check_three(0, 0, 0, 0);
    check_three(NAN, 0.5f, 0.25f, 0);
    check_three(1e-45f, 1, 1e-45f, 0); /* the least float and its like */
    check_three(0.5f, nextafterf(0.5f, 1), 0.5f, 0);
}

static void test_edges_stay(void **state) {
    (void)state;
    float map[PIXELS];
    for (int i = 0; i < PIXELS; i++)
        map[i] = 0.1f + 0.001f * (float)(i % 7);
    for (int y = 0; y < HEIGHT; y++)
        for (int x = 0; x < WIDTH; x++) {
            double place[2];
            sp_refine_peak(map, WIDTH, HEIGHT, (uint32_t)x, (uint32_t)y, place);
            assert_true(fabs(place[0] - x) <= 0.5 && fabs(place[1] - y) <= 0.5);
            if (x == 0 || x == WIDTH - 1)
                assert_true(place[0] == x);
            if (y == 0 || y == HEIGHT - 1)
                assert_true(place[1] == y);
        }
    const float one = 1;
    double place[2];
    sp_refine_peak(&one, 1, 1, 0, 0, place);
    assert_true(place[0] == 0 && place[1] == 0);
}

static void test_as_the_reference(void **state) {
    (void)state;
    static float map[PIXELS];
    uint32_t seed = 1;
    const uint32_t levels[] = {2, 5, 1000, 1u << 20};
    for (size_t l = 0; l < sizeof levels / sizeof levels[0]; l++) {
        for (int i = 0; i < PIXELS; i++)
            map[i] = (float)((seed = seed * 1664525u + 1013904223u) >> 8 & (levels[l] - 1)) / (float)levels[l];
        for (int y = 0; y < HEIGHT; y++)
            for (int x = 0; x < WIDTH; x++) {
                double ours[2], plain[2];
                sp_refine_peak(map, WIDTH, HEIGHT, (uint32_t)x, (uint32_t)y, ours);
                sp_reference_refine(map, WIDTH, HEIGHT, x, y, plain);
                assert_true(fabs(ours[0] - plain[0]) < 1e-6 && fabs(ours[1] - plain[1]) < 1e-6);
            }
    }
}

/* ---- through sp_features_extract: a picture of 128 x 96 in a frame of 64 x 48, with three peaks */

static const double peaks[3][2] = {{20.3, 30.9}, {40.75, 10.25}, {30, 20}};

typedef struct scene {
    sp_frame frame;
    sp_maps maps;
    sp_params params;
} scene;

static int make_scene(void **state) {
    static scene s;
    static uint8_t grey[2 * WIDTH * 2 * HEIGHT];
    const sp_image image = {2 * WIDTH, 2 * HEIGHT, 1, 2 * WIDTH, grey};
    sp_params_default(&s.params);
    s.params.width = WIDTH;
    s.params.height = HEIGHT;
    s.params.descriptor_dtype = SP_DTYPE_FLOAT32;
    if (sp_frame_from_image(&image, &s.params, &s.frame, NULL) != SP_OK ||
        sp_maps_alloc(WIDTH, HEIGHT, &s.maps, NULL) != SP_OK)
        return -1;
    memset(s.maps.scores, 0, PIXELS * sizeof *s.maps.scores);
    for (int i = 0; i < 3; i++)
        add_peak(s.maps.scores, peaks[i][0], peaks[i][1], 0.8, 0.9 - 0.1 * i);
    for (size_t i = 0; i < PIXELS / 64 * SP_DESCRIPTOR_DIM; i++)
        s.maps.descriptors[i] = (float)(i * 7919 % 2003) / 1000 - 1;
    *state = &s;
    return 0;
}

static int free_scene(void **state) {
    scene *s = *state;
    sp_maps_free(&s->maps);
    sp_frame_free(&s->frame);
    return 0;
}

static void extract(const scene *s, sp_features *found) {
    assert_int_equal(sp_features_extract(&s->maps, &s->frame, &s->params, found, NULL), SP_OK);
    assert_int_equal(found->count, 3);
}

static void test_coordinates(void **state) {
    scene *s = *state;
    for (int c = SP_COORDINATES_CORNER; c <= SP_COORDINATES_COLMAP; c++)
        for (int subpixel = 0; subpixel < 2; subpixel++) {
            s->params.coordinates = (sp_coordinates)c;
            s->params.subpixel = subpixel;
            sp_features found;
            extract(s, &found);
            for (int i = 0; i < 6; i++) {
                const double true_place = peaks[i / 2][i % 2], pixel = round(true_place);
                const double p = subpixel ? true_place : pixel;
                const double expected = c == SP_COORDINATES_CORNER   ? 2 * p
                                        : c == SP_COORDINATES_CENTRE ? 2 * (p + 0.5) - 0.5
                                                                     : 2 * (p + 0.5);
                assert_int_equal(found.pixels[i], (int)pixel);
                assert_true(fabs(found.keypoints[i] - expected) < (subpixel ? 1e-3 : 1e-9));
            }
            sp_features_free(&found);
        }
    s->params.coordinates = SP_COORDINATES_CORNER;
}

static void test_descriptors_are_of_the_refined_place(void **state) {
    scene *s = *state;
    s->params.subpixel = true;
    sp_features found;
    extract(s, &found);
    for (int i = 0; i < 3; i++) {
        double place[2];
        float plain[SP_DESCRIPTOR_DIM];
        sp_reference_refine(s->maps.scores, WIDTH, HEIGHT, found.pixels[2 * i], found.pixels[2 * i + 1], place);
        sp_reference_sample(s->maps.descriptors, WIDTH / 8, HEIGHT / 8, place[0], place[1], plain);
        for (int k = 0; k < SP_DESCRIPTOR_DIM; k++)
            assert_true(fabsf(((float *)found.descriptors)[i * SP_DESCRIPTOR_DIM + k] - plain[k]) < 2e-5f);
    }
    sp_features_free(&found);
}

/* Where the scores come from does not matter: a mask, the other rule, and an engine's own suppression refine alike. */
static void test_every_way_refines_alike(void **state) {
    scene *s = *state;
    s->params.subpixel = true;
    sp_features plain, other;
    extract(s, &plain);
    const size_t bytes = plain.count * 2 * sizeof *plain.keypoints;
    s->params.nms = SP_NMS_HF;
    extract(s, &other);
    assert_memory_equal(plain.keypoints, other.keypoints, bytes);
    sp_features_free(&other);
    s->params.nms = SP_NMS_SINGLE;
    s->params.roi = (sp_rect){0, 0, 2 * WIDTH, 2 * HEIGHT};
    extract(s, &other);
    assert_memory_equal(plain.keypoints, other.keypoints, bytes);
    sp_features_free(&other);
    s->params.roi = (sp_rect){0};
    static float suppressed[PIXELS];
    assert_int_equal(sp_nms_single(s->maps.scores, WIDTH, HEIGHT, 4, suppressed, NULL), SP_OK);
    s->maps.suppressed = suppressed;
    s->maps.nms_radius = 4;
    extract(s, &other);
    s->maps.suppressed = NULL;
    assert_true(other.device_nms);
    assert_memory_equal(plain.keypoints, other.keypoints, bytes);
    sp_features_free(&other);
    sp_features_free(&plain);
}

/* Parameters of a program that was built before there was the field. */
static void test_a_shorter_struct_refines_nothing(void **state) {
    scene *s = *state;
    const sp_params before = s->params;
    s->params.subpixel = true;
    s->params.struct_size = offsetof(sp_params, subpixel);
    sp_features found;
    extract(s, &found);
    assert_true(found.keypoints[0] == 2 * round(peaks[0][0]));
    sp_features_free(&found);
    s->params = before;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_places_of_gaussians),
        cmocka_unit_test(test_what_stays_and_what_is_clamped),
        cmocka_unit_test(test_edges_stay),
        cmocka_unit_test(test_as_the_reference),
        cmocka_unit_test_setup_teardown(test_coordinates, make_scene, free_scene),
        cmocka_unit_test_setup_teardown(test_descriptors_are_of_the_refined_place, make_scene, free_scene),
        cmocka_unit_test_setup_teardown(test_every_way_refines_alike, make_scene, free_scene),
        cmocka_unit_test_setup_teardown(test_a_shorter_struct_refines_nothing, make_scene, free_scene),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
