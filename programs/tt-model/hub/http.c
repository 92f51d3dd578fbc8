#include "http.h"

#include <curl/curl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define USER_AGENT "tt-model/" TM_VERSION " libcurl/" LIBCURL_VERSION

enum { MAX_HEADERS = 256 };

struct tm_http_session {
    CURL *curl;
};

typedef struct exchange {
    const tm_http_request *q;
    tm_http_response *r;
    bool begun, refused, too_large;
} exchange;

static pthread_once_t curl_once = PTHREAD_ONCE_INIT;

static void curl_start(void) {
    curl_global_init(CURL_GLOBAL_DEFAULT);
}

tm_http_session *tm_http_session_new(void) {
    pthread_once(&curl_once, curl_start);
    tm_http_session *s = tm_alloc(sizeof *s);
    s->curl = curl_easy_init();
    if (!s->curl) {
        fputs("tt-model: libcurl does not start\n", stderr);
        exit(TM_ERROR);
    }
    return s;
}

void tm_http_session_free(tm_http_session *s) {
    if (s)
        curl_easy_cleanup(s->curl);
    free(s);
}

static size_t on_header(char *data, size_t size, size_t count, void *arg) {
    exchange *x = arg;
    size_t n = size * count, len = n;
    while (len && (data[len - 1] == '\r' || data[len - 1] == '\n'))
        len--;
    if (len >= 5 && !strncmp(data, "HTTP/", 5)) { /* 100 Continue, or the answer of a proxy, came before */
        tm_list_free(&x->r->headers);
        const char *space = memchr(data, ' ', len);
        x->r->status = space ? strtol(space + 1, NULL, 10) : 0;
    } else if (len && x->r->headers.count < MAX_HEADERS) {
        tm_list_take(&x->r->headers, tm_strndup(data, len));
    }
    return n;
}

static size_t on_body(char *data, size_t size, size_t count, void *arg) {
    exchange *x = arg;
    size_t n = size * count;
    if (x->q->sink && x->r->status >= 200 && x->r->status < 300) {
        if (!x->begun && x->q->begin && !x->q->begin(x->q->sink_arg, x->r)) {
            x->refused = true;
            return 0;
        }
        x->begun = true;
        if (!x->q->sink(x->q->sink_arg, data, n)) {
            x->refused = true;
            return 0;
        }
        return n;
    }
    size_t limit = x->q->max_body ? x->q->max_body : TM_HTTP_MAX_BODY;
    if (n > limit - x->r->body.len) {
        x->too_large = true;
        return 0;
    }
    tm_buf_add(&x->r->body, data, n);
    return n;
}

static size_t on_read(char *data, size_t size, size_t count, void *arg) {
    exchange *x = arg;
    long n = x->q->read(x->q->read_arg, data, size * count);
    return n < 0 ? CURL_READFUNC_ABORT : (size_t)n;
}

static int on_progress(void *arg, curl_off_t dt, curl_off_t dn, curl_off_t ut, curl_off_t un) {
    const exchange *x = arg;
    (void)dt, (void)dn, (void)ut, (void)un;
    return x->q->cancelled && x->q->cancelled(x->q->cancel_arg);
}

static struct curl_slist *header_list(const tm_http_request *q) {
    struct curl_slist *list = NULL;
    for (size_t i = 0; q->headers && i < q->headers->count; i++)
        list = curl_slist_append(list, q->headers->items[i]);
    return curl_slist_append(list, "Expect:"); /* do not wait for 100 Continue */
}

static void set_body(CURL *c, const tm_http_request *q, exchange *x) {
    const char *method = q->method ? q->method : "GET";
    if (q->read) {
        curl_easy_setopt(c, CURLOPT_UPLOAD, 1L);
        curl_easy_setopt(c, CURLOPT_READFUNCTION, on_read);
        curl_easy_setopt(c, CURLOPT_READDATA, x);
        if (q->body_size >= 0)
            curl_easy_setopt(c, CURLOPT_INFILESIZE_LARGE, (curl_off_t)q->body_size);
    } else if (q->body || !strcmp(method, "POST")) {
        curl_easy_setopt(c, CURLOPT_POST, 1L);
        curl_easy_setopt(c, CURLOPT_POSTFIELDS, q->body ? q->body : "");
        curl_easy_setopt(c, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)q->body_len);
    } else if (!strcmp(method, "HEAD")) {
        curl_easy_setopt(c, CURLOPT_NOBODY, 1L);
    }
    curl_easy_setopt(c, CURLOPT_CUSTOMREQUEST, method);
}

static int outcome(CURLcode code, const char *detail, const exchange *x, tm_error *e) {
    const tm_http_request *q = x->q;
    if (code == CURLE_OK)
        return TM_OK;
    if (code == CURLE_ABORTED_BY_CALLBACK && q->cancelled && q->cancelled(q->cancel_arg))
        return tm_fail(e, TM_INTERRUPTED, "interrupted");
    if (x->too_large)
        return tm_fail(e, TM_ERROR, "the answer of %s is larger than the %zu bytes that are read", q->url,
                       q->max_body ? q->max_body : (size_t)TM_HTTP_MAX_BODY);
    if (x->refused)
        return e && e->code ? e->code : tm_fail(e, TM_ERROR, "the answer of %s was refused", q->url);
    if (code == CURLE_ABORTED_BY_CALLBACK)
        return tm_fail(e, TM_ERROR, "the request to %s was given up", q->url);
    const char *why = *detail ? detail : curl_easy_strerror(code);
    if (code == CURLE_PEER_FAILED_VERIFICATION || code == CURLE_SSL_CACERT_BADFILE) {
        tm_fail(e, TM_CONFIG, "the certificate of %s is not trusted", q->url);
        tm_why(e, "%s", why);
        return TM_CONFIG;
    }
    tm_fail(e, TM_OFFLINE, "cannot reach %s", q->unix_socket ? q->unix_socket : q->url);
    tm_why(e, "%s", why);
    return TM_OFFLINE;
}

int tm_http(tm_http_session *s, const tm_http_request *q, tm_http_response *r, tm_error *e) {
    *r = (tm_http_response){0};
    tm_http_session *own = s ? NULL : tm_http_session_new();
    CURL *c = (s ? s : own)->curl;
    exchange x = {.q = q, .r = r};
    char detail[CURL_ERROR_SIZE] = "";
    struct curl_slist *headers = header_list(q);
    if (e)
        e->code = 0;

    curl_easy_reset(c);
    curl_easy_setopt(c, CURLOPT_URL, q->url);
    curl_easy_setopt(c, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(c, CURLOPT_USERAGENT, USER_AGENT);
    curl_easy_setopt(c, CURLOPT_ERRORBUFFER, detail);
    curl_easy_setopt(c, CURLOPT_HTTPHEADER, headers);
    curl_easy_setopt(c, CURLOPT_HEADERFUNCTION, on_header);
    curl_easy_setopt(c, CURLOPT_HEADERDATA, &x);
    curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, on_body);
    curl_easy_setopt(c, CURLOPT_WRITEDATA, &x);
    curl_easy_setopt(c, CURLOPT_CONNECTTIMEOUT, (long)TM_HTTP_CONNECT_SECONDS);
    curl_easy_setopt(c, CURLOPT_TIMEOUT, q->timeout_s);
    if (!q->patient) {
        curl_easy_setopt(c, CURLOPT_LOW_SPEED_LIMIT, 1L);
        curl_easy_setopt(c, CURLOPT_LOW_SPEED_TIME, (long)TM_HTTP_STALL_SECONDS);
    }
    curl_easy_setopt(c, CURLOPT_NOPROGRESS, 0L);
    curl_easy_setopt(c, CURLOPT_XFERINFOFUNCTION, on_progress);
    curl_easy_setopt(c, CURLOPT_XFERINFODATA, &x);
    if (q->unix_socket)
        curl_easy_setopt(c, CURLOPT_UNIX_SOCKET_PATH, q->unix_socket);
    set_body(c, q, &x);

    CURLcode code = curl_easy_perform(c);
    curl_off_t retry_after = 0;
    curl_easy_getinfo(c, CURLINFO_RETRY_AFTER, &retry_after); /* below 0 for a date that has passed */
    r->retry_after = retry_after > 0 ? (double)retry_after : 0;
    int rc = outcome(code, detail, &x, e);
    if (rc == TM_OFFLINE && r->status >= 200) { /* the answer began, and was cut */
        r->cut = true;
        rc = TM_OK;
    }
    curl_slist_free_all(headers);
    tm_http_session_free(own);
    if (rc)
        tm_http_response_free(r);
    return rc;
}

void tm_http_response_free(tm_http_response *r) {
    tm_list_free(&r->headers);
    tm_buf_free(&r->body);
}

const char *tm_http_header(const tm_http_response *r, const char *name) {
    size_t n = strlen(name);
    for (size_t i = r->headers.count; i-- > 0;) {
        const char *h = r->headers.items[i];
        if (!strncasecmp(h, name, n) && h[n] == ':')
            return h + n + 1 + strspn(h + n + 1, " \t");
    }
    return NULL;
}

static char *url_part(const char *url, CURLUPart part) {
    CURLU *u = curl_url();
    char *out = NULL, *copy = NULL;
    if (u && curl_url_set(u, CURLUPART_URL, url, 0) == CURLUE_OK &&
        curl_url_get(u, part, &out, CURLU_DEFAULT_PORT) == CURLUE_OK) {
        copy = tm_strdup(out);
        curl_free(out);
    }
    curl_url_cleanup(u);
    return copy;
}

bool tm_same_origin(const char *a, const char *b) {
    static const CURLUPart parts[] = {CURLUPART_SCHEME, CURLUPART_HOST, CURLUPART_PORT};
    bool same = true;
    for (size_t i = 0; i < 3; i++) {
        char *x = url_part(a, parts[i]), *y = url_part(b, parts[i]);
        same = same && x && y && !strcasecmp(x, y);
        free(x);
        free(y);
    }
    return same;
}

char *tm_resolve_url(const char *base, const char *location) {
    CURLU *u = curl_url();
    char *out = NULL, *copy = NULL;
    if (u && curl_url_set(u, CURLUPART_URL, base, 0) == CURLUE_OK &&
        curl_url_set(u, CURLUPART_URL, location, 0) == CURLUE_OK &&
        curl_url_get(u, CURLUPART_URL, &out, 0) == CURLUE_OK) {
        if (!strncasecmp(out, "http://", 7) || !strncasecmp(out, "https://", 8))
            copy = tm_strdup(out);
        curl_free(out);
    }
    curl_url_cleanup(u);
    return copy;
}

char *tm_url_escape(const char *s, bool keep_slash) {
    static const char safe[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~";
    tm_buf b = {0};
    for (; *s; s++) {
        if (strchr(safe, *s) || (keep_slash && *s == '/'))
            tm_buf_add(&b, s, 1);
        else
            tm_buf_printf(&b, "%%%02X", (unsigned char)*s);
    }
    return tm_buf_take(&b);
}
