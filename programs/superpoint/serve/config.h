/*
 * Settings of the service. Every limit and deadline is one line of the table in config.c, which
 * gives it a name, a default, a flag, a key of the configuration file and a place in /info.
 */
#ifndef SP_SERVE_CONFIG_H
#define SP_SERVE_CONFIG_H

#include "common/buffer.h"
#include "common/cli.h"
#include "superpoint.h"

enum { CONFIG_DEFAULT_PORT = 20000, CONFIG_PORTS_TRIED = 101 };

typedef struct config_limits {
    double max_header_bytes, max_headers, max_target_bytes;
    double max_body_bytes, max_body_memory, max_pixels, max_frame_pixels, max_json_depth, max_json_values, max_parts,
        max_batch;
    double max_queue, max_connections;
    double header_timeout, body_timeout, request_timeout, engine_timeout, write_timeout, keep_alive_timeout;
    double linger_timeout, drain_timeout;
} config_limits;

typedef struct config {
    const char *host;
    int port; /* -1: the default or the next free one; 0: any free one */
    unsigned workers;
    const char *access_log; /* "-": standard output, "off", or a file */
    const char *token_file;
    const char *cors_origin; /* NULL: no CORS headers */
    const char *tls_certificate, *tls_key;
    const char *model_name;
    config_limits limits;
    buffer texts; /* what a configuration file gave, kept alive */
} config;

void config_default(config *c);
void config_free(config *c);

/* The options of `superpoint serve` for cli.h, ended by CLI_END; made from the table at the first call. */
const cli_option *config_options(void);

/* Set one option by its flag's name; "config" reads a file of `name = value` lines, where '#' begins a comment. */
sp_status config_set(config *c, sp_setup *setup, const char *name, const char *value, sp_error *err);

/* Whether what was set fits together. */
sp_status config_check(const config *c, sp_error *err);

/* One limit for /info: its name with underscores, its unit, its value. False behind the last. */
bool config_limit(const config *c, size_t index, const char **name, const char **unit, double *value);

#endif
