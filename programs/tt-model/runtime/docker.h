/*
 * docker.h - the Docker Engine, through its HTTP interface on the socket that the docker client would
 * use: DOCKER_HOST (unix:// or tcp://), else /var/run/docker.sock, else the rootless one.
 */
#ifndef TM_DOCKER_H
#define TM_DOCKER_H

#include "base/error.h"
#include "base/json.h"
#include "base/text.h"
#include "hub/http.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct tm_docker {
    char *socket; /* path, or NULL for tcp */
    char *base;   /* http://localhost or http://host:port */
    char *version;
    bool rootless;
    tm_http_session *session;
} tm_docker;

/* Find the engine and ask its version. TM_TOOL_MISSING: there is none; TM_NEEDS_SUDO: this user may not
 * talk to it. */
int tm_docker_open(tm_docker *d, tm_error *e);
void tm_docker_close(tm_docker *d);
char *tm_docker_host(const tm_docker *d); /* as DOCKER_HOST has it; fresh */

/* One call; `body` (may be NULL) is not freed. Statuses from 400 are errors, except 404 when `missing` is
 * given: it tells so, and *out is NULL. `out` may be NULL. */
int tm_docker_call(tm_docker *d, const char *method, const char *path, const json_t *body, bool *missing, json_t **out,
                   tm_error *e);

/* Id of an image; *id NULL when there is none. Fresh. */
int tm_docker_image_id(tm_docker *d, const char *ref, char **id, tm_error *e);
/* Send the archive that `read` gives to `docker load`. */
int tm_docker_load(tm_docker *d, long (*read)(void *arg, char *data, size_t n), void *arg, int64_t size, tm_error *e);
/* docker pull */
int tm_docker_pull(tm_docker *d, const char *ref, tm_error *e);

/* Containers of this program, newest first: a list of what `inspect` gives. `name` (of the package) may
 * be NULL: all packages. */
int tm_docker_containers(tm_docker *d, const char *name, bool all, json_t **out, tm_error *e);
/* What `inspect` gives, or NULL when there is no such container. */
int tm_docker_inspect(tm_docker *d, const char *id, json_t **out, tm_error *e);
int tm_docker_remove(tm_docker *d, const char *id, tm_error *e); /* by force; not there: fine */

/* The log as lines. `sink` gets 1 (stdout) or 2 and the line without its end; false stops. */
typedef struct tm_log_request {
    bool follow, timestamps;
    long tail;    /* last lines; negative: all */
    double since; /* seconds since 1970; 0: from the start */
    bool (*sink)(void *arg, int stream, const char *line);
    bool (*cancelled)(void *arg);
    void *arg;
} tm_log_request;
int tm_docker_logs(tm_docker *d, const char *id, const tm_log_request *q, tm_error *e);
/* The last `lines` lines as one text; fresh, never NULL. */
char *tm_docker_log_tail(tm_docker *d, const char *id, int lines);

#define TM_LABEL "org.tenstorrent.tt-model"

#endif
