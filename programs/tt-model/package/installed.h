/*
 * installed.h - installed.json, the index of what was pulled on this machine. Shared with the Python
 * tools, which read it; written under a lock, whole or not at all.
 */
#ifndef TM_INSTALLED_H
#define TM_INSTALLED_H

#include "base/error.h"
#include "base/json.h"
#include "manifest.h"

/* All records, key = repo id; {} when there are none. A new reference. */
int tm_installed_load(json_t **out, tm_error *e);
/* The record of a repository, in the spelling it was pulled under; NULL when it is not installed. A new
 * reference. */
int tm_installed_find(const char *repo_id, json_t **out, tm_error *e);
/* Put in (record NULL: take out) one record. Takes over the reference. */
int tm_installed_store(const char *repo_id, json_t *record, tm_error *e);

/* The manifest that a record points at, or the conventional place. */
int tm_installed_manifest(const char *repo_id, const json_t *record, tm_manifest *m, tm_error *e);

/* What the user named on the command line. */
typedef struct tm_target {
    char *id;       /* owner/name, or NULL for a path */
    char *revision; /* NULL when none was given */
    char *path;     /* of a manifest, or NULL */
} tm_target;

/* owner/name[@revision], or (with `paths`) a manifest's path. TM_USAGE when it is neither. */
int tm_target_parse(const char *text, bool paths, tm_target *t, tm_error *e);
void tm_target_free(tm_target *t);

/* The manifest of a target that is on this machine: its path, or its record. *record (may be NULL) is
 * NULL for a path. TM_ERROR with advice to pull when it is not there. */
int tm_target_manifest(const tm_target *t, tm_manifest *m, json_t **record, tm_error *e);

#endif
