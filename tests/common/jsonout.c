/* Numbers and strings as JSON: every float reads back, in no more digits than are needed. */
#include "common/jsonout.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const char *text_of(float value) {
    static char text[64];
    buffer b = {0};
    json_put_float(&b, value);
    assert_true(b.size < sizeof text);
    memcpy(text, b.data, b.size);
    text[b.size] = '\0';
    buffer_free(&b);
    return text;
}

static unsigned digits_in(const char *text) {
    unsigned digits = 0, zeros = 0;
    for (; *text && *text != 'e'; text++)
        if (*text >= '0' && *text <= '9') {
            zeros = *text == '0' ? zeros + 1 : 0;
            digits += digits || *text != '0';
        }
    return digits - (digits ? zeros : 0);
}

static void check(float value) {
    const char *text = text_of(value);
    float back = strtof(text, NULL);
    assert_memory_equal(&back, &value, sizeof value);
    assert_true(strpbrk(text, ".e") != NULL);
    char reference[64];
    int precision = 1;
    do
        snprintf(reference, sizeof reference, "%.*e", precision++ - 1, (double)value);
    while (strtof(reference, NULL) != value);
    assert_true(digits_in(text) <= (unsigned)precision);
}

static void floats_read_back(void **state) {
    (void)state;
    assert_string_equal(text_of(610.0f), "610.0");
    assert_string_equal(text_of(703.125f), "703.125");
    assert_string_equal(text_of(0.609375f), "0.609375");
    assert_string_equal(text_of(0.0f), "0.0");
    assert_string_equal(text_of(-0.0f), "-0.0");
    assert_string_equal(text_of(0.1f), "0.1");
    assert_string_equal(text_of(1e-9f), "1e-9");
    assert_string_equal(text_of(16777216.0f), "16777216.0");
    assert_string_equal(text_of(NAN), "null");
    assert_string_equal(text_of(-INFINITY), "null");
    uint32_t bits = 1;
    for (int i = 0; i < 300000; i++) {
        float value;
        bits = bits * 1664525u + 1013904223u;
        uint32_t pattern = i & 1 ? bits : (bits & 0x007fffff) | (96u + (bits >> 28)) << 23; /* also 0...1 densely */
        memcpy(&value, &pattern, sizeof value);
        if (isfinite(value))
            check(value);
    }
    for (uint32_t exponent = 0; exponent < 255; exponent++)
        for (uint32_t mantissa = 0; mantissa < 3; mantissa++) {
            uint32_t pattern = exponent << 23 | (mantissa == 2 ? 0x7fffff : mantissa);
            float value;
            memcpy(&value, &pattern, sizeof value);
            check(value);
        }
}

static void strings_are_escaped(void **state) {
    (void)state;
    buffer b = {0};
    json_put_string(&b, "a\"b\\c\n\x01\x7f \xc3\xa9 \xff \xe2\x82");
    buffer_char(&b, 0);
    assert_string_equal((char *)b.data, "\"a\\\"b\\\\c\\n\\u0001\\u007f \xc3\xa9 \\ufffd \\ufffd\\ufffd\"");
    buffer_free(&b);
}

static void points_are_arrays(void **state) {
    (void)state;
    float xy[] = {610.0f, 703.125f, 1.5f, 2.0f}, scores[] = {0.609375f, 0.25f};
    sp_features f = {.count = 2, .keypoints = xy, .scores = scores};
    buffer b = {0};
    json_put_points(&b, &f);
    f.count = 0;
    buffer_char(&b, '|');
    json_put_points(&b, &f);
    buffer_char(&b, 0);
    assert_string_equal((char *)b.data,
                        "\"num_keypoints\": 2, \"keypoints\": [[610.0, 703.125], [1.5, 2.0]], \"scores\": [0.609375, "
                        "0.25]|\"num_keypoints\": 0, \"keypoints\": [], \"scores\": []");
    buffer_free(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(floats_read_back),
        cmocka_unit_test(strings_are_escaped),
        cmocka_unit_test(points_are_arrays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
