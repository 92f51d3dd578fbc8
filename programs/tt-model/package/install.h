/*
 * install.h - a package onto this machine: its files into the Hugging Face cache, its image into Docker,
 * its manifest and its record to where all tools look for them, its weights into the cache.
 */
#ifndef TM_INSTALL_H
#define TM_INSTALL_H

#include "base/error.h"
#include "hub/hub.h"
#include "installed.h"
#include "manifest.h"
#include "runtime/docker.h"

#include <stdbool.h>

typedef struct tm_pull_options {
    bool weights;    /* the weights too */
    bool no_image;   /* leave Docker alone */
    bool need_image; /* a machine without Docker is an error */
    bool reload;     /* load the image even if it is there */
} tm_pull_options;

/* Everything, in order. `id` and `revision` (may be NULL) as the user gave them. */
int tm_pull(tm_hub *hub, const char *id, const char *revision, const tm_pull_options *options, tm_error *e);

/* All weights of a manifest into the cache. With `must`, what cannot be fetched is an error, else only a
 * full disk and Ctrl-C are, and the rest is said aloud. */
int tm_pull_weights(tm_hub *hub, const tm_manifest *m, bool must, tm_error *e);

/* Where weights lie in the cache: the snapshot's directory, fresh, or NULL when they are not whole. */
char *tm_weights_snapshot(const tm_weights *w);

/* Whether Docker has the image of a package, by its digest, or by what was recorded when it was loaded.
 * *id (fresh) is what Docker has under the name, or NULL. */
int tm_image_current(tm_docker *docker, const tm_manifest *m, const json_t *record, bool *current, char **id,
                     tm_error *e);

/* See to it that Docker has the image: from `package_dir` (NULL: a registry). *id is fresh. */
int tm_image_ensure(tm_docker *docker, const tm_manifest *m, const json_t *record, const char *package_dir, bool reload,
                    char **id, tm_error *e);

/* The manifest of a package that is not installed, from the Hub, through the cache. *repo tells the
 * commit and the files; the caller frees both. */
int tm_fetch_manifest(tm_hub *hub, const char *id, const char *revision, tm_hub_repo *repo, tm_manifest *m,
                      tm_error *e);

#endif
