/*
 * hub.h - the Hugging Face Hub's HTTP interface: what a repository holds, who we are, searching.
 */
#ifndef TM_HUB_H
#define TM_HUB_H

#include "base/error.h"
#include "base/json.h"
#include "http.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct tm_hub {
    char *endpoint;
    char *token; /* NULL: nobody */
    tm_http_session *session;
} tm_hub;

/* The Hub of the environment. Does not connect. */
void tm_hub_open(tm_hub *hub);
void tm_hub_close(tm_hub *hub);

/* One file of a repository at one commit. */
typedef struct tm_hub_file {
    char *path;    /* checked: tm_path_is_safe */
    char *blob_id; /* git SHA-1; NULL when the server did not say */
    char *sha256;  /* of LFS files, else NULL */
    int64_t size;  /* -1 when the server did not say */
} tm_hub_file;

typedef struct tm_hub_repo {
    char *id;   /* owner/name as the Hub spells it */
    char *type; /* "model", "dataset" or "space" */
    char *sha;  /* the commit */
    char *license;
    tm_hub_file *files;
    size_t count;
} tm_hub_repo;

/* What `id` holds at `revision` (NULL: the default branch). `role` says in errors what it is to the
 * user: "package" or "weights". A file name that leads outside the repository, or a commit that is not
 * one, refuses the whole. */
int tm_hub_repo_info(tm_hub *hub, const char *type, const char *id, const char *revision, const char *role,
                     tm_hub_repo *out, tm_error *e);
void tm_hub_repo_free(tm_hub_repo *repo);
const tm_hub_file *tm_hub_find(const tm_hub_repo *repo, const char *path);

/* Address of a file: {endpoint}/[datasets/]{id}/resolve/{revision}/{path}. */
char *tm_hub_file_url(const tm_hub *hub, const char *type, const char *id, const char *revision, const char *path);

/* One call of the interface, repeated when the Hub is busy or the connection breaks (`once`: not). `path`
 * begins with a slash. The body is JSON unless `content_type` says otherwise. An error status is an error. */
typedef struct tm_hub_request {
    const char *method, *path, *content_type;
    const void *body;
    size_t body_len;
    const char *what; /* for errors: "the file list of owner/name" */
    const char *id;   /* the repository it is about, or NULL */
    const char *role;
    bool once;
    long accept_status; /* an error status that is not an error here, or 0 */
} tm_hub_request;
int tm_hub_call(tm_hub *hub, const tm_hub_request *q, tm_http_response *r, tm_error *e);
/* The same, with the answer parsed. */
int tm_hub_json(tm_hub *hub, const tm_hub_request *q, json_t **out, tm_error *e);

/* The error that an HTTP status of the Hub stands for. */
int tm_hub_status_error(const tm_hub *hub, const tm_http_response *r, const char *what, const char *id,
                        const char *role, tm_error *e);

/* Attempts and waits, shared with the downloads. */
enum { TM_HUB_ATTEMPTS = 5, TM_HUB_MAX_RETRY_AFTER = 300 };
bool tm_hub_may_retry(long status);
/* Wait behind attempt number `attempt` (1, 2 …): 0.5, 1, 2, 4 s, or the seconds that the answer's Retry-After asks. */
int tm_hub_wait(int attempt, double retry_after, tm_error *e);

#endif
