#include "config.h"

#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/fail.h"
#include "common/input.h"
#include "common/number.h"

typedef struct limit {
    const char *flag, *name, *unit;
    size_t offset;
    double value, minimum, maximum;
    const char *help;
} limit;

#define LIMIT(flag, field, unit, value, minimum, maximum, help)                                                        \
    { flag, #field, unit, offsetof(config_limits, field), value, minimum, maximum, help }
#define MIB 1048576.0
#define GIB 1073741824.0

static const limit limits[] = {
    LIMIT("max-header-bytes", max_header_bytes, "bytes", 32768, 1024, 131072,
          "request line and headers together (431)"),
    LIMIT("max-headers", max_headers, "headers", 100, 8, 1000, "headers of one request (431)"),
    LIMIT("max-target-bytes", max_target_bytes, "bytes", 8192, 256, 65536, "request target (414)"),
    LIMIT("max-body-bytes", max_body_bytes, "bytes", 32 * MIB, 1024, GIB, "body of one request (413)"),
    LIMIT("max-body-memory", max_body_memory, "bytes", 512 * MIB, 65536, 1024 * GIB, "bodies of all requests (503)"),
    LIMIT("max-pixels", max_pixels, "pixels", 64 * MIB, 1, 1024 * MIB, "decoded picture (413)"),
    LIMIT("max-frame-pixels", max_frame_pixels, "pixels", 8 * MIB, 64, 64 * MIB, "frame of the network (413)"),
    LIMIT("max-json-depth", max_json_depth, "levels", 16, 4, 512, "nesting of a JSON body (400)"),
    LIMIT("max-json-values", max_json_values, "values", 2097152, 1024, 16777216, "values in a JSON body (413)"),
    LIMIT("max-parts", max_parts, "parts", 64, 1, 1000, "parts of a multipart body (400)"),
    LIMIT("max-batch", max_batch, "pictures", 16, 1, 32, "pictures of one request (413)"),
    LIMIT("max-queue", max_queue, "requests", 64, 1, 100000, "requests admitted and not yet answered (503)"),
    LIMIT("max-connections", max_connections, "connections", 4096, 8, 100000, "open connections (503)"),
    LIMIT("header-timeout", header_timeout, "seconds", 15, 0.1, 3600, "until the headers are complete (408)"),
    LIMIT("body-timeout", body_timeout, "seconds", 60, 0.1, 3600, "until the body is complete (408)"),
    LIMIT("request-timeout", request_timeout, "seconds", 30, 0.05, 3600, "from the body to the answer (503)"),
    LIMIT("engine-timeout", engine_timeout, "seconds", 30, 0.05, 3600,
          "one frame, after which the engine counts as stuck"),
    LIMIT("write-timeout", write_timeout, "seconds", 60, 0.1, 3600, "until the client has taken the answer"),
    LIMIT("keep-alive-timeout", keep_alive_timeout, "seconds", 75, 0.1, 3600, "an idle connection"),
    LIMIT("linger-timeout", linger_timeout, "seconds", 2, 0, 60,
          "reading on after a refused body, so that the answer arrives"),
    LIMIT("drain-timeout", drain_timeout, "seconds", 30, 0, 3600, "finishing after SIGTERM"),
};
enum { LIMITS = sizeof limits / sizeof limits[0] };

static const cli_option plain[] = {
    {"host", "ADDRESS", "address to listen at (127.0.0.1; 0.0.0.0 or :: for all)", CLI_TAKE},
    {"port", "N", "exactly this port; 0: any free one (20000, or the next free one of 100)", CLI_TAKE},
    {"config", "FILE", "options from a file of `name = value` lines", CLI_TAKE},
    {"model-name", "NAME", "id in /v1/models (superpoint)", CLI_TAKE},
    {"workers", "N", "threads that decode and encode (one for each CPU, at least 2)", CLI_TAKE},
    {"token-file", "FILE", "demand `Authorization: Bearer` with one of the tokens in FILE, one a line", CLI_TAKE},
    {"cors", "ORIGIN", "let pages of ORIGIN (or \"*\") call the service", CLI_TAKE},
    {"tls-certificate", "FILE", "serve HTTPS with this PEM certificate chain", CLI_TAKE},
    {"tls-key", "FILE", "its PEM key", CLI_TAKE},
    {"access-log", "FILE", "one JSON line a request; \"-\": standard output, \"off\" (-)", CLI_TAKE},
};
enum { PLAIN = sizeof plain / sizeof plain[0] };

void config_default(config *c) {
    *c = (config){.host = "127.0.0.1", .port = -1, .access_log = "-", .model_name = "superpoint"};
    for (size_t i = 0; i < LIMITS; i++)
        *(double *)((char *)&c->limits + limits[i].offset) = limits[i].value;
}

void config_free(config *c) {
    buffer_free(&c->texts);
}

const cli_option *config_options(void) {
    static cli_option all[PLAIN + LIMITS + 1];
    static char helps[LIMITS][128];
    if (all[0].name)
        return all;
    memcpy(all, plain, sizeof plain);
    for (size_t i = 0; i < LIMITS; i++) {
        snprintf(helps[i], sizeof helps[i], "%s (%.10g %s)", limits[i].help, limits[i].value, limits[i].unit);
        all[PLAIN + i] = (cli_option){limits[i].flag, "N", helps[i], CLI_TAKE};
    }
    return all;
}

static sp_status read_file(config *c, sp_setup *setup, const char *path, sp_error *err);

sp_status config_set(config *c, sp_setup *setup, const char *name, const char *value, sp_error *err) {
    for (size_t i = 0; i < LIMITS; i++)
        if (strcmp(name, limits[i].flag) == 0) {
            double *field = (double *)((char *)&c->limits + limits[i].offset);
            return number_real(name, value, limits[i].minimum, limits[i].maximum, field, err);
        }
    const struct {
        const char *name;
        const char **field;
    } texts[] = {{"host", &c->host},
                 {"model-name", &c->model_name},
                 {"token-file", &c->token_file},
                 {"cors", &c->cors_origin},
                 {"tls-certificate", &c->tls_certificate},
                 {"tls-key", &c->tls_key},
                 {"access-log", &c->access_log}};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        if (strcmp(name, texts[i].name) == 0) {
            *texts[i].field = value;
            return SP_OK;
        }
    if (strcmp(name, "port") == 0) {
        int64_t port = c->port;
        sp_status status = number_whole(name, value, 0, 65535, &port, err);
        c->port = (int)port;
        return status;
    }
    if (strcmp(name, "workers") == 0) {
        int64_t workers = c->workers;
        sp_status status = number_whole(name, value, 0, 256, &workers, err);
        c->workers = (unsigned)workers;
        return status;
    }
    if (strcmp(name, "config") == 0)
        return read_file(c, setup, value, err);
    return fail(err, SP_ERR_ARGUMENT, "%s: there is no such option", name);
}

static char *trim(char *text) {
    while (isspace((unsigned char)*text))
        text++;
    char *end = text + strlen(text);
    while (end > text && isspace((unsigned char)end[-1]))
        *--end = '\0';
    return text;
}

static bool is_setup_option(const char *name) {
    for (const cli_option *o = sp_setup_options; o->name; o++)
        if (strcmp(o->name, name) == 0)
            return true;
    return false;
}

/* One line, which stays in memory since settings point into it. */
static sp_status read_line(config *c, sp_setup *setup, char *line, sp_error *err) {
    char *hash = strchr(line, '#');
    if (hash)
        *hash = '\0';
    line = trim(line);
    if (!*line)
        return SP_OK;
    char *equals = strchr(line, '=');
    if (!equals)
        return fail(err, SP_ERR_ARGUMENT, "\"%.60s\" is not `name = value`", line);
    *equals = '\0';
    char *name = trim(line), *value = trim(equals + 1);
    for (char *p = name; *p; p++)
        if (*p == '_')
            *p = '-';
    if (strcmp(name, "config") == 0)
        return fail(err, SP_ERR_ARGUMENT, "config: a configuration file cannot name another");
    return is_setup_option(name) ? sp_setup_set(setup, name, value, err) : config_set(c, setup, name, value, err);
}

static sp_status read_file(config *c, sp_setup *setup, const char *path, sp_error *err) {
    void *bytes;
    size_t size;
    if (c->texts.size)
        return fail(err, SP_ERR_ARGUMENT, "config: given twice");
    sp_status status = sp_input_read(path, 1 << 20, &bytes, &size, err);
    if (status != SP_OK)
        return status;
    buffer_put(&c->texts, bytes, size);
    buffer_char(&c->texts, '\0');
    free(bytes);
    if (c->texts.failed)
        return fail(err, SP_ERR_MEMORY, "config: out of memory");
    unsigned number_of_line = 1;
    for (char *line = (char *)c->texts.data; line; number_of_line++) {
        char *end = strchr(line, '\n');
        if (end)
            *end++ = '\0';
        sp_error inner;
        status = read_line(c, setup, line, &inner);
        if (status != SP_OK)
            return fail(err, status, "%s: line %u: %.400s", path, number_of_line, inner.text);
        line = end;
    }
    return SP_OK;
}

sp_status config_check(const config *c, sp_error *err) {
    if (!c->tls_certificate != !c->tls_key)
        return fail(err, SP_ERR_ARGUMENT, "tls-certificate and tls-key must be given together");
    if (c->limits.max_target_bytes >= c->limits.max_header_bytes)
        return fail(err, SP_ERR_ARGUMENT, "max-target-bytes must be less than max-header-bytes");
    if (c->limits.max_body_bytes > c->limits.max_body_memory)
        return fail(err, SP_ERR_ARGUMENT, "max-body-bytes must not be more than max-body-memory");
    return SP_OK;
}

bool config_limit(const config *c, size_t index, const char **name, const char **unit, double *value) {
    if (index >= LIMITS)
        return false;
    *name = limits[index].name;
    *unit = limits[index].unit;
    *value = *(const double *)((const char *)&c->limits + limits[index].offset);
    return true;
}
