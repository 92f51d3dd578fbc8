#include "http.h"

#include <ctype.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>

#include "answer.h"
#include "clock.h"
#include "common/fail.h"
#include "common/input.h"
#include "common/jsonout.h"
#include "target.h"

/* ---- answers ----------------------------------------------------------------------------------- */

const char *http_header(request *r, const char *name) {
    return MHD_lookup_connection_value(r->mhd, MHD_HEADER_KIND, name);
}

static void put_headers(request *r, struct MHD_Response *response, const char *type) {
    const server *s = r->server;
    char seconds[16];
    if (type)
        MHD_add_response_header(response, "Content-Type", type);
    MHD_add_response_header(response, "X-Request-Id", r->id);
    MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
    MHD_add_response_header(response, "Cache-Control", "no-store");
    if (type && strncmp(type, "text/html", 9) == 0)
        MHD_add_response_header(response, "Content-Security-Policy",
                                "default-src 'self'; img-src 'self' blob: data:; object-src 'none'; base-uri 'none'; "
                                "frame-ancestors 'self'; form-action 'none'");
    if (s->config.cors_origin) {
        MHD_add_response_header(response, "Access-Control-Allow-Origin", s->config.cors_origin);
        MHD_add_response_header(response, "Access-Control-Expose-Headers", "X-Request-Id, Retry-After");
        if (strcmp(s->config.cors_origin, "*") != 0)
            MHD_add_response_header(response, "Vary", "Origin");
    }
    if (r->status == 503 || r->status == 429) {
        snprintf(seconds, sizeof seconds, "%u", r->retry_s ? r->retry_s : 1);
        MHD_add_response_header(response, "Retry-After", seconds);
    }
    if (r->status == 401)
        MHD_add_response_header(response, "WWW-Authenticate", "Bearer");
    if (r->status == 405 || strcmp(r->method, "OPTIONS") == 0)
        MHD_add_response_header(response, "Allow", r->route->methods);
    if (strcmp(r->method, "OPTIONS") == 0 && s->config.cors_origin) {
        MHD_add_response_header(response, "Access-Control-Allow-Methods", r->route->methods);
        MHD_add_response_header(response, "Access-Control-Allow-Headers", "Authorization, Content-Type, X-Request-Id");
        MHD_add_response_header(response, "Access-Control-Max-Age", "600");
    }
    if (atomic_load(&s->draining) || r->http_1_0)
        MHD_add_response_header(response, "Connection", "close");
}

static enum MHD_Result queue(request *r, int status, const char *type, struct MHD_Response *response, size_t size) {
    if (!response) {
        r->status = 503;
        r->stage = REQUEST_ANSWERED;
        return MHD_queue_response(r->mhd, 503, r->server->no_memory);
    }
    r->status = status;
    r->sent_bytes = size;
    r->stage = REQUEST_ANSWERED;
    put_headers(r, response, type);
    gate_set_phase(r->connection, PHASE_WRITE);
    enum MHD_Result result = MHD_queue_response(r->mhd, (unsigned)status, response);
    MHD_destroy_response(response);
    return result;
}

enum MHD_Result http_answer_static(request *r, int status, const char *type, const void *bytes, size_t size) {
    struct MHD_Response *response =
        MHD_create_response_from_buffer(size, (void *)(uintptr_t)bytes, MHD_RESPMEM_PERSISTENT);
    return queue(r, status, type, response, size);
}

enum MHD_Result http_answer(request *r, int status, const char *type, buffer *body) {
    struct MHD_Response *response = NULL;
    size_t size = body->size;
    if (!body->failed)
        response = MHD_create_response_from_buffer(size, body->data, MHD_RESPMEM_MUST_FREE);
    if (response)
        *body = (buffer){0};
    buffer_free(body);
    return queue(r, status, type, response, size);
}

enum MHD_Result http_error(request *r, int status, const char *format, ...) {
    char text[600];
    buffer body = {0};
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    answer_put_error(&body, r->route->kind == BODY_KSERVE, text);
    return http_answer(r, status, "application/json", &body);
}

/* ---- the access log ---------------------------------------------------------------------------- */

static void log_request(server *s, const char *peer, const char *method, const char *target, int status,
                        const request *r) {
    char room[1024], when[40];
    struct timespec now;
    struct tm utc;
    buffer line = {(uint8_t *)room, 0, 0, false};
    if (!s->log)
        return;
    line = (buffer){0};
    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &utc);
    strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%S", &utc);
    buffer_format(&line, "{\"time\": \"%s.%03ldZ\", \"remote\": \"%s\", \"method\": ", when, now.tv_nsec / 1000000,
                  peer);
    json_put_string(&line, method);
    buffer_text(&line, ", \"target\": ");
    json_put_string_n(&line, target, strnlen(target, 256));
    buffer_format(&line, ", \"status\": %d", status);
    if (r) {
        buffer_format(&line, ", \"bytes_in\": %zu, \"bytes_out\": %zu, \"ms\": %.3f, \"id\": ", r->body_bytes,
                      r->sent_bytes, now_ms() - r->started_ms);
        json_put_string(&line, r->id);
    }
    buffer_text(&line, "}\n");
    if (!line.failed)
        log_write(s->log, (char *)line.data, line.size);
    buffer_free(&line);
}

void http_log_malformed(server *s, const char *peer) {
    stats_request(&s->stats, route_index(route_find("")), 400);
    log_request(s, peer, "-", "-", 400, NULL);
}

/* ---- a request's way --------------------------------------------------------------------------- */

static gate_connection *connection_of(struct MHD_Connection *mhd) {
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    return info ? info->socket_context : NULL;
}

/* The request line is there: the earliest that a request is heard of. */
static void *on_target(void *context, const char *target, struct MHD_Connection *mhd) {
    gate_connection *c = connection_of(mhd);
    if (!c)
        return NULL;
    request *r = calloc(1, sizeof *r);
    if (!r)
        return NULL;
    r->server = context;
    r->connection = c;
    r->mhd = mhd;
    r->started_ms = now_ms();
    r->target = strdup(target ? target : "");
    r->path_memory = strdup(target ? target : "");
    r->route = route_find("");
    atomic_fetch_add(&r->server->active, 1);
    return r;
}

static void request_free(request *r) {
    atomic_fetch_sub(&r->server->body_bytes, r->body_bytes);
    atomic_fetch_sub(&r->server->active, 1);
    job_release(r->job);
    free(r->target);
    free(r->path_memory);
    free(r);
}

static void on_completed(void *context, struct MHD_Connection *mhd, void **state, enum MHD_RequestTerminationCode why) {
    server *s = context;
    request *r = *state;
    (void)mhd;
    *state = NULL;
    if (!r)
        return;
    gate_request_done(r->connection);
    if (r->status == 0 && why != MHD_REQUEST_TERMINATED_COMPLETED_OK)
        r->status = gate_is_answered(r->connection) ? 408 : 499;
    stats_request(&s->stats, route_index(r->route), r->status);
    atomic_fetch_add(&s->stats.bytes_in, r->body_bytes);
    atomic_fetch_add(&s->stats.bytes_out, r->sent_bytes);
    log_request(s, r->connection->peer, r->method[0] ? r->method : "-", r->target ? r->target : "-", r->status, r);
    request_free(r);
}

static void on_connection(void *context, struct MHD_Connection *mhd, void **socket_context,
                          enum MHD_ConnectionNotificationCode what) {
    server *s = context;
    if (what == MHD_CONNECTION_NOTIFY_STARTED) {
        const union MHD_ConnectionInfo *info = MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CONNECTION_FD);
        *socket_context = gate_opened(s->gate, info->connect_fd, s->config.tls_certificate != NULL);
    } else if (*socket_context) {
        gate_closed(*socket_context);
        *socket_context = NULL;
    }
}

/* ---- headers ----------------------------------------------------------------------------------- */

typedef struct header_count {
    unsigned all, content_length, transfer_encoding, host;
    bool bad_name, bad_value;
} header_count;

/* RFC 9110's token. */
static bool is_token(const char *text) {
    if (!*text)
        return false;
    for (; *text; text++)
        if (!isalnum((unsigned char)*text) && !strchr("!#$%&'*+-.^_`|~", *text))
            return false;
    return true;
}

static enum MHD_Result count_header(void *context, enum MHD_ValueKind kind, const char *name, const char *value) {
    header_count *n = context;
    (void)kind;
    n->all++;
    n->content_length += strcasecmp(name, "Content-Length") == 0;
    n->transfer_encoding += strcasecmp(name, "Transfer-Encoding") == 0;
    n->host += strcasecmp(name, "Host") == 0;
    n->bad_name |= !is_token(name);
    for (const unsigned char *p = (const unsigned char *)value; p && *p; p++)
        n->bad_value |= (*p < 0x20 && *p != '\t') || *p == 0x7f;
    return MHD_YES;
}

static void take_id(request *r) {
    const char *given = http_header(r, "X-Request-Id");
    size_t length = given ? strlen(given) : 0;
    bool usable = length > 0 && length < sizeof r->id;
    for (size_t i = 0; usable && i < length; i++)
        usable = isalnum((unsigned char)given[i]) || strchr("-_.:/+=", given[i]);
    if (usable) {
        memcpy(r->id, given, length + 1);
        return;
    }
    uint64_t random = 0;
    if (getrandom(&random, sizeof random, GRND_NONBLOCK) != sizeof random)
        random = (uint64_t)(uintptr_t)r ^ (uint64_t)(now_ms() * 1e6);
    snprintf(r->id, sizeof r->id, "%016llx", (unsigned long long)random);
}

/* What is wrong with the request as HTTP: its status, or 0. */
static int check_message(request *r, const char *version, const char **what) {
    const config_limits *l = &r->server->config.limits;
    header_count n = {0};
    MHD_get_connection_values(r->mhd, MHD_HEADER_KIND, count_header, &n);
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(r->mhd, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
    const char *coding = http_header(r, "Transfer-Encoding"), *expect = http_header(r, "Expect");
    if ((double)strlen(r->target) > l->max_target_bytes)
        return *what = "the request target is longer than max_target_bytes", 414;
    if (info && (double)info->header_size > l->max_header_bytes)
        return *what = "the headers are longer than max_header_bytes", 431;
    if ((double)n.all > l->max_headers)
        return *what = "there are more headers than max_headers", 431;
    if (n.bad_name)
        return *what = "a header's name holds what a name cannot hold", 400;
    if (n.bad_value)
        return *what = "a header's value holds a control character", 400;
    if (n.content_length > 1 || n.transfer_encoding > 1)
        return *what = "Content-Length or Transfer-Encoding is given twice", 400;
    if (n.content_length && n.transfer_encoding)
        return *what = "Content-Length and Transfer-Encoding contradict each other", 400;
    if (coding && (r->http_1_0 || strcasecmp(coding, "chunked") != 0))
        return *what = "Transfer-Encoding must be chunked, in HTTP/1.1", 400;
    if (n.host > 1 || (n.host == 0 && !r->http_1_0 && strcmp(version, "HTTP/1.1") == 0))
        return *what = "there must be one Host header", 400;
    if (expect && !r->http_1_0 && strcasecmp(expect, "100-continue") != 0)
        return *what = "Expect: only 100-continue is known", 417;
    return 0;
}

static bool method_allowed(const route *at, const char *method) {
    const char *found = strstr(at->methods, method);
    size_t length = strlen(method);
    return found && length > 0 && (found[length] == ',' || found[length] == '\0') &&
           (found == at->methods || found[-1] == ' ');
}

/* First call for a request: its headers are there, its body is not. */
static enum MHD_Result begin(request *r, const char *method, const char *version) {
    const char *what = NULL;
    if (!r->target || !r->path_memory)
        return queue(r, 503, NULL, NULL, 0);
    snprintf(r->method, sizeof r->method, "%s", method);
    r->http_1_0 = strcmp(version, "HTTP/1.0") == 0;
    take_id(r);
    int status = check_message(r, version, &what);
    if (status)
        return http_error(r, status, "%s", what);
    if (!target_split(r->path_memory, &r->path, &r->query))
        return http_error(r, 400, "the request target is not a path");
    r->route = route_find(r->path);
    if (!r->route->path)
        return http_error(r, 404, "there is nothing at %.200s; GET /openapi.json lists what there is", r->path);
    if (strlen(method) >= sizeof r->method || !method_allowed(r->route, r->method))
        return http_error(r, 405, "%.16s is not allowed at %s: %s", method, r->route->path, r->route->methods);
    if (strcmp(r->method, "OPTIONS") == 0)
        return http_answer_static(r, 204, NULL, "", 0);
    if (!r->route->always && !atomic_load(&r->server->ready))
        return http_error(r, 503, "starting");
    if (!r->route->open && !tokens_allow(&r->server->tokens, http_header(r, "Authorization")))
        return http_error(r, 401, "a bearer token is needed");
    if (r->route->answer == NULL && predict_begin(r) == MHD_NO)
        return MHD_NO;
    if (r->stage == REQUEST_NEW) {
        r->stage = REQUEST_READING;
        gate_set_phase(r->connection, PHASE_BODY);
    }
    return MHD_YES;
}

/* ---- bodies ------------------------------------------------------------------------------------ */

/* In the middle of a body the library takes no answer: it is sent past it, and the connection closed. */
static enum MHD_Result refuse_body(request *r, int status, const char *text) {
    gate_answer_now(r->connection, status, text);
    r->status = status;
    r->stage = REQUEST_ANSWERED;
    return MHD_NO;
}

static enum MHD_Result take_body(request *r, const char *bytes, size_t size) {
    server *s = r->server;
    if ((double)r->body_bytes + (double)size > s->config.limits.max_body_bytes)
        return refuse_body(r, 413, "the body is larger than max_body_bytes");
    size_t held = atomic_fetch_add(&s->body_bytes, size) + size;
    r->body_bytes += size;
    if ((double)held > s->config.limits.max_body_memory)
        return refuse_body(r, 503, "the bodies of all requests are larger than max_body_memory");
    if (!r->job)
        return MHD_YES; /* a GET with a body: counted and thrown away */
    buffer_put(&r->job->body, bytes, size);
    return r->job->body.failed ? refuse_body(r, 503, "out of memory") : MHD_YES;
}

/* ---- the pipeline ------------------------------------------------------------------------------ */

/* From any thread: the job has come to its end. */
static void on_done(void *context) {
    request *r = context;
    MHD_resume_connection(r->mhd);
}

static enum MHD_Result submit(request *r) {
    job *j = r->job;
    j->received_ms = now_ms();
    j->done = on_done;
    j->context = r;
    j->fd = r->connection->fd;
    gate_set_phase(r->connection, PHASE_WORK);
    r->stage = REQUEST_WAITING;
    /* Suspended before it is handed over: the answer may be there before this function returns. */
    MHD_suspend_connection(r->mhd);
    static const char *const reasons[] = {[REFUSED_FULL] = "the queue is full",
                                          [REFUSED_LATE] = "the queue is too long for this request's deadline",
                                          [REFUSED_STUCK] = "the engine does not answer"};
    unsigned retry_s = 1;
    admission result = pipeline_submit(r->server->pipeline, j, &retry_s);
    if (result != ADMITTED) {
        r->retry_s = retry_s;
        r->stage = REQUEST_REFUSED;
        fail(&r->error, SP_ERR_UNAVAILABLE, "%s", reasons[result]);
        MHD_resume_connection(r->mhd);
    }
    return MHD_YES;
}

static void release_job(void *context) {
    job_release(context);
}

/* The job's own buffer is what is sent; the answer holds the job until then. */
static enum MHD_Result answer_job(request *r) {
    job *j = r->job;
    struct MHD_Response *response = NULL;
    if (!j->answer.failed) {
        response =
            MHD_create_response_from_buffer_with_free_callback_cls(j->answer.size, j->answer.data, release_job, j);
        if (response) {
            r->job = NULL;
            char length[24];
            snprintf(length, sizeof length, "%zu", j->kserve.answer_header_bytes);
            if (j->kserve.answer_header_bytes)
                MHD_add_response_header(response, "Inference-Header-Content-Length", length);
        }
    }
    return queue(r, j->status, j->content_type, response, j->answer.size);
}

static enum MHD_Result after_job(request *r) {
    if (r->stage == REQUEST_REFUSED)
        return http_error(r, 503, "%s", r->error.text);
    switch (atomic_load(&r->job->outcome)) {
    case JOB_ANSWERED:
        return answer_job(r);
    case JOB_GONE:
        r->status = 499;
        gate_set_answered(r->connection);
        return MHD_NO;
    case JOB_EXPIRED:
        return http_error(r, 503, "not served within request_timeout, %g s", r->server->config.limits.request_timeout);
    default:
        return MHD_YES; /* still pending: called for another reason */
    }
}

static enum MHD_Result on_request(void *context, struct MHD_Connection *mhd, const char *url, const char *method,
                                  const char *version, const char *upload, size_t *upload_size, void **state) {
    server *s = context;
    request *r = *state;
    (void)url;
    if (!r) {
        if (*upload_size) {
            *upload_size = 0;
            return MHD_YES;
        }
        return MHD_queue_response(mhd, 503, s->no_memory);
    }
    switch (r->stage) {
    case REQUEST_NEW:
        return begin(r, method, version);
    case REQUEST_READING:
        if (*upload_size) {
            size_t size = *upload_size;
            *upload_size = 0;
            return take_body(r, upload, size);
        }
        return r->job ? submit(r) : r->route->answer(r);
    case REQUEST_WAITING:
    case REQUEST_REFUSED:
        return after_job(r);
    default:
        *upload_size = 0;
        return MHD_YES;
    }
}

/* ---- the daemon -------------------------------------------------------------------------------- */

static void quiet(void *context, const char *format, va_list args) {
    (void)context;
    (void)format;
    (void)args;
}

/* The library would unescape targets in its own way; target.c does it. */
static size_t leave_escaped(void *context, struct MHD_Connection *mhd, char *text) {
    (void)context;
    (void)mhd;
    return strlen(text);
}

static sp_status read_pem(const char *path, char **text, sp_error *err) {
    void *bytes;
    size_t size;
    sp_status status = sp_input_read(path, 1 << 20, &bytes, &size, err);
    *text = NULL;
    if (status != SP_OK)
        return status;
    *text = realloc(bytes, size + 1);
    if (!*text) {
        free(bytes);
        return fail(err, SP_ERR_MEMORY, "%s: out of memory", path);
    }
    (*text)[size] = '\0';
    return SP_OK;
}

static bool prepare_no_memory(server *s) {
    static const char text[] = "{\"detail\": \"out of memory\"}\n";
    s->no_memory = MHD_create_response_from_buffer(sizeof text - 1, (void *)(uintptr_t)text, MHD_RESPMEM_PERSISTENT);
    return s->no_memory && MHD_add_response_header(s->no_memory, "Content-Type", "application/json") == MHD_YES &&
           MHD_add_response_header(s->no_memory, "Retry-After", "1") == MHD_YES;
}

sp_status http_start(server *s, sp_error *err) {
    static char priorities[] = "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2";
    char *certificate = NULL, *key = NULL;
    sp_status status = SP_OK;
    if (s->config.tls_certificate) {
        status = read_pem(s->config.tls_certificate, &certificate, err);
        if (status == SP_OK)
            status = read_pem(s->config.tls_key, &key, err);
    }
    if (status == SP_OK && !prepare_no_memory(s))
        status = fail(err, SP_ERR_MEMORY, "out of memory");
    if (status == SP_OK) {
        /* The library's own limit of connections must never be reached: 0.9.75 then returns with its lock
         * held. The gate counts. */
        const unsigned never = INT_MAX;
        /* Room for the headers, the parsed form of the longest of them, and a piece of the body. */
        size_t memory = (size_t)s->config.limits.max_header_bytes * 2 + 65536;
        struct MHD_OptionItem tls[] = {{MHD_OPTION_HTTPS_MEM_CERT, 0, certificate},
                                       {MHD_OPTION_HTTPS_MEM_KEY, 0, key},
                                       {MHD_OPTION_HTTPS_PRIORITIES, 0, priorities},
                                       {MHD_OPTION_END, 0, NULL}};
        struct MHD_OptionItem none[] = {{MHD_OPTION_END, 0, NULL}};
        unsigned flags = MHD_USE_EPOLL_INTERNAL_THREAD | MHD_USE_ITC | MHD_USE_NO_LISTEN_SOCKET |
                         MHD_ALLOW_SUSPEND_RESUME | MHD_USE_TURBO | MHD_USE_ERROR_LOG |
                         (certificate ? MHD_USE_TLS : 0u);
        s->daemon = MHD_start_daemon(
            flags, 0, NULL, NULL, on_request, s, MHD_OPTION_EXTERNAL_LOGGER, quiet, NULL, MHD_OPTION_URI_LOG_CALLBACK,
            on_target, s, MHD_OPTION_NOTIFY_COMPLETED, on_completed, s, MHD_OPTION_NOTIFY_CONNECTION, on_connection, s,
            MHD_OPTION_UNESCAPE_CALLBACK, leave_escaped, NULL, MHD_OPTION_CONNECTION_MEMORY_LIMIT, memory,
            MHD_OPTION_CONNECTION_LIMIT, never, MHD_OPTION_ARRAY, certificate ? tls : none, MHD_OPTION_END);
        if (!s->daemon)
            status = fail(err, SP_ERR_IO,
                          certificate ? "cannot start HTTPS: the certificate or its key may be wrong"
                                      : "cannot start the HTTP library");
    }
    free(certificate);
    free(key);
    return status;
}

void http_add(server *s, int fd, const struct sockaddr *address, socklen_t size) {
    MHD_add_connection(s->daemon, fd, address, size);
}
