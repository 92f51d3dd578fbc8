/*
 * fs.h - files, written so that no reader ever sees a half of one, and names that were checked.
 */
#ifndef TM_FS_H
#define TM_FS_H

#include "error.h"
#include "text.h"

#include <stdint.h>
#include <sys/types.h>

/* Directories that lead to `path`, and `path` itself. */
int tm_mkdirs(const char *path, tm_error *e);
/* The same for the directory that `path` lies in. */
int tm_mkdirs_for(const char *path, tm_error *e);

/* The whole file, refused when larger than `limit` bytes. */
int tm_read_file(const char *path, size_t limit, tm_buf *out, tm_error *e);

/* Write all of it to an open file, whatever pieces the system takes it in. False: errno says why not. */
bool tm_write_all(int fd, const void *data, size_t len);
/* Write beside `path`, flush, rename over it. */
int tm_write_file(const char *path, const void *data, size_t len, tm_error *e);

/* Remove a file, or a directory with all that is in it; links are removed, never followed. What is
 * not there is not an error. */
int tm_remove_tree(const char *path, tm_error *e);

/* Bytes of all regular files under `path`, each counted once, links not followed. */
uint64_t tm_tree_bytes(const char *path);

/* Regular files under `root` as paths relative to it, in the order of a depth-first walk; links are
 * refused with an error unless `skip_links`. */
int tm_walk_files(const char *root, bool skip_links, tm_list *out, tm_error *e);

/* Bytes that an ordinary user may still write to the file system of `path` (or of the nearest
 * directory above it that exists). */
int tm_free_bytes(const char *path, uint64_t *out);

bool tm_exists(const char *path);
bool tm_is_dir(const char *path);
int64_t tm_file_size(const char *path); /* -1: no such regular file; links are followed */

/* A relative path of a package: no absolute path, no empty, "." or ".." part, no backslash, no control
 * character, at most 1024 bytes and 255 a part. */
bool tm_path_is_safe(const char *path);
/* [a-z0-9][a-z0-9._-]* without "..": a name that may stand in a path. */
bool tm_is_slug(const char *s);
/* [A-Za-z0-9_.-]+/[A-Za-z0-9_.-]+ as the Hub takes it, at most 96 bytes a part. */
bool tm_is_repo_id(const char *s);
/* A branch, tag or commit that may stand in a path: as tm_path_is_safe, and no spaces. */
bool tm_is_revision(const char *s);
bool tm_is_hex(const char *s, size_t n); /* exactly n lower-case hexadecimal digits */

/*
 * An exclusive lock on a file, held until tm_unlock or the end of the process. Waits; `cancelled`
 * is asked ten times a second and ends the wait with TM_INTERRUPTED. When somebody else holds it,
 * `on_wait` is called once. Both may be NULL.
 */
typedef struct tm_lock {
    int fd;
} tm_lock;
int tm_lock_file(const char *path, bool (*cancelled)(void *arg), void (*on_wait)(void *arg), void *arg, tm_lock *lock,
                 tm_error *e);
void tm_unlock(tm_lock *lock);

char *tm_join(const char *a, const char *b); /* a/b */
char *tm_dirname(const char *path);
const char *tm_basename(const char *path);

#endif
