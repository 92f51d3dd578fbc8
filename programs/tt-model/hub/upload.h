/*
 * upload.h - writing to the Hub: repositories, their visibility, and commits. Large files go to the Hub's
 * storage by the LFS protocol first (whole, or in parts), small ones travel inside the commit.
 */
#ifndef TM_UPLOAD_H
#define TM_UPLOAD_H

#include "base/error.h"
#include "base/text.h"
#include "hub.h"

#include <stdbool.h>

/* Make the repository. One that is there already is left as it is; *made tells. */
int tm_hub_create(tm_hub *hub, const char *id, bool private_repo, bool *made, tm_error *e);
int tm_hub_set_private(tm_hub *hub, const char *id, bool private_repo, tm_error *e);

typedef struct tm_commit {
    const char *id, *branch, *summary;
    const char *dir;          /* files to add, all that are below it */
    const tm_list *paths;     /* relative to dir */
    const tm_list *deletions; /* paths in the repository; may be NULL */
} tm_commit;

/* Add and delete in one commit. Files that the repository has already are not sent. *sha is fresh; NULL when
 * nothing changed. */
int tm_hub_commit(tm_hub *hub, const tm_commit *c, const tm_hub_repo *now, char **sha, tm_error *e);

/* One small file, from memory. */
int tm_hub_commit_text(tm_hub *hub, const char *id, const char *path, const char *text, const char *summary,
                       tm_error *e);

/* Download one small file as text (the current README). */
int tm_hub_read_text(tm_hub *hub, const char *id, const char *path, tm_buf *out, tm_error *e);

#endif
