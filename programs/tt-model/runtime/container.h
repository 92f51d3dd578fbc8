/* container.h - a package's container: checks of the host, start, stop. */
#ifndef TM_CONTAINER_H
#define TM_CONTAINER_H

#include "base/error.h"
#include "base/json.h"
#include "chips.h"
#include "docker.h"
#include "launch.h"

#include <stdbool.h>

enum { TM_STOP_SECONDS = 120 };

/* What a profile with chips needs of the host, besides free chips. */
int tm_host_check(const tm_docker *docker, tm_error *e);

/* Create and start. A container of that name that has ended is replaced; a failed start leaves nothing. */
int tm_container_start(tm_docker *docker, const tm_launch *l, char **id, tm_error *e);

/* Have Docker start it again whenever Docker itself is started, until it is stopped. */
int tm_container_keep(tm_docker *docker, const char *id, tm_error *e);

typedef enum {
    TM_STOP_CLEAN,
    TM_STOP_KILLED,       /* it held no chips */
    TM_STOP_RESET,        /* killed, and the chips were reset */
    TM_STOP_RESET_FAILED, /* killed, and the reset did not complete */
    TM_STOP_RESET_SKIPPED /* killed, and another container holds the chips now, or nothing can reset them */
} tm_stop_outcome;

/* Stop and remove. `container` is what inspect gave. */
int tm_container_stop(tm_docker *docker, const json_t *container, tm_stop_outcome *outcome, tm_error *e);
const char *tm_stop_text(tm_stop_outcome outcome);
const char *tm_stop_name(tm_stop_outcome outcome); /* for JSON: clean, killed, reset … */

/* Parts of what inspect gave. */
const char *tm_container_label(const json_t *container, const char *suffix); /* "" , ".profile" …; NULL */
int tm_container_port(const json_t *container);                              /* 0: none */
bool tm_container_running(const json_t *container);

#endif
