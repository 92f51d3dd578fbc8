/* The service: what all its parts share. */
#ifndef SP_SERVE_SERVER_H
#define SP_SERVE_SERVER_H

#include <microhttpd.h>
#include <stdatomic.h>

#include "config.h"
#include "gate.h"
#include "log.h"
#include "pipeline.h"
#include "stats.h"
#include "tokens.h"

typedef struct server {
    config config;
    sp_setup setup;
    sp_params defaults;
    sp_model *model;
    sp_engine *engine;
    pipeline *pipeline;
    stats stats;
    line_log *log;
    tokens tokens;
    gate *gate;
    struct MHD_Daemon *daemon;
    struct MHD_Response *no_memory; /* the answer that needs no memory */
    int port;
    double started_ms;
    atomic_bool ready, draining;
    _Atomic size_t body_bytes, active;
} server;

/* Why /health is not ok now, or NULL; `room` may hold the text. */
const char *server_trouble(server *s, char *room, size_t size);

#endif
