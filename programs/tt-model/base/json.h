/* json.h - short ways to read jansson values that may be absent or of another type. */
#ifndef TM_JSON_H
#define TM_JSON_H

#include "error.h"

#include <jansson.h>
#include <stdbool.h>

/* The string at key, or NULL. */
const char *tm_json_str(const json_t *object, const char *key);
/* The string at key, or `otherwise`. */
const char *tm_json_str_or(const json_t *object, const char *key, const char *otherwise);
json_int_t tm_json_int(const json_t *object, const char *key, json_int_t otherwise);
bool tm_json_bool(const json_t *object, const char *key, bool otherwise);
/* An object or an array at key, or NULL; borrowed. */
json_t *tm_json_object(const json_t *object, const char *key);
json_t *tm_json_array(const json_t *object, const char *key);

/* Text into a value; `name` says in errors what was read. jansson refuses more than 2048 levels,
 * invalid UTF-8 and \u0000. */
int tm_json_parse(const char *text, size_t len, const char *name, json_t **out, tm_error *e);
int tm_json_load(const char *path, size_t limit, json_t **out, tm_error *e);
int tm_json_save(const char *path, const json_t *value, tm_error *e); /* two spaces, atomically */

/* Print to stdout with two spaces and a newline. */
void tm_json_print(const json_t *value);

/* null, "", [] and {} alike */
bool tm_json_empty(const json_t *value);

#endif
