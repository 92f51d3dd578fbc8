/* stop.h - stopping all servers of a package, for stop and rm. */
#ifndef TM_STOP_H
#define TM_STOP_H

#include "base/error.h"
#include "base/json.h"
#include "runtime/docker.h"

typedef struct tm_stopped {
    int count;    /* that were running */
    json_t *list; /* all that were stopped or removed */
} tm_stopped;

/* `docker` NULL: only native ones; `profile` NULL: all. done->list is the caller's, whatever is returned. */
int tm_stop_package(tm_docker *docker, const char *package, const char *profile, tm_stopped *done, tm_error *e);

#endif
