/*
 * Reading JSON (RFC 8259) in place: nothing is allocated, and strings stay where they are.
 *
 * A document is checked once, whole; then values are spans of its text that are walked by need. Why
 * not a library: a request is one string of a megabyte and a few numbers, and the libraries at hand
 * either take longer over it than the network does (jansson: 25 ms for 1 MiB) or let pass what JSON
 * does not allow (cJSON). `bench` has the figures of this one.
 */
#ifndef SP_COMMON_JSON_H
#define SP_COMMON_JSON_H

#include "superpoint.h"

typedef enum json_type { JSON_NULL, JSON_BOOLEAN, JSON_NUMBER, JSON_STRING, JSON_ARRAY, JSON_OBJECT } json_type;

/* A value of a checked document: its text, without white space around. */
typedef struct json_value {
    json_type type;
    char *text;
    size_t size;
} json_value;

/*
 * Check `size` bytes, and give the value that they are. Strict: one value, UTF-8 without lone
 * surrogates, no comments, no trailing commas, no NaN, at most `max_depth` levels of arrays and
 * objects. Fails with SP_ERR_ARGUMENT ("body: line 2, column 5: …"). The text is not changed.
 */
sp_status json_check(char *text, size_t size, unsigned max_depth, json_value *value, sp_error *err);

/* Name of a value's type for messages: "a string". */
const char *json_type_text(json_type type);

/* Walking the members of an object or the items of an array. */
typedef struct json_walk {
    char *next, *end;
} json_walk;

json_walk json_begin(const json_value *container);
bool json_next_member(json_walk *walk, json_value *key, json_value *value);
bool json_next_item(json_walk *walk, json_value *value);

/*
 * The characters of a string: escapes are replaced in place. The result lies inside the document, is
 * UTF-8, may hold zeros, and is not terminated. To be called once for each string, and what holds the
 * string is not to be walked again from its start.
 */
void json_string_text(const json_value *string, char **text, size_t *size);

#endif
