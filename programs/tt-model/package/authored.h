/*
 * authored.h - tt-model.yaml, what an author writes to make a package. It never leaves the author's machine:
 * the manifest is made from it. Unknown keys are errors everywhere.
 *
 * Beyond the fields of the Python tool there is `image.rootfs`: a directory that becomes the image, with
 * `entrypoint`, `env`, `user` and `workdir`. That is the way of packaging here; `source.tt_metal`,
 * `source.ubuntu` and `source.python` are not needed then.
 */
#ifndef TM_AUTHORED_H
#define TM_AUTHORED_H

#include "base/error.h"
#include "yaml.h"

typedef struct tm_authored {
    tm_yaml yaml;
    json_t *doc; /* = yaml.doc */
    char *dir;   /* of the file: its paths are relative to it */
} tm_authored;

/* Read, with every check. Errors name file and line. */
int tm_authored_load(const char *path, tm_authored *a, tm_error *e);
void tm_authored_free(tm_authored *a);

/* A path of the document, seen from here; fresh. */
char *tm_authored_path(const tm_authored *a, const char *path);

#endif
