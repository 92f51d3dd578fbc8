/* Parameters by name: what is taken, what is refused, and that the text of a value reads back. */
#include "common/params.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static sp_status set(sp_params *p, const char *name, const char *value) {
    sp_error err = {0};
    sp_params before = *p;
    sp_status status = params_set(p, name, value, &err);
    if (status != SP_OK) {
        assert_memory_equal(&before, p, sizeof before);
        assert_int_equal(err.status, status);
        assert_non_null(strstr(err.text, ":"));
    }
    return status;
}

static void takes_values(void **state) {
    (void)state;
    sp_params p;
    sp_params_default(&p);
    assert_int_equal(set(&p, "max_keypoints", "5"), SP_OK);
    assert_int_equal(p.max_keypoints, 5);
    assert_int_equal(set(&p, "max-keypoints", "1e3"), SP_OK);
    assert_int_equal(p.max_keypoints, 1000);
    assert_int_equal(set(&p, "max_keypoints", "7.0"), SP_OK);
    assert_int_equal(p.max_keypoints, 7);
    assert_int_equal(set(&p, "max_keypoints", "-1"), SP_OK);
    assert_int_equal(set(&p, "keypoint_threshold", "0.1"), SP_OK);
    assert_true(p.keypoint_threshold == 0.1f);
    assert_int_equal(set(&p, "return_descriptors", "Off"), SP_OK);
    assert_false(p.descriptors);
    assert_int_equal(set(&p, "return_descriptors", "yes"), SP_OK);
    assert_true(p.descriptors);
    assert_false(p.subpixel);
    assert_int_equal(set(&p, "subpixel", "1"), SP_OK);
    assert_true(p.subpixel);
    assert_int_equal(set(&p, "channel", "luma"), SP_OK);
    assert_int_equal(p.channel, SP_CHANNEL_LUMA);
    assert_int_equal(set(&p, "coordinates", "colmap"), SP_OK);
    assert_int_equal(p.coordinates, SP_COORDINATES_COLMAP);
    assert_int_equal(set(&p, "resize", "320x240"), SP_OK);
    assert_int_equal(p.width, 320);
    assert_int_equal(p.height, 240);
    assert_int_equal(set(&p, "resize", "max:1024"), SP_OK);
    assert_int_equal(p.resize, SP_RESIZE_MAX);
    assert_int_equal(p.width, 1024);
    assert_int_equal(set(&p, "resize", "native"), SP_OK);
    assert_int_equal(p.resize, SP_RESIZE_NATIVE);
    assert_int_equal(set(&p, "roi", "-1,2,30,40"), SP_OK);
    assert_int_equal(p.roi.x, -1);
    assert_int_equal(p.roi.height, 40);
}

static void refuses_values(void **state) {
    (void)state;
    static const char *const cases[][2] = {
        {"max_keypoints", ""},
        {"max_keypoints", "-2"},
        {"max_keypoints", "5.5"},
        {"max_keypoints", "0x10"},
        {"max_keypoints", "true"},
        {"max_keypoints", "2147483648"},
        {"max_keypoints", "1e400"},
        {"max_keypoints", " 5"},
        {"max_keypoints", "5 "},
        {"max_keypoints", "nan"},
        {"keypoint_threshold", "inf"},
        {"keypoint_threshold", "1e39"},
        {"keypoint_threshold", "."},
        {"keypoint_threshold", "1e"},
        {"nms_radius", "99"},
        {"nms_radius", "-1"},
        {"border", "65"},
        {"return_descriptors", "2"},
        {"return_descriptors", "maybe"},
        {"subpixel", "2"},
        {"subpixel", ""},
        {"channel", "green"},
        {"channel", "RED"},
        {"resize", "640"},
        {"resize", "641x480"},
        {"resize", "0x0"},
        {"resize", "max:"},
        {"resize", "max:0"},
        {"resize", "99999999999x8"},
        {"resize", "640x480x"},
        {"roi", "1,2,3"},
        {"roi", "1,2,3,4,5"},
        {"roi", "1,2,-3,4"},
        {"roi", "a,b,c,d"},
        {"descriptor_dtype", "float64"},
    };
    sp_params p;
    sp_params_default(&p);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_int_equal(set(&p, cases[i][0], cases[i][1]), SP_ERR_ARGUMENT);
    assert_int_equal(set(&p, "no_such", "1"), SP_ERR_NOT_FOUND);
}

static void texts_read_back(void **state) {
    (void)state;
    size_t count;
    const param_spec *specs = params_specs(&count);
    sp_params p, q;
    sp_params_default(&p);
    assert_int_equal(set(&p, "keypoint_threshold", "0.0123456789"), SP_OK);
    assert_int_equal(set(&p, "nms", "hf"), SP_OK);
    assert_int_equal(set(&p, "subpixel", "yes"), SP_OK);
    sp_params_default(&q);
    for (size_t i = 0; i < count; i++) {
        char text[64];
        params_text(&p, &specs[i], text, sizeof text);
        assert_int_equal(set(&q, specs[i].name, text), SP_OK);
    }
    assert_true(p.keypoint_threshold == q.keypoint_threshold);
    assert_int_equal(p.nms, q.nms);
    assert_true(q.subpixel);
    sp_params_default(&p);
    char text[64];
    params_text(&p, params_find("keypoint_threshold"), text, sizeof text);
    assert_string_equal(text, "0.005");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(takes_values),
        cmocka_unit_test(refuses_values),
        cmocka_unit_test(texts_read_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
