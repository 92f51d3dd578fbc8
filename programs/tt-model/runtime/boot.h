/*
 * boot.h - watching a server from its start until it answers. Ready means both: the line in its log, and
 * an answer on its port.
 */
#ifndef TM_BOOT_H
#define TM_BOOT_H

#include "base/error.h"
#include "base/text.h"
#include "docker.h"

#include <stdbool.h>

typedef struct tm_boot {
    const char *marker; /* the line */
    const char *host;   /* to ask; NULL: 127.0.0.1 */
    int port;
    double timeout; /* seconds */
    /* Give the log to `q` until the server has ended (as tm_docker_logs with follow). */
    int (*follow)(void *arg, const tm_log_request *q, tm_error *e);
    bool (*alive)(void *arg);
    void *arg;
} tm_boot;

/* TM_OK: it answers. Otherwise *evidence gets the last lines of its log. TM_INTERRUPTED: Ctrl-C, and the
 * server lives on. */
int tm_boot_watch(const tm_boot *b, tm_buf *evidence, tm_error *e);

/* TT_MODEL_READY_TIMEOUT, in seconds. */
int tm_boot_timeout(double *seconds, tm_error *e);

/* The status of GET http://host:port<path>, 0 when nothing answers. `body` may be NULL. */
long tm_probe(const char *host, int port, const char *path, tm_buf *body);

#endif
