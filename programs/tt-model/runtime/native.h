/*
 * native.h - a server that runs as a plain process: this project's `superpoint serve` in the background.
 *
 * A keeper process stands between: it stamps and writes the log, and records how the server ended. The
 * state is <root>/native/<package>--<profile>.json, the log <root>/<package>/logs/<profile>.log. A process
 * is known by its number, its start time and the boot of the machine, so that a number that was given away
 * again, or a reboot, is never taken for a server that runs.
 */
#ifndef TM_NATIVE_H
#define TM_NATIVE_H

#include "base/error.h"
#include "base/json.h"
#include "base/text.h"
#include "docker.h"

#include <stdbool.h>

typedef struct tm_native_start {
    const char *repo_id, *package, *profile, *revision; /* repo_id and revision may be NULL */
    const char *weights;                                /* what is served, for `ps` */
    const char *host;
    int port;
    const char *devices; /* "0,1" or NULL */
    const tm_list *argv; /* the program's path first */
    const tm_list *env;  /* KEY=value */
    bool restart;        /* tm_native_again starts it after a restart of the machine */
} tm_native_start;

/* Start it and write its state. *state is a new reference. */
int tm_native_launch(const tm_native_start *s, json_t **state, tm_error *e);

/* Start what a record describes once more, with the same words, on `port`. */
int tm_native_again(const json_t *record, int port, json_t **state, tm_error *e);

/* Wait until it listens, a minute at most, so that the next one who chooses a port sees this one taken. */
void tm_native_await_port(const json_t *state);

/* What is recorded, running or not; NULL when nothing is. */
json_t *tm_native_state(const char *package, const char *profile);
/* All records (a list of states), of one package or of all (NULL). */
json_t *tm_native_all(const char *package);
bool tm_native_alive(const json_t *state);
/* "running", "exited" (an exit code is known), "rebooted" (it ended with the machine), or "lost" (it ended
 * after its keeper was killed). */
const char *tm_native_status(const json_t *state);
/* It was started before the machine was started last. */
bool tm_native_before_boot(const json_t *state);
void tm_native_forget(const json_t *state); /* remove the record; the log stays */

/* SIGTERM, then SIGKILL after `grace` seconds. *clean: it ended by itself with code 0. */
int tm_native_stop(const json_t *state, int grace, bool *clean, tm_error *e);

/* The log, as tm_docker_logs gives a container's. */
int tm_native_logs(const char *log_path, const json_t *state, const tm_log_request *q, tm_error *e);
char *tm_native_log_path(const char *package, const char *profile);

/* The server program: $SUPERPOINT_BIN, beside this program, or on PATH. Fresh, or NULL. */
char *tm_native_program(void);

#endif
