/* fetch.h - one file, or one range of it, from the Hub to disk; repeated until it is there. */
#ifndef TM_FETCH_H
#define TM_FETCH_H

#include "base/error.h"
#include "hub.h"

typedef struct tm_fetch_range {
    const char *path;    /* the file on disk that the bytes are appended to */
    int64_t path_offset; /* where in the remote file that file begins */
    int64_t begin, end;  /* the range of the remote file; what `path` holds of it already is skipped */
    int64_t size;        /* of the whole remote file */
    const char *etag;    /* what it must have */
    void (*on_bytes)(void *arg, size_t n);
    bool (*cancelled)(void *arg);
    void *arg;
} tm_fetch_range;

int tm_fetch_file_range(tm_hub *hub, tm_http_session *session, const tm_hub_repo *repo, const tm_hub_file *file,
                        const tm_fetch_range *range, tm_error *e);

/* Ask for the digest and the size that the file list did not give. *etag is fresh. */
int tm_fetch_head(tm_hub *hub, tm_http_session *session, const tm_hub_repo *repo, const tm_hub_file *file, char **etag,
                  int64_t *size, tm_error *e);

/* Append `from`, from byte `skip` on, to `to`. */
int tm_append_file(const char *to, const char *from, int64_t skip, tm_error *e);
/* Flush a file to disk, then rename it. */
int tm_rename_synced(const char *from, const char *to, tm_error *e);

#endif
