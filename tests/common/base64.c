/* Base64 against the vectors of RFC 4648 and the forms that clients send. */
#include "common/base64.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static bool decode(const char *text, const char *expected, size_t *position) {
    uint8_t *copy = (uint8_t *)strdup(text); /* exact size, so that a sanitizer sees a read beyond it */
    size_t size = 0;
    bool ok = base64_decode(copy, strlen(text), &size, position);
    if (ok) {
        assert_int_equal(size, strlen(expected));
        assert_memory_equal(copy, expected, size);
    }
    free(copy);
    return ok;
}

static void decodes(void **state) {
    (void)state;
    static const char *const cases[][2] = {
        {"", ""},
        {"Zg==", "f"},
        {"Zm8=", "fo"},
        {"Zm9v", "foo"},
        {"Zm9vYg==", "foob"},
        {"Zm9vYmE=", "fooba"},
        {"Zm9vYmFy", "foobar"},
        {"Zg", "f"},
        {"Zm8", "fo"},
        {"Zm9vYg", "foob"},
        {" Z m\r\n9\tv ", "foo"},
        {"Zm9v\nYmFy\n", "foobar"},
        {"Pz8-Pz8_", "?"
                     "?>"
                     "??"
                     "?"},
        {"Pz8+Pz8/", "?"
                     "?>"
                     "??"
                     "?"},
        {"Zg=", "f"},
        {"Zg= = \n", "f"},
    };
    size_t position = 0;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_true(decode(cases[i][0], cases[i][1], &position));
}

static void refuses(void **state) {
    (void)state;
    static const struct {
        const char *text;
        size_t position;
    } cases[] = {{"Z", 1}, {"Zm9vZ", 5}, {"Zm9v%2B", 4}, {"Zm9\xc3\xa9", 3}, {"Zg==Zg==", 4}, {"=Zg", 1}, {"Zm9v!", 4}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        size_t position = 99;
        assert_false(decode(cases[i].text, "", &position));
        assert_int_equal(position, cases[i].position);
    }
}

static void round_trips(void **state) {
    (void)state;
    uint8_t bytes[300];
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)(i * 167 + (i >> 3));
    for (size_t size = 0; size <= sizeof bytes; size++) {
        buffer text = {0};
        size_t decoded, position;
        base64_encode(&text, bytes, size);
        assert_false(text.failed);
        assert_int_equal(text.size, (size + 2) / 3 * 4);
        assert_true(base64_decode(text.data, text.size, &decoded, &position));
        assert_int_equal(decoded, size);
        assert_memory_equal(text.data, bytes, size);
        buffer_free(&text);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(decodes),
        cmocka_unit_test(refuses),
        cmocka_unit_test(round_trips),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
