#include "json.h"

#include "fs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *tm_json_str(const json_t *object, const char *key) {
    return json_string_value(json_object_get(object, key));
}

const char *tm_json_str_or(const json_t *object, const char *key, const char *otherwise) {
    const char *s = tm_json_str(object, key);
    return s ? s : otherwise;
}

json_int_t tm_json_int(const json_t *object, const char *key, json_int_t otherwise) {
    const json_t *v = json_object_get(object, key);
    return json_is_integer(v) ? json_integer_value(v) : otherwise;
}

bool tm_json_bool(const json_t *object, const char *key, bool otherwise) {
    const json_t *v = json_object_get(object, key);
    return json_is_boolean(v) ? json_is_true(v) : otherwise;
}

json_t *tm_json_object(const json_t *object, const char *key) {
    json_t *v = json_object_get(object, key);
    return json_is_object(v) ? v : NULL;
}

json_t *tm_json_array(const json_t *object, const char *key) {
    json_t *v = json_object_get(object, key);
    return json_is_array(v) ? v : NULL;
}

int tm_json_parse(const char *text, size_t len, const char *name, json_t **out, tm_error *e) {
    json_error_t err;
    *out = json_loadb(text, len, 0, &err);
    if (*out)
        return TM_OK;
    return tm_fail(e, TM_ERROR, "%s is not valid JSON: line %d, column %d: %s", name, err.line, err.column, err.text);
}

int tm_json_load(const char *path, size_t limit, json_t **out, tm_error *e) {
    tm_buf text = {0};
    *out = NULL;
    int rc = tm_read_file(path, limit, &text, e);
    if (!rc)
        rc = tm_json_parse(text.data, text.len, path, out, e);
    tm_buf_free(&text);
    return rc;
}

int tm_json_save(const char *path, const json_t *value, tm_error *e) {
    char *text = json_dumps(value, JSON_INDENT(2));
    if (!text)
        return tm_fail(e, TM_ERROR, "cannot write %s: the value is not JSON", path);
    tm_buf b = {0};
    tm_buf_puts(&b, text);
    tm_buf_puts(&b, "\n");
    free(text);
    int rc = tm_write_file(path, b.data, b.len, e);
    tm_buf_free(&b);
    return rc;
}

void tm_json_print(const json_t *value) {
    char *text = json_dumps(value, JSON_INDENT(2));
    puts(text ? text : "null");
    free(text);
}

bool tm_json_empty(const json_t *v) {
    return !v || json_is_null(v) || (json_is_string(v) && !*json_string_value(v)) ||
           (json_is_array(v) && !json_array_size(v)) || (json_is_object(v) && !json_object_size(v));
}
