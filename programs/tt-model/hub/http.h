/*
 * http.h - one HTTP exchange over libcurl: to the Hub, to a storage server, or to Docker's socket.
 *
 * Redirects are not followed here: who follows them decides what may be sent to the next host.
 */
#ifndef TM_HTTP_H
#define TM_HTTP_H

#include "base/error.h"
#include "base/text.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Keeps connections alive between calls. One thread at a time. */
typedef struct tm_http_session tm_http_session;
tm_http_session *tm_http_session_new(void);
void tm_http_session_free(tm_http_session *s);

typedef struct tm_http_response {
    long status;
    tm_list headers;    /* "Name: value" */
    tm_buf body;        /* what no sink took */
    bool cut;           /* the connection ended before the body was whole */
    double retry_after; /* seconds that Retry-After asks to wait, as a number or as a date; 0: it does not */
} tm_http_response;

typedef struct tm_http_request {
    const char *method; /* NULL: GET */
    const char *url;
    const char *unix_socket; /* NULL: by the URL's host */
    const tm_list *headers;  /* may be NULL */

    /* The body: bytes, or `body_size` bytes that `read` gives (negative size: chunked, until it
     * returns 0; read returns -1 to give up). */
    const void *body;
    size_t body_len;
    long (*read)(void *arg, char *data, size_t n);
    void *read_arg;
    int64_t body_size;

    /* A successful answer's body goes to the sink when there is one. `begin` is called once before the
     * first byte, with status and headers there; false from either ends the exchange. */
    bool (*begin)(void *arg, const tm_http_response *r);
    bool (*sink)(void *arg, const char *data, size_t n);
    void *sink_arg;
    size_t max_body; /* of what no sink takes; 0: TM_HTTP_MAX_BODY */

    long timeout_s; /* for the whole exchange; 0: none, but a stalled connection ends after 60 s */
    bool patient;   /* not even a stalled connection ends it (following a log) */
    bool (*cancelled)(void *arg);
    void *cancel_arg;
} tm_http_request;

enum {
    TM_HTTP_MAX_BODY = 64 << 20,
    TM_HTTP_CONNECT_SECONDS = 10,
    TM_HTTP_STALL_SECONDS = 60,
};

/* TM_OK when an answer came, whatever its status (and even when it was cut: see `cut`). TM_OFFLINE
 * when nothing did, TM_INTERRUPTED when cancelled, TM_ERROR when begin or sink gave up. */
int tm_http(tm_http_session *s, const tm_http_request *q, tm_http_response *r, tm_error *e);
void tm_http_response_free(tm_http_response *r);

/* Value of a header (last one wins), or NULL. */
const char *tm_http_header(const tm_http_response *r, const char *name);

/* True when both URLs have the same scheme, host and port. */
bool tm_same_origin(const char *a, const char *b);
/* `location` as an absolute URL seen from `base`; NULL when it is neither http nor https. */
char *tm_resolve_url(const char *base, const char *location);
/* Percent-encode a path (keep_slash) or a query value. */
char *tm_url_escape(const char *s, bool keep_slash);

#endif
