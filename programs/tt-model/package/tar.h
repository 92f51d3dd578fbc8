/*
 * tar.h - an archive as a stream of bytes: entries are added, then the archive is read piece by piece, so
 * that it is never whole in memory or on disk. POSIX pax format; the same entries give the same bytes.
 */
#ifndef TM_TAR_H
#define TM_TAR_H

#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

typedef struct tm_tar tm_tar;

tm_tar *tm_tar_new(void);
void tm_tar_free(tm_tar *t);

/* Names are relative and without a trailing slash. Everything belongs to user and group 0 and is of
 * `mtime`. The size of a file is taken now; reading fails if it has another one then. */
void tm_tar_add_bytes(tm_tar *t, const char *name, const void *data, size_t n, unsigned mode, int64_t mtime);
int tm_tar_add_file(tm_tar *t, const char *name, const char *path, unsigned mode, int64_t mtime, tm_error *e);
void tm_tar_add_dir(tm_tar *t, const char *name, unsigned mode, int64_t mtime);
void tm_tar_add_link(tm_tar *t, const char *name, const char *target, int64_t mtime);

/* The next bytes; 0 at the end, -1 when a file cannot be read (tm_tar_error tells). */
long tm_tar_read(tm_tar *t, char *data, size_t n);
uint64_t tm_tar_total(const tm_tar *t); /* bytes of the whole archive */
const char *tm_tar_error(const tm_tar *t);

#endif
