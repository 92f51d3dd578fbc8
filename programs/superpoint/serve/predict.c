/* From headers to a job: what kind of body, which parameters, what kind of answer. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "http.h"
#include "input.h"
#include "target.h"

/* The media type before any parameter, in lower case. */
static void media_type(const char *header, char *type, size_t size) {
    size_t length = 0;
    while (*header == ' ')
        header++;
    for (; *header && *header != ';' && *header != ',' && *header != ' ' && length + 1 < size; header++)
        type[length++] = (char)tolower((unsigned char)*header);
    type[length] = '\0';
}

static bool ends_with(const char *text, const char *end) {
    size_t length = strlen(text), tail = strlen(end);
    return length >= tail && strcmp(text + length - tail, end) == 0;
}

/* RFC 2046: 1...70 characters. */
static bool take_boundary(const char *header, char *boundary, size_t size) {
    const char *p = strcasestr(header, "boundary=");
    if (!p)
        return false;
    p += strlen("boundary=");
    bool quoted = *p == '"';
    size_t length = 0;
    for (p += quoted; *p && (quoted ? *p != '"' : *p != ';' && *p != ' '); p++) {
        if (length >= 70 || length + 1 >= size)
            return false;
        boundary[length++] = *p;
    }
    boundary[length] = '\0';
    return length > 0;
}

/* The kind of body that Content-Type announces; false for one that nothing here reads. */
static bool kind_of(request *r, job *j, const char **what) {
    const char *header = http_header(r, "Content-Type");
    char type[128] = "";
    *what = "Content-Type: give application/json, image/*, application/octet-stream or multipart/form-data";
    if (header)
        media_type(header, type, sizeof type);
    if (r->route->kind == BODY_KSERVE) {
        j->kind = BODY_KSERVE;
        return true;
    }
    if (strcmp(type, "application/json") == 0 || ends_with(type, "+json")) {
        j->kind = BODY_JSON;
    } else if (strncmp(type, "image/", 6) == 0) {
        j->kind = BODY_RAW;
    } else if (strcmp(type, "multipart/form-data") == 0) {
        j->kind = BODY_MULTIPART;
        *what = "Content-Type: multipart/form-data needs a boundary of 1 to 70 letters";
        return take_boundary(header, j->boundary, sizeof j->boundary);
    } else if (!*type || strcmp(type, "text/plain") == 0 || strcmp(type, "application/octet-stream") == 0 ||
               strcmp(type, "application/x-www-form-urlencoded") == 0) {
        j->kind = BODY_GUESS;
    } else {
        return false;
    }
    return true;
}

static double quality(const char *parameters, const char *end) {
    const char *q = strcasestr(parameters, "q=");
    return q && q < end ? strtod(q + 2, NULL) : 1.0;
}

/* NPZ when Accept names it with at least the weight of JSON. */
static bool accepts_npz(const char *accept) {
    double npz = -1, json = -1;
    while (accept && *accept) {
        const char *end = accept + strcspn(accept, ",");
        char type[128];
        media_type(accept, type, sizeof type);
        double q = quality(accept, end);
        if (strcmp(type, "application/x-npz") == 0)
            npz = q;
        else if (strcmp(type, "application/json") == 0)
            json = q;
        accept = *end ? end + 1 : end;
    }
    return npz > 0 && npz >= json;
}

static sp_status query_parameters(request *r, job *j, sp_error *err) {
    char *name, *value;
    bool wrong;
    while (target_next(&r->query, &name, &value, &wrong)) {
        sp_status status = input_parameter(j, name, value, err);
        if (status != SP_OK)
            return status;
    }
    if (wrong) {
        err->status = SP_ERR_ARGUMENT;
        snprintf(err->text, sizeof err->text, "query: a percent escape is cut or wrong");
        return err->status;
    }
    return SP_OK;
}

/* 413 or 411 from the length that is announced; 0 when it is fine. */
static int check_length(request *r, const char *length, const char **what) {
    if (!length && !http_header(r, "Transfer-Encoding"))
        return *what = "a body needs Content-Length or Transfer-Encoding: chunked", 411;
    if (length && strtod(length, NULL) > r->server->config.limits.max_body_bytes)
        return *what = "the body is larger than max_body_bytes", 413;
    return 0;
}

enum MHD_Result predict_begin(request *r) {
    const char *what, *encoding = http_header(r, "Content-Encoding"), *length = http_header(r, "Content-Length");
    char why[300];
    sp_error error;
    int status = check_length(r, length, &what);
    if (status) {
        r->connection->unread = true;
        return http_error(r, status, "%s, %.0f", what, r->server->config.limits.max_body_bytes);
    }
    if (encoding && strcasecmp(encoding, "identity") != 0)
        return http_error(r, 415, "Content-Encoding: %.40s is not read here; send the body as it is", encoding);
    if (pipeline_full(r->server->pipeline))
        return http_error(r, 503, "the queue is full");
    if (pipeline_stuck(r->server->pipeline, why, sizeof why))
        return http_error(r, 503, "%s", why);
    job *j = job_new();
    if (!j)
        return http_error(r, 503, "out of memory");
    r->job = j;
    j->server = r->server;
    j->params = r->server->defaults;
    j->want_npz = accepts_npz(http_header(r, "Accept"));
    if (!kind_of(r, j, &what))
        return http_error(r, 415, "%s", what);
    if (r->route->kind == BODY_KSERVE) {
        const char *header = http_header(r, "Inference-Header-Content-Length");
        if (header && (strspn(header, "0123456789") != strlen(header) || strlen(header) > 10 || atol(header) == 0))
            return http_error(r, 400, "Inference-Header-Content-Length: %.20s is not a length", header);
        j->kserve.header_bytes = header ? strtoul(header, NULL, 10) : 0;
    } else if (query_parameters(r, j, &error) != SP_OK) {
        return http_error(r, sp_status_http(error.status), "%s", error.text);
    }
    return MHD_YES;
}
