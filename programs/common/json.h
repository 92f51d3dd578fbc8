/*
 * Reading JSON (RFC 8259) with YAJL into a flat list of values.
 *
 * Why YAJL: a request is one string of a megabyte and a few numbers. Of the C libraries in Debian it
 * alone shows duplicate names, takes nothing that JSON does not allow (but for malformed UTF-8, which
 * is checked here), and does not take longer over it than the network.
 */
#ifndef SP_COMMON_JSON_H
#define SP_COMMON_JSON_H

#include <stdbool.h>
#include <stddef.h>

#include "superpoint.h"

typedef enum json_type { JSON_NULL, JSON_BOOLEAN, JSON_NUMBER, JSON_STRING, JSON_ARRAY, JSON_OBJECT } json_type;

/*
 * A value. `text` and `size` are a number's or a boolean's letters, or a string's characters with
 * its escapes replaced (UTF-8, may hold zeros), not terminated; nothing for the other types.
 */
typedef struct json_value {
    json_type type;
    unsigned values; /* that lie inside it, at all depths, names included */
    char *text;
    size_t size;
    const struct json_value *inside; /* the first of them */
} json_value;

typedef struct json_limits {
    unsigned max_depth;  /* levels of arrays and objects */
    unsigned max_values; /* in a document: each takes 40 bytes while it is read */
} json_limits;

typedef struct json_document {
    json_value *values; /* the first is the document's own; the next lie inside it, in order */
    size_t count;
} json_document;

/*
 * Read `size` bytes. Strict: one value, UTF-8 without halves of surrogate pairs, no comments, no
 * trailing commas, no NaN. Strings are kept in `text`, which must outlive their use:
 * those with escapes are replaced there. Fails with SP_ERR_ARGUMENT ("body: not JSON: line 2, column
 * 5: ..."), SP_ERR_LIMIT or SP_ERR_MEMORY. Free with json_free, also after a failure.
 */
sp_status json_parse(json_document *document, char *text, size_t size, const json_limits *limits, sp_error *err);
void json_free(json_document *document);

/* Name of a value's type for messages: "a string". */
const char *json_type_text(json_type type);

/* Whether a value is the string `text`. */
bool json_is(const json_value *value, const char *text);

/* Walking the members of an object or the items of an array; nothing is in other values. */
typedef struct json_walk {
    const json_value *next, *end;
} json_walk;

json_walk json_begin(const json_value *container);
bool json_next_member(json_walk *walk, json_value *key, json_value *value);
bool json_next_item(json_walk *walk, json_value *value);

#endif
