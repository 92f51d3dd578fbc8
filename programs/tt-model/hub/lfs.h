/*
 * lfs.h - large files to the Hub's storage, by the batch protocol of git LFS with the Hub's transfers `basic`
 * (one PUT) and `multipart`. The storage's addresses are signed: the token goes to the Hub alone.
 */
#ifndef TM_LFS_H
#define TM_LFS_H

#include "hub.h"

typedef struct tm_lfs_file {
    const char *path; /* in the repository, for messages */
    char *file;       /* on disk */
    int64_t size;
    char sha256[65];
} tm_lfs_file;

/* Send what the Hub does not have. *done counts up to `total`, for the running step's bar. */
int tm_lfs_send(tm_hub *hub, const char *id, const char *branch, const tm_lfs_file *u, uint64_t *done, uint64_t total,
                tm_error *e);

#endif
