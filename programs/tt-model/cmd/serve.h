/* serve.h - the two ways of serving that tt-model serve chooses between. */
#ifndef TM_SERVE_H
#define TM_SERVE_H

#include "base/fs.h"
#include "cli.h"
#include "package/install.h"
#include "runtime/container.h"
#include "runtime/docker.h"

typedef struct tm_serve {
    tm_args *args; /* its evidence is filled in when a boot fails */
    tm_target target;
    tm_manifest manifest;
    tm_profile profile;
    json_t *record; /* of installed.json; NULL for a path, or when nothing is installed */
    tm_hub *hub;
    long port; /* 0: choose */
    double timeout;
    bool detach, local_only, no_weights, restart;
} tm_serve;

/* For messages, and for the command lines in them: the id, or the path as it was given. */
const char *tm_serve_name(const tm_serve *s);

int tm_serve_container(tm_serve *s, tm_docker *docker, tm_error *e);
int tm_serve_native(tm_serve *s, tm_error *e);
/* What would be run, as a command line; fresh. */
int tm_serve_container_line(tm_serve *s, char **line, tm_error *e);
int tm_serve_native_line(tm_serve *s, char **line, tm_error *e);

/* Get the weights as the options say; errors are those that make serving pointless. */
int tm_serve_weights(tm_serve *s, bool must, tm_error *e);

/* The ready card, or the JSON document. `server` is a container's name or "native". */
void tm_serve_ready(const tm_serve *s, const char *server, int port, double seconds);

#endif
