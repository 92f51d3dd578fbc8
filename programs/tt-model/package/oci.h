/*
 * oci.h - an image as a package carries it: the directory image/ with oci-layout, index.json and
 * blobs/sha256/<digest>. Nothing of it is believed: every size and digest is checked before Docker sees it.
 */
#ifndef TM_OCI_H
#define TM_OCI_H

#include "base/error.h"
#include "runtime/docker.h"

#include <stddef.h>
#include <stdint.h>

typedef struct tm_oci_blob {
    char *digest; /* sha256:<64 digits> */
    char *path;
    int64_t size;
} tm_oci_blob;

typedef struct tm_oci_image {
    char *dir;
    char *ref_name; /* its name in index.json, or NULL */
    tm_oci_blob manifest, config;
    tm_oci_blob *layers;
    size_t layer_count;
    uint64_t bytes; /* of all blobs */
} tm_oci_image;

/* Read and check the layout in `dir` (`<package>/image`). Links may lead to blobs of the Hugging Face
 * cache, and nowhere else outside the package. */
int tm_oci_open(const char *dir, tm_oci_image *image, tm_error *e);
void tm_oci_close(tm_oci_image *image);

/* Give it to Docker under `tag`: through skopeo when it is installed, else as an archive that `docker
 * load` takes. *id is the image's Id there; fresh. Fails when what Docker has then is another image. */
int tm_oci_load(const tm_oci_image *image, tm_docker *docker, const char *tag, char **id, tm_error *e);

#endif
