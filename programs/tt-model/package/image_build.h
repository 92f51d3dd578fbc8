/*
 * image_build.h - a directory as a container image, written as an OCI layout without Docker's help. The same
 * directory, settings and time give the same bytes, and so the same digests.
 */
#ifndef TM_IMAGE_BUILD_H
#define TM_IMAGE_BUILD_H

#include "base/error.h"
#include "base/json.h"

#include <stdint.h>

typedef struct tm_image_request {
    const char *rootfs;   /* becomes the one layer */
    const char *out;      /* the layout's directory; must not exist */
    const char *name;     /* of the package: the tag is tt-model/<name>:<12 digits> */
    const json_t *config; /* Entrypoint, Env, User, WorkingDir, Labels, ExposedPorts */
    int64_t created;      /* seconds since 1970; every file's time as well */
} tm_image_request;

typedef struct tm_image_built {
    char digest[72]; /* sha256: and 64 digits, of the configuration: Docker's image Id */
    char *tag;
    uint64_t bytes; /* of the layout */
} tm_image_built;

int tm_image_build(const tm_image_request *q, tm_image_built *out, tm_error *e);

#endif
