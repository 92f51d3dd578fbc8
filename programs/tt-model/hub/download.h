/*
 * download.h - files of a repository into the cache: several at once, large ones in several ranges at
 * once, continued where an earlier run stopped, checked against their digests before they get their name.
 */
#ifndef TM_DOWNLOAD_H
#define TM_DOWNLOAD_H

#include "base/error.h"
#include "base/text.h"
#include "hub.h"

typedef struct tm_download_options {
    const tm_list *allow, *ignore; /* patterns; may be NULL */
} tm_download_options;

typedef struct tm_download_stats {
    size_t files;     /* that were asked for */
    uint64_t total;   /* their bytes */
    uint64_t fetched; /* bytes that came over the network now */
    uint64_t resumed; /* bytes of unfinished downloads that were kept */
} tm_download_stats;

/* Fetch into the cache what is not there yet, and make the snapshot's links. Reports progress on the
 * step that is running. On failure everything whole is kept, and so are the parts. */
int tm_download(tm_hub *hub, const tm_hub_repo *repo, const tm_download_options *options, tm_download_stats *stats,
                tm_error *e);

/* What a download would have to fetch, and whether the disk can hold it; `*need` may be NULL. */
int tm_download_check_space(const tm_hub_repo *repo, const tm_download_options *options, uint64_t *need, tm_error *e);

/* The digest that names a file in the cache; NULL when the Hub did not give one. */
const char *tm_file_etag(const tm_hub_file *f);

#endif
