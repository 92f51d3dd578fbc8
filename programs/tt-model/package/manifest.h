/*
 * manifest.h - tt_kernel_manifest.json, the document at the root of a package's repository.
 *
 * Schemas "5", "5.1" and "6" are read. Keys that are not known are ignored, except inside `serve`,
 * `serve_profiles` and `capabilities`, where they are errors: there they would silently change what runs.
 */
#ifndef TM_MANIFEST_H
#define TM_MANIFEST_H

#include "base/error.h"
#include "base/json.h"
#include "base/text.h"

#include <stdbool.h>

#define TM_MANIFEST_NAME "tt_kernel_manifest.json"
enum { TM_MANIFEST_MAX_BYTES = 4 << 20, TM_MAX_PROFILES = 64, TM_MAX_CHIPS = 64 };

typedef struct tm_weights {
    char *repo, *revision, *type; /* revision may be NULL; type is "model" when not given */
    tm_list allow, ignore;
} tm_weights;

typedef struct tm_manifest {
    json_t *doc; /* as read */
    const char *schema, *name, *arch;
    json_t *container;                                /* NULL: a venv bundle, which this program does not install */
    const char *kind;                                 /* vllm-plugin, tt-dit-server, http-server … */
    const char *registry, *repository, *tag, *digest; /* of the image; digest may be NULL */
    tm_weights *weights;                              /* the first one is the package's own, if has_weights */
    size_t weights_count;
    bool has_weights;
    const char **profiles; /* their names, in order */
    size_t profile_count;
    const char *default_profile;
} tm_manifest;

/* `origin` says in errors where the text came from. */
int tm_manifest_parse(const char *text, size_t len, const char *origin, tm_manifest *m, tm_error *e);
int tm_manifest_load(const char *path, tm_manifest *m, tm_error *e);
/* Takes over the reference to doc. */
int tm_manifest_from_json(json_t *doc, const char *origin, tm_manifest *m, tm_error *e);
void tm_manifest_free(tm_manifest *m);

/* What `docker pull` takes when the image is in a registry; the local tag for registry "hf". */
char *tm_manifest_image_ref(const tm_manifest *m);

/* One serve profile, merged over the defaults. */
typedef struct tm_profile {
    char *name;
    json_t *serve;                      /* the merged settings */
    const char *hardware, *mesh_device; /* into serve; NULL: needs no card */
    int chips;                          /* 0 without hardware */
    int rows, cols;                     /* of the mesh, 0 when there is none */
} tm_profile;

/* `name` NULL: the default profile. */
int tm_manifest_profile(const tm_manifest *m, const char *name, tm_profile *p, tm_error *e);
void tm_profile_free(tm_profile *p);

/* `over` laid over `base`: objects are merged, other values replace, and null, "", [] and {} never erase.
 * A new reference. */
json_t *tm_merge(const json_t *base, const json_t *over);

/* Chips of a board name such as p150, p150b, p300x2; 0 when it is none. */
int tm_hardware_chips(const char *hardware);
/* "(2, 4)", "P150x4", "T3K" … into rows and columns. */
bool tm_mesh_shape(const char *mesh, int *rows, int *cols);

/* Checks of a serve block, shared with the authored form: keys, types, ranges. `named`: it is a profile, with
 * name and description. The key that is wrong is put into `bad_key` (may be NULL). */
int tm_check_serve(const json_t *serve, const char *where, bool named, tm_buf *bad_key, tm_error *e);

#endif
