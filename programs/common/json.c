#include "common/json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yajl/yajl_parse.h>

#include "common/fail.h"
#include "common/json_memory.h"
#include "common/utf8.h"

/* What the callbacks share. A document's values are listed in the order of their beginnings; `open`
 * holds the places of the containers that have not ended. */
typedef struct reader {
    json_document *document;
    size_t room;
    char *text;
    yajl_handle yajl;
    const json_limits *limits;
    size_t *open;
    unsigned depth;
    sp_status status;      /* why a callback stopped it, when it was a limit */
    char *behind;          /* the last string */
    const char *complaint; /* or when it was the text */
} reader;

static int stop(reader *r, sp_status status) {
    r->status = status;
    return 0;
}

static int complain(reader *r, const char *what) {
    r->complaint = what;
    return 0;
}

static json_value *add(reader *r, json_type type, const char *text, size_t size) {
    json_document *d = r->document;
    if (d->count == r->limits->max_values) {
        stop(r, SP_ERR_LIMIT);
        return NULL;
    }
    if (d->count == r->room) {
        const size_t room = r->room ? 2 * r->room : 64;
        json_value *values = realloc(d->values, room * sizeof *values);
        if (!values) {
            stop(r, SP_ERR_MEMORY);
            return NULL;
        }
        d->values = values;
        r->room = room;
    }
    json_value *value = &d->values[d->count++];
    *value = (json_value){.type = type, .text = r->text + (text - r->text), .size = size};
    return value;
}

/* Letters that YAJL hands over where they stand in the document. */
static int take_number(void *context, const char *text, size_t size) {
    return add(context, JSON_NUMBER, text, size) != NULL;
}

static int take_null(void *context) {
    reader *r = context;
    return add(r, JSON_NULL, r->text, 0) != NULL;
}

static int take_boolean(void *context, int is_true) {
    reader *r = context;
    const size_t size = is_true ? 4 : 5;
    return add(r, JSON_BOOLEAN, r->text + yajl_get_bytes_consumed(r->yajl) - size, size) != NULL;
}

/* Whether \u at `p` (behind it at least four digits) is in low...low + 0x3ff, a half of a surrogate pair. */
static bool is_half(const char *p, const char *end, unsigned long low) {
    char digits[5] = {0};
    if (end - p < 6 || p[0] != '\\' || p[1] != 'u')
        return false;
    memcpy(digits, p + 2, 4);
    const unsigned long code = strtoul(digits, NULL, 16);
    return code >= low && code <= low + 0x3ff;
}

/* Whether a string, as it is in the document, has half of a surrogate pair, which YAJL takes. */
static bool has_lone_half(const char *p, const char *end) {
    for (; p < end; p++) {
        if (*p != '\\')
            continue;
        if (is_half(p, end, 0xd800) && is_half(p + 6, end, 0xdc00))
            p += 11;
        else if (is_half(p, end, 0xd800) || is_half(p, end, 0xdc00))
            return true;
        else
            p++;
    }
    return false;
}

/* A string without escapes is handed over in place. One with escapes comes from a buffer of YAJL's;
 * it is never longer than what it was in the document, and is put back there, before its closing quote. */
static int take_string(void *context, const unsigned char *text, size_t size) {
    reader *r = context;
    char *end = r->text + yajl_get_bytes_consumed(r->yajl) - 1, *place = end - size;
    if (!utf8_valid(text, size)) /* YAJL takes overlong forms and surrogates */
        return complain(r, "a string is not UTF-8");
    if (size > 0 && (const char *)text != place) {
        /* between two strings or numbers there is no quote but the one that opens this string */
        const char *start = memchr(r->behind, '"', (size_t)(end - r->behind));
        if (!start || has_lone_half(start, end))
            return complain(r, "half of a surrogate pair in a string");
        memcpy(place, text, size);
    }
    r->behind = end + 1;
    return add(r, JSON_STRING, place, size) != NULL;
}

static int begin(reader *r, json_type type) {
    if (r->depth == r->limits->max_depth)
        return complain(r, "nested too deeply");
    if (!add(r, type, r->text, 0))
        return 0;
    r->open[r->depth++] = r->document->count - 1;
    return 1;
}

static int begin_object(void *context) {
    return begin(context, JSON_OBJECT);
}

static int begin_array(void *context) {
    return begin(context, JSON_ARRAY);
}

static int end(void *context) {
    reader *r = context;
    const size_t place = r->open[--r->depth];
    r->document->values[place].values = (unsigned)(r->document->count - place - 1);
    return 1;
}

static const yajl_callbacks callbacks = {.yajl_null = take_null,
                                         .yajl_boolean = take_boolean,
                                         .yajl_number = take_number,
                                         .yajl_string = take_string,
                                         .yajl_start_map = begin_object,
                                         .yajl_map_key = take_string,
                                         .yajl_end_map = end,
                                         .yajl_start_array = begin_array,
                                         .yajl_end_array = end};

/* YAJL says "parse error: REASON" and a picture of the place, of which line and column remain here. */
static sp_status report(reader *r, size_t size, sp_error *err) {
    if (r->status == SP_ERR_MEMORY)
        return fail(err, SP_ERR_MEMORY, "body: out of memory");
    if (r->status == SP_ERR_LIMIT)
        return fail(err, SP_ERR_LIMIT, "body: more than %u JSON values", r->limits->max_values);
    size_t at = yajl_get_bytes_consumed(r->yajl), line = 1, column = 1;
    for (size_t i = 0; i < at && i < size; i++) {
        column = r->text[i] == '\n' ? 1 : column + 1;
        line += r->text[i] == '\n';
    }
    if (r->complaint)
        return fail(err, SP_ERR_ARGUMENT, "body: not JSON: line %zu, column %zu: %s", line, column, r->complaint);
    unsigned char *said = yajl_get_error(r->yajl, 0, (const unsigned char *)r->text, size);
    char reason[160] = "a value was expected";
    if (said) {
        snprintf(reason, sizeof reason, "%s", (const char *)said);
        reason[strcspn(reason, "\n")] = '\0';
        yajl_free_error(r->yajl, said);
    }
    return fail(err, SP_ERR_ARGUMENT, "body: not JSON: line %zu, column %zu: %s", line, column, reason);
}

static sp_status read_all(reader *r, size_t size, sp_error *err) {
    yajl_status status = yajl_parse(r->yajl, (const unsigned char *)r->text, size);
    if (status == yajl_status_ok)
        status = yajl_complete_parse(r->yajl);
    if (status != yajl_status_ok || r->document->count == 0)
        return report(r, size, err);
    json_value *values = r->document->values; /* they no longer move */
    for (size_t i = 0; i < r->document->count; i++)
        values[i].inside = &values[i] + 1;
    return SP_OK;
}

/* Everything that calls YAJL; `r` and `memory` belong to the caller, so that they are whole after a longjmp. */
static sp_status read_guarded(reader *r, json_memory *memory, size_t size, sp_error *err) {
    if (setjmp(memory->out) != 0)
        return fail(err, SP_ERR_MEMORY, "body: out of memory");
    yajl_alloc_funcs functions = json_memory_functions(memory);
    r->yajl = yajl_alloc(&callbacks, &functions, r);
    return r->yajl ? read_all(r, size, err) : fail(err, SP_ERR_MEMORY, "body: out of memory");
}

sp_status json_parse(json_document *document, char *text, size_t size, const json_limits *limits, sp_error *err) {
    *document = (json_document){0};
    reader r = {.document = document, .text = text, .behind = text, .limits = limits};
    json_memory memory = {0};
    r.open = calloc((size_t)limits->max_depth + 1, sizeof *r.open);
    sp_status status = r.open ? read_guarded(&r, &memory, size, err) : fail(err, SP_ERR_MEMORY, "body: out of memory");
    json_memory_free(&memory);
    free(r.open);
    if (status != SP_OK)
        json_free(document);
    return status;
}

void json_free(json_document *document) {
    free(document->values);
    *document = (json_document){0};
}

const char *json_type_text(json_type type) {
    static const char *const texts[] = {"null", "a boolean", "a number", "a string", "an array", "an object"};
    return texts[type];
}

bool json_is(const json_value *value, const char *text) {
    return value->type == JSON_STRING && value->size == strlen(text) && memcmp(value->text, text, value->size) == 0;
}

json_walk json_begin(const json_value *container) {
    return (json_walk){container->inside, container->inside + container->values};
}

bool json_next_item(json_walk *walk, json_value *value) {
    if (walk->next == walk->end)
        return false;
    *value = *walk->next;
    walk->next += 1 + value->values;
    return true;
}

bool json_next_member(json_walk *walk, json_value *key, json_value *value) {
    return json_next_item(walk, key) && json_next_item(walk, value);
}
