/*
 * launch.h - how a package's container is started: user, labels, devices, mounts, environment and command,
 * composed once, then printed as a `docker run` line or given to the engine.
 */
#ifndef TM_LAUNCH_H
#define TM_LAUNCH_H

#include "base/error.h"
#include "base/json.h"
#include "base/text.h"
#include "chips.h"
#include "package/manifest.h"

#include <stdbool.h>

typedef struct tm_launch {
    char *name; /* of the container */
    char *user;
    tm_list labels;  /* key=value */
    tm_list devices; /* paths, the same inside */
    bool hugepages;
    tm_list volumes; /* host:inside */
    tm_list env;     /* KEY=value, or KEY for one that is handed on */
    int port;        /* the same inside and outside */
    char *image;
    tm_list argv;
    bool restart; /* Docker brings it back after a restart of the machine */
    char *marker; /* the line in the log that says it is ready */
} tm_launch;

typedef struct tm_launch_request {
    const tm_manifest *manifest;
    const tm_profile *profile;
    const char *repo_id;   /* for the label; NULL when it was served from a path */
    const tm_chips *chips; /* NULL with a profile that needs some: the whole directory (only for --print) */
    int port;
    bool rootless, restart;
    const tm_list *extra; /* words for the server */
} tm_launch_request;

/* TM_UNSUPPORTED for a kind that is not known. */
int tm_launch_make(const tm_launch_request *q, tm_launch *l, tm_error *e);
void tm_launch_free(tm_launch *l);

char *tm_launch_shell(const tm_launch *l);  /* the docker run line */
json_t *tm_launch_body(const tm_launch *l); /* for POST /containers/create */
/* Make the directories that will be mounted, as this user: Docker would make them root's. */
int tm_launch_prepare(const tm_launch *l, tm_error *e);

char *tm_container_name(const char *package, const char *profile);
/* The log line that says that a server of this kind answers. */
const char *tm_ready_marker(const tm_manifest *m);

#endif
