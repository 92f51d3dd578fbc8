/* The JSON reader: what RFC 8259 allows and nothing else, walking, and strings. */
#include "common/json.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static char *copy_of(const char *text, size_t size) {
    char *copy = malloc(size ? size : 1); /* exact size: reads beyond it are seen */
    assert_non_null(copy);
    memcpy(copy, text, size);
    return copy;
}

static const json_limits limits = {.max_depth = 8, .max_values = 64};

static bool valid(const char *text, size_t size) {
    char *copy = copy_of(text, size);
    json_document document;
    sp_error err = {0};
    bool ok = json_parse(&document, copy, size, &limits, &err) == SP_OK;
    assert_true(ok == (err.status == SP_OK));
    assert_true(ok == (document.count > 0));
    json_free(&document);
    free(copy);
    return ok;
}

static void takes(void **state) {
    (void)state;
    static const char *const cases[] = {
        "{}",
        " [ ] ",
        "0",
        "-0",
        "-1.5e+3",
        "1E5",
        "0.1",
        "true",
        "false",
        "null",
        "\"\"",
        "\"a\\u00e9\\/\\n\"",
        "\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\"",
        "\"\\ud83d\\ude00\"",
        "[1,[2,[3,[4,[5,[6,[7,[]]]]]]]]",
        "{\"a\":{\"b\":[1,2,{}]},\"a\":null}",
        "\t\r\n{\"x\" : \"y\" }\n",
        "\"\x7f\"",
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_true(valid(cases[i], strlen(cases[i])));
}

static void refuses(void **state) {
    (void)state;
    static const char *const cases[] = {
        "",
        " ",
        "{",
        "}",
        "[1,]",
        "{\"a\":1,}",
        "{a:1}",
        "{'a':1}",
        "[1 2]",
        "{\"a\" 1}",
        "01",
        "-",
        "+1",
        ".5",
        "1.",
        "1e",
        "0x10",
        "NaN",
        "Infinity",
        "-Infinity",
        "tru",
        "nul",
        "\"",
        "\"\\x\"",
        "\"\\u12\"",
        "\"\\u12g4\"",
        "\"\n\"",
        "\"\xc0\x80\"",
        "\"\xed\xa0\x80\"",
        "\"\xff\"",
        "\"\xf4\x90\x80\x80\"",
        "\"\xe2\x82\"",
        "1 // c",
        "/* c */1",
        "1 1",
        "[[[[[[[[[]]]]]]]]]",
        "\xef\xbb\xbf{}",
        "{\"a\":1}x",
        "[\"a\",",
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_false(valid(cases[i], strlen(cases[i])));
    assert_false(valid("[1\0]", 4));
    assert_false(valid("\"a\0b\"", 5));
}

static void refuses_every_cut(void **state) {
    (void)state;
    static const char text[] = "{\"a\": [1.5e3, \"x\\u00e9\\\"\", true, null], \"b\": {\"c\": \"\xf0\x9f\x98\x80\"}}";
    for (size_t size = 0; size < sizeof text - 1; size++)
        assert_false(valid(text, size));
    assert_true(valid(text, sizeof text - 1));
}

static void says_where(void **state) {
    (void)state;
    char text[] = "{\n  \"a\": nope}";
    json_document document;
    sp_error err;
    assert_int_equal(json_parse(&document, text, strlen(text), &limits, &err), SP_ERR_ARGUMENT);
    assert_non_null(strstr(err.text, "line 2"));
}

static void halves_of_surrogates(void **state) {
    (void)state;
    static const char *const cases[] = {"\"\\ud800\"", "\"\\ud800x\"",  "\"\\ud800\\u0041\"",
                                        "\"\\udc00\"", "\"\\ud800\\\"", "\"\\ud800\\ud800\""};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_false(valid(cases[i], strlen(cases[i])));
    static const char pairs[] = "[\"\\n\", \"x\", 1, \"\\ud83d\\ude00\\\\ud800\"]";
    assert_true(valid(pairs, strlen(pairs)));
}

static void keeps_to_its_limits(void **state) {
    (void)state;
    char text[200] = "[0";
    json_document document;
    sp_error err;
    for (unsigned values = 2; values < 70; values++) {
        const sp_status expected = values <= limits.max_values ? SP_OK : SP_ERR_LIMIT;
        char copy[200];
        snprintf(copy, sizeof copy, "%s]", text);
        assert_int_equal(json_parse(&document, copy, strlen(copy), &limits, &err), expected);
        json_free(&document);
        strcat(text, ",0");
    }
}

static void assert_text(const json_value *value, const char *expected, size_t size) {
    assert_int_equal(value->size, size);
    assert_memory_equal(value->text, expected, size);
}

static void walks(void **state) {
    (void)state;
    char text[] = "{\"n\" : -1.5 ,\"s\":\"a\\\"}],\\u20ac\\ud83d\\ude00\\u0000\\/\", \"l\":[ 1,\"]\" , {\"x\":[]}, "
                  "true], \"e\":{}, \"f\":false}";
    json_document document;
    json_value key, value, item;
    assert_int_equal(json_parse(&document, text, strlen(text), &limits, NULL), SP_OK);
    json_walk walk = json_begin(document.values);
    assert_true(json_next_member(&walk, &key, &value));
    assert_true(json_is(&key, "n"));
    assert_int_equal(value.type, JSON_NUMBER);
    assert_text(&value, "-1.5", 4);
    assert_true(json_next_member(&walk, &key, &value));
    assert_int_equal(value.type, JSON_STRING);
    assert_text(&value, "a\"}],\xe2\x82\xac\xf0\x9f\x98\x80\0/", 14);
    assert_true(value.text > text && value.text + value.size < text + sizeof text);
    assert_true(json_next_member(&walk, &key, &value));
    assert_int_equal(value.type, JSON_ARRAY);
    json_walk items = json_begin(&value);
    static const json_type types[] = {JSON_NUMBER, JSON_STRING, JSON_OBJECT, JSON_BOOLEAN};
    for (int i = 0; i < 4; i++) {
        assert_true(json_next_item(&items, &item));
        assert_int_equal(item.type, types[i]);
    }
    assert_text(&item, "true", 4);
    assert_false(json_next_item(&items, &item));
    assert_true(json_next_member(&walk, &key, &value));
    assert_true(json_is(&key, "e"));
    items = json_begin(&value);
    assert_false(json_next_item(&items, &item));
    assert_true(json_next_member(&walk, &key, &value));
    assert_text(&value, "false", 5);
    assert_false(json_next_member(&walk, &key, &value));
    json_free(&document);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(takes),
        cmocka_unit_test(refuses),
        cmocka_unit_test(refuses_every_cut),
        cmocka_unit_test(says_where),
        cmocka_unit_test(halves_of_surrogates),
        cmocka_unit_test(keeps_to_its_limits),
        cmocka_unit_test(walks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
