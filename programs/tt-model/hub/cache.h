/*
 * cache.h - the Hugging Face cache on disk, in the layout that huggingface_hub and transformers read:
 *
 *   <hub>/models--owner--name/refs/<branch>                 the commit it stood at
 *                            /snapshots/<commit>/<path>      link to ../../blobs/<etag>
 *                            /blobs/<etag>                   the bytes; etag is SHA-256 (LFS) or git's SHA-1
 *                            /blobs/<etag>.incomplete        the first bytes of a download under way
 *                            /trees/<commit>.json            the file list of the commit
 *   <hub>/.locks/models--owner--name/<etag>.lock
 */
#ifndef TM_CACHE_H
#define TM_CACHE_H

#include "base/error.h"
#include "base/text.h"
#include "hub.h"

/* All return fresh text. `type` is "model", "dataset" or "space". */
char *tm_cache_repo_dir(const char *type, const char *id);
char *tm_cache_snapshot(const char *type, const char *id, const char *sha);
char *tm_cache_lock(const char *type, const char *id, const char *etag);

/* The commit of a revision as far as the cache knows: a full commit, a ref, or the only snapshot that
 * begins with it. NULL when it is not known. */
char *tm_cache_resolve(const char *type, const char *id, const char *revision);

/* refs/<revision> = sha. A full commit needs no ref and gets none. */
int tm_cache_write_ref(const char *type, const char *id, const char *revision, const char *sha, tm_error *e);

/* snapshots/<commit>/<path>, as a link to the blob. */
int tm_cache_link(const tm_hub_repo *repo, const char *path, const char *etag, tm_error *e);

/* Remember the file list, so that everybody can tell a whole snapshot from a part of one. Nothing is
 * written when the Hub did not give every digest and size. */
int tm_cache_write_tree(const tm_hub_repo *repo, tm_error *e);

/* Which of its files a snapshot lacks, by the remembered file list. */
typedef enum { TM_SNAPSHOT_NONE, TM_SNAPSHOT_PART, TM_SNAPSHOT_UNKNOWN, TM_SNAPSHOT_WHOLE } tm_snapshot_state;
tm_snapshot_state tm_cache_state(const char *type, const char *id, const char *sha, const tm_list *allow,
                                 const tm_list *ignore);

/* Whether a path is asked for: it matches one of `allow` (when there are any) and none of `ignore`. The
 * patterns are those of huggingface_hub: * crosses slashes, a trailing slash means all below. */
bool tm_pattern_selects(const char *path, const tm_list *allow, const tm_list *ignore);

/* The bytes of a repository's downloads that are under way. */
uint64_t tm_cache_partial_bytes(const char *type, const char *id);

/* Remove all of a repository from the cache. */
int tm_cache_remove(const char *type, const char *id, tm_error *e);

#endif
