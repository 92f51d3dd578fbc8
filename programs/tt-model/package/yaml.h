/*
 * yaml.h - a YAML document as JSON, with the line that each value stands on.
 *
 * One document, no anchors and aliases (they make small files large), no key twice, at most 32 levels.
 * Plain words are null, booleans and numbers as in YAML 1.2; what is in quotes is text.
 */
#ifndef TM_YAML_H
#define TM_YAML_H

#include "base/error.h"
#include "base/json.h"

enum { TM_YAML_MAX_BYTES = 1 << 20, TM_YAML_MAX_DEPTH = 32 };

typedef struct tm_yaml {
    json_t *doc;
    json_t *lines; /* "serve.port" or "serve_profiles.0.name" -> line */
    char *path;
} tm_yaml;

int tm_yaml_load(const char *path, tm_yaml *y, tm_error *e);
void tm_yaml_free(tm_yaml *y);

/* The line of a value, or of the nearest thing around it that there is. */
int tm_yaml_line(const tm_yaml *y, const char *key_path);
/* TM_CONFIG: "file:line: `key.path` what". */
int tm_yaml_error(const tm_yaml *y, const char *key_path, tm_error *e, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

#endif
