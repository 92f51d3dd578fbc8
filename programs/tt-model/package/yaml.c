#include "yaml.h"

#include "base/fs.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

typedef struct parser {
    yaml_parser_t p;
    tm_yaml *y;
    tm_error *e;
} parser;

static int fail_at(parser *ps, size_t line, const char *what) {
    return tm_fail(ps->e, TM_CONFIG, "%s:%zu: %s", ps->y->path, line + 1, what);
}

static int next(parser *ps, yaml_event_t *ev) {
    if (yaml_parser_parse(&ps->p, ev))
        return TM_OK;
    char *what = tm_fmt("%s%s%s", ps->p.problem ? ps->p.problem : "not YAML", ps->p.context ? " " : "",
                        ps->p.context ? ps->p.context : "");
    int rc = fail_at(ps, ps->p.problem_mark.line, what);
    free(what);
    return rc;
}

static json_t *plain(const char *s) {
    if (!*s || !strcmp(s, "~") || !strcmp(s, "null") || !strcmp(s, "Null") || !strcmp(s, "NULL"))
        return json_null();
    if (!strcmp(s, "true") || !strcmp(s, "True") || !strcmp(s, "TRUE"))
        return json_true();
    if (!strcmp(s, "false") || !strcmp(s, "False") || !strcmp(s, "FALSE"))
        return json_false();
    char *end;
    if (s[strspn(s, "+-0123456789")] == '\0') {
        errno = 0;
        long long n = strtoll(s, &end, 10);
        if (!errno && !*end && end != s)
            return json_integer(n);
    }
    if (s[strspn(s, "+-.eE0123456789")] == '\0' && strpbrk(s, "0123456789")) {
        double d = strtod(s, &end);
        if (!*end && isfinite(d))
            return json_real(d);
    }
    return json_string(s);
}

static int read_value(parser *ps, yaml_event_t *ev, const char *path, int depth, json_t **out);

static int read_sequence(parser *ps, const char *path, int depth, json_t **out) {
    *out = json_array();
    for (;;) {
        yaml_event_t ev;
        int rc = next(ps, &ev);
        if (rc)
            return rc;
        if (ev.type == YAML_SEQUENCE_END_EVENT) {
            yaml_event_delete(&ev);
            return TM_OK;
        }
        char *sub = tm_fmt("%s%s%zu", path, *path ? "." : "", json_array_size(*out));
        json_t *value = NULL;
        rc = read_value(ps, &ev, sub, depth + 1, &value);
        free(sub);
        if (rc) {
            json_decref(value);
            return rc;
        }
        json_array_append_new(*out, value);
    }
}

static int read_mapping(parser *ps, const char *path, int depth, json_t **out) {
    *out = json_object();
    for (;;) {
        yaml_event_t ev;
        int rc = next(ps, &ev);
        if (rc)
            return rc;
        if (ev.type == YAML_MAPPING_END_EVENT) {
            yaml_event_delete(&ev);
            return TM_OK;
        }
        if (ev.type != YAML_SCALAR_EVENT) {
            rc = fail_at(ps, ev.start_mark.line, "a key must be a word");
            yaml_event_delete(&ev);
            return rc;
        }
        char *key = tm_strdup((const char *)ev.data.scalar.value);
        char *sub = tm_fmt("%s%s%s", path, *path ? "." : "", key);
        size_t line = ev.start_mark.line;
        yaml_event_delete(&ev);
        json_t *value = NULL;
        if (json_object_get(*out, key)) {
            char *what = tm_fmt("`%s` stands here a second time", sub);
            rc = fail_at(ps, line, what);
            free(what);
        }
        if (!rc)
            rc = next(ps, &ev);
        if (!rc)
            rc = read_value(ps, &ev, sub, depth + 1, &value);
        json_object_set_new(ps->y->lines, sub, json_integer((json_int_t)line + 1));
        if (!rc && json_object_set(*out, key, value) != 0)
            rc = fail_at(ps, line, "not valid UTF-8");
        json_decref(value);
        free(key);
        free(sub);
        if (rc)
            return rc;
    }
}

/* Takes over the event. */
static int read_value(parser *ps, yaml_event_t *ev, const char *path, int depth, json_t **out) {
    yaml_event_type_t type = ev->type;
    size_t line = ev->start_mark.line;
    bool anchored = (type == YAML_SCALAR_EVENT && ev->data.scalar.anchor) ||
                    (type == YAML_SEQUENCE_START_EVENT && ev->data.sequence_start.anchor) ||
                    (type == YAML_MAPPING_START_EVENT && ev->data.mapping_start.anchor) || type == YAML_ALIAS_EVENT;
    json_object_set_new(ps->y->lines, path, json_integer((json_int_t)line + 1));
    if (type == YAML_SCALAR_EVENT && !anchored) {
        const char *text = (const char *)ev->data.scalar.value;
        bool is_plain = ev->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
        *out = is_plain ? plain(text) : json_string(text);
    }
    yaml_event_delete(ev);
    if (anchored)
        return fail_at(ps, line, "anchors and aliases are not read here");
    if (depth > TM_YAML_MAX_DEPTH)
        return fail_at(ps, line, "nested too deep");
    if (type == YAML_SEQUENCE_START_EVENT)
        return read_sequence(ps, path, depth, out);
    if (type == YAML_MAPPING_START_EVENT)
        return read_mapping(ps, path, depth, out);
    return *out ? TM_OK : fail_at(ps, line, "not valid UTF-8");
}

static int read_document(parser *ps) {
    static const yaml_event_type_t around[] = {YAML_STREAM_START_EVENT, YAML_DOCUMENT_START_EVENT};
    yaml_event_t ev;
    int rc;
    for (size_t i = 0; i < 2; i++) {
        rc = next(ps, &ev);
        if (rc)
            return rc;
        yaml_event_type_t type = ev.type;
        yaml_event_delete(&ev);
        if (type != around[i])
            return fail_at(ps, 0, "the file is empty");
    }
    rc = next(ps, &ev);
    if (!rc)
        rc = read_value(ps, &ev, "", 0, &ps->y->doc);
    for (int i = 0; i < 2 && !rc; i++) { /* the document's end, and then the stream's */
        rc = next(ps, &ev);
        if (!rc) {
            if (i == 1 && ev.type != YAML_STREAM_END_EVENT)
                rc = fail_at(ps, ev.start_mark.line, "a second document begins here");
            yaml_event_delete(&ev);
        }
    }
    return rc;
}

static int parse_text(const char *text, size_t len, const char *name, tm_yaml *y, tm_error *e) {
    *y = (tm_yaml){.path = tm_strdup(name), .lines = json_object()};
    parser ps = {.y = y, .e = e};
    if (!yaml_parser_initialize(&ps.p)) {
        tm_yaml_free(y);
        return tm_fail(e, TM_ERROR, "cannot start the YAML parser");
    }
    yaml_parser_set_input_string(&ps.p, (const unsigned char *)text, len);
    int rc = read_document(&ps);
    yaml_parser_delete(&ps.p);
    if (rc)
        tm_yaml_free(y);
    return rc;
}

int tm_yaml_load(const char *path, tm_yaml *y, tm_error *e) {
    tm_buf text = {0};
    *y = (tm_yaml){0};
    int rc = tm_read_file(path, TM_YAML_MAX_BYTES, &text, e);
    if (!rc)
        rc = parse_text(text.data, text.len, path, y, e);
    tm_buf_free(&text);
    return rc;
}

void tm_yaml_free(tm_yaml *y) {
    json_decref(y->doc);
    json_decref(y->lines);
    free(y->path);
    *y = (tm_yaml){0};
}

int tm_yaml_line(const tm_yaml *y, const char *key_path) {
    char *path = tm_strdup(key_path);
    json_t *line;
    while (!(line = json_object_get(y->lines, path)) && *path) {
        char *dot = strrchr(path, '.');
        *(dot ? dot : path) = '\0';
    }
    free(path);
    return line ? (int)json_integer_value(line) : 1;
}

int tm_yaml_error(const tm_yaml *y, const char *key_path, tm_error *e, const char *fmt, ...) {
    va_list ap;
    char *what = NULL;
    va_start(ap, fmt);
    if (vasprintf(&what, fmt, ap) < 0)
        what = NULL;
    va_end(ap);
    tm_fail(e, TM_CONFIG, "%s:%d: `%s` %s", y->path, tm_yaml_line(y, key_path), key_path, what ? what : "is wrong");
    free(what);
    return TM_CONFIG;
}
