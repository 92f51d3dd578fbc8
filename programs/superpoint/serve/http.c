#include "http.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "access_log.h"
#include "answer.h"
#include "common/clock.h"
#include "common/fail.h"
#include "message.h"
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
    if (r->ends)
        MHD_add_response_header(response, "Connection", "close");
}

static enum MHD_Result queue(request *r, int status, const char *type, struct MHD_Response *response, size_t size) {
    /* Behind a body that is not read, too: where the next request begins is not known then. */
    r->ends = r->ends || atomic_load(&r->server->draining) || message_ends_connection(r) ||
              (r->stage == REQUEST_NEW && message_has_body(r));
    if (r->ends)
        gate_set_last(r->connection);
    gate_set_phase(r->connection, PHASE_WRITE);
    if (!response) {
        r->status = 503;
        r->stage = REQUEST_ANSWERED;
        return MHD_queue_response(r->mhd, 503, r->server->no_memory);
    }
    r->status = status;
    r->sent_bytes = size;
    r->stage = REQUEST_ANSWERED;
    put_headers(r, response, type);
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

/* ---- a request's way --------------------------------------------------------------------------- */

static gate_connection *connection_of(struct MHD_Connection *mhd) {
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    return info ? info->socket_context : NULL;
}

/* The request line is there: the earliest that a request is heard of. */
void *http_on_target(void *context, const char *target, struct MHD_Connection *mhd) {
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
    gate_request_begun(c);
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

/* The status of a request that was answered past us, or not at all. */
static int status_elsewhere(const request *r) {
    int status = gate_status(r->connection);
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(r->mhd, MHD_CONNECTION_INFO_HTTP_STATUS);
    return status ? status : info ? (int)info->http_status : 499;
}

/*
 * The library gives a request up whose client has ended its sending side, when it happens to read that end before it
 * asks for the answer that is there. The socket still takes the answer.
 */
static void answer_past_library(request *r) {
    const job *j = r->job;
    char head[512], extra[64] = "";
    if (atomic_load(&j->outcome) != JOB_ANSWERED || j->answer.failed)
        return;
    if (j->kserve.answer_header_bytes)
        snprintf(extra, sizeof extra, "Inference-Header-Content-Length: %zu\r\n", j->kserve.answer_header_bytes);
    snprintf(
        head, sizeof head,
        "HTTP/1.1 %d %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\nX-Request-Id: %s\r\n%sConnection: close\r\n\r\n",
        j->status, MHD_get_reason_phrase_for((unsigned)j->status), j->content_type, j->answer.size, r->id, extra);
    if (gate_send(r->connection, head, j->answer.data, j->answer.size)) {
        r->status = j->status;
        r->sent_bytes = j->answer.size;
    }
}

void http_on_completed(void *context, struct MHD_Connection *mhd, void **state, enum MHD_RequestTerminationCode why) {
    server *s = context;
    request *r = *state;
    (void)mhd;
    *state = NULL;
    if (!r)
        return;
    if (r->stage == REQUEST_WAITING && why == MHD_REQUEST_TERMINATED_WITH_ERROR)
        answer_past_library(r);
    if (r->status == 0)
        r->status = status_elsewhere(r);
    gate_request_done(r->connection, r->head_bytes && !r->chunked ? r->head_bytes + r->body_bytes : 0);
    stats_request(&s->stats, route_index(r->route), r->status);
    atomic_fetch_add(&s->stats.bytes_in, r->body_bytes);
    atomic_fetch_add(&s->stats.bytes_out, r->sent_bytes);
    access_log(s, r->connection->peer, r->method[0] ? r->method : "-", r->target ? r->target : "-", r->status, r);
    request_free(r);
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
    message_take_id(r);
    int status = message_check(r, method, version, &what);
    if (status) {
        r->ends = true;
        return http_error(r, status, "%s", what);
    }
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

enum MHD_Result http_on_request(void *context, struct MHD_Connection *mhd, const char *url, const char *method,
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
