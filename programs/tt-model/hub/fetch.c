#include "fetch.h"

#include "base/fs.h"
#include "base/ui.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    MAX_HOPS = 10,
    /* Attempts that brought bytes do not count against TM_HUB_ATTEMPTS; this ends a server that sends
     * one byte at a time. */
    MAX_ATTEMPTS_IN_ALL = 1000,
};

typedef struct writer {
    const tm_fetch_range *range;
    const tm_hub_file *file;
    tm_error *e;
    int fd;
    int64_t at;   /* position in the remote file of the next byte that is written */
    int64_t skip; /* bytes of the answer to drop first: the server ignored the range */
    bool enough;  /* the range is whole */
} writer;

static int disk_error(tm_error *e, const char *verb, const char *path) {
    int err = errno;
    tm_fail(e, err == EACCES ? TM_NEEDS_SUDO : TM_ERROR, "cannot %s %s: %s", verb, path, strerror(err));
    if (err == ENOSPC || err == EDQUOT)
        tm_next(e, "Free space there, or point HF_HOME at a larger disk; the same command goes on where it stopped.");
    return e ? e->code : TM_ERROR;
}

static bool wrong_length(const writer *w, long long got) {
    tm_fail(w->e, TM_ERROR, "%s: the server's copy is %lld bytes, the Hub's list says %lld", w->file->path, got,
            (long long)w->range->size);
    tm_next(w->e, "Run the same command again; if it stays so, the server (or a proxy before it) is broken.");
    return false;
}

/* Headers of a good answer: does it carry the bytes that were asked for? */
static bool on_begin(void *arg, const tm_http_response *r) {
    writer *w = arg;
    const tm_fetch_range *g = w->range;
    if (r->status == 206) {
        const char *text = tm_http_header(r, "Content-Range");
        long long first, last, whole;
        if (!text || sscanf(text, "bytes %lld-%lld/%lld", &first, &last, &whole) != 3 || first != w->at) {
            tm_fail(w->e, TM_ERROR, "%s: the server answered a range that was not asked for (%s)", w->file->path,
                    text ? text : "none");
            return false;
        }
        return whole == g->size || wrong_length(w, whole);
    }
    const char *length = tm_http_header(r, "Content-Length");
    if (length && strtoll(length, NULL, 10) != g->size)
        return wrong_length(w, strtoll(length, NULL, 10));
    w->skip = w->at;
    return true;
}

static bool on_data(void *arg, const char *data, size_t n) {
    writer *w = arg;
    if (w->skip) {
        size_t drop = (int64_t)n < w->skip ? n : (size_t)w->skip;
        w->skip -= (int64_t)drop;
        data += drop;
        n -= drop;
    }
    int64_t room = w->range->end - w->at;
    if ((int64_t)n > room) {
        if (w->range->end == w->range->size) /* more than the file can hold */
            return wrong_length(w, (long long)(w->at + (int64_t)n));
        n = (size_t)room;
    }
    if (!tm_write_all(w->fd, data, n)) {
        disk_error(w->e, "write", w->range->path);
        return false;
    }
    w->at += (int64_t)n;
    if (w->range->on_bytes)
        w->range->on_bytes(w->range->arg, n);
    w->enough = w->at == w->range->end;
    /* A server that ignored the range goes on sending: it is cut off. */
    return !(w->enough && w->range->end < w->range->size && w->skip == 0 && n == (size_t)room && room == 0);
}

static char *strip_etag(const char *s) {
    if (tm_starts_with(s, "W/"))
        s += 2;
    if (*s == '"')
        s++;
    return tm_strndup(s, strcspn(s, "\""));
}

/* The Hub's own answer names the file; a storage server's ETag means nothing to us. */
static int check_identity(const tm_http_response *r, const tm_hub_file *file, const char *etag, tm_error *e) {
    const char *linked = tm_http_header(r, "X-Linked-Etag"), *plain = tm_http_header(r, "ETag");
    if (!etag || (!linked && !plain))
        return TM_OK;
    char *got = strip_etag(linked ? linked : plain);
    int rc = TM_OK;
    bool comparable = (tm_is_hex(got, 40) || tm_is_hex(got, 64)) && strlen(got) == strlen(etag);
    if (comparable && strcmp(got, etag) != 0) {
        rc = tm_fail(e, TM_ERROR, "%s is another file than the Hub's list says", file->path);
        tm_why(e, "Its digest should be %s; the server offers %s.", etag, got);
    }
    free(got);
    return rc;
}

typedef struct exchange {
    const char *method;
    const char *range_header; /* or NULL */
    bool (*begin)(void *arg, const tm_http_response *r);
    bool (*sink)(void *arg, const char *data, size_t n);
    void *arg;
    bool (*cancelled)(void *arg);
    void *cancel_arg;
    const char *etag;
    char **hub_etag; /* out, may be NULL: from the Hub's own answer */
    int64_t *hub_size;
} exchange;

static void note_head(const tm_http_response *r, const exchange *x) {
    const char *etag = tm_http_header(r, "X-Linked-Etag"), *size = tm_http_header(r, "X-Linked-Size");
    if (!etag)
        etag = tm_http_header(r, "ETag");
    if (!size)
        size = tm_http_header(r, "Content-Length");
    if (x->hub_etag && !*x->hub_etag && etag)
        *x->hub_etag = strip_etag(etag);
    if (x->hub_size && *x->hub_size < 0 && size)
        *x->hub_size = strtoll(size, NULL, 10);
}

/* One request and the redirects that it leads through. The token goes to the Hub's own origin only. */
static int exchange_once(tm_hub *hub, tm_http_session *session, const char *url, const tm_hub_file *file,
                         const exchange *x, tm_http_response *r, tm_error *e) {
    char *at = tm_strdup(url);
    int rc = TM_OK;
    for (int hop = 0;; hop++) {
        bool home = tm_same_origin(hub->endpoint, at);
        tm_list headers = {0};
        tm_list_add(&headers, "Accept-Encoding: identity");
        if (x->range_header)
            tm_list_add(&headers, x->range_header);
        if (home && hub->token)
            tm_list_addf(&headers, "Authorization: Bearer %s", hub->token);
        tm_http_request q = {.method = x->method,
                             .url = at,
                             .headers = &headers,
                             .begin = x->begin,
                             .sink = x->sink,
                             .sink_arg = x->arg,
                             .max_body = 1 << 20,
                             .cancelled = x->cancelled,
                             .cancel_arg = x->cancel_arg};
        rc = tm_http(session, &q, r, e);
        tm_list_free(&headers);
        if (!rc && home && r->status < 400) {
            note_head(r, x);
            rc = check_identity(r, file, x->etag, e);
        }
        if (rc || r->status < 300 || r->status >= 400)
            break;
        const char *location = tm_http_header(r, "Location");
        /* A HEAD wants the Hub's own answer, not that of the storage behind it. */
        char *next = location ? tm_resolve_url(at, location) : NULL;
        if (!strcmp(x->method, "HEAD") && next && !tm_same_origin(hub->endpoint, next)) {
            free(next);
            break;
        }
        tm_http_response_free(r);
        if (!next || hop >= MAX_HOPS) {
            rc = tm_fail(e, TM_ERROR, "%s: the server redirects %s", file->path, next ? "in circles" : "nowhere");
            free(next);
            break;
        }
        free(at);
        at = next;
    }
    free(at);
    return rc;
}

static int open_for_append(const tm_fetch_range *g, int64_t *at, tm_error *e) {
    int fd = open(g->path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (fd < 0) {
        disk_error(e, "open", g->path);
        return -1;
    }
    off_t have = lseek(fd, 0, SEEK_END);
    *at = g->path_offset + (int64_t)have;
    if (*at < g->begin || *at > g->end) { /* not what was planned: another program wrote here */
        tm_fail(e, TM_ERROR, "%s changed while it was being downloaded", g->path);
        close(fd);
        return -1;
    }
    return fd;
}

/* Attempts at one range. */
typedef struct tries {
    int now, in_all; /* since the last byte came, and in all */
    bool restarted;
} tries;

static int ask_for_rest(tm_hub *hub, tm_http_session *session, const char *url, writer *w, tm_http_response *r,
                        tm_error *e) {
    const tm_fetch_range *g = w->range;
    char range[80];
    snprintf(range, sizeof range, "Range: bytes=%lld-%lld", (long long)w->at, (long long)g->end - 1);
    const bool whole = w->at == 0 && g->end == g->size;
    const exchange x = {.method = "GET",
                        .range_header = whole ? NULL : range,
                        .begin = on_begin,
                        .sink = on_data,
                        .arg = w,
                        .cancelled = g->cancelled,
                        .cancel_arg = g->arg,
                        .etag = g->etag};
    w->skip = 0;
    return exchange_once(hub, session, url, w->file, &x, r, e);
}

/* The server's file ends before ours does: begin again, once. */
static bool restart(writer *w, const tm_http_response *r, tries *t) {
    const tm_fetch_range *g = w->range;
    if (r->status != 416 || t->restarted || g->path_offset != 0 || g->begin != 0 || w->at == 0)
        return false;
    t->restarted = true;
    if (ftruncate(w->fd, 0) == 0)
        w->at = 0;
    return true;
}

/* What an answer that did not bring all of the range means: TM_OK where another attempt may. */
static int judge(const tm_hub *hub, const char *id, const char *what, writer *w, tries *t, const tm_http_response *r,
                 tm_error *e) {
    const bool broken = r->status < 300 || restart(w, r, t); /* a good answer that ended early */
    if (!broken && !tm_hub_may_retry(r->status))
        return tm_hub_status_error(hub, r, what, id, NULL, e);
    if (t->now < TM_HUB_ATTEMPTS && t->in_all < MAX_ATTEMPTS_IN_ALL)
        return TM_OK;
    const int rc = broken ? tm_fail(e, TM_OFFLINE, "the connection broke %d times while fetching %s", t->in_all, what)
                          : tm_hub_status_error(hub, r, what, id, NULL, e);
    tm_next(e, "Run the same command again: it goes on where it stopped.");
    return rc;
}

int tm_fetch_file_range(tm_hub *hub, tm_http_session *session, const tm_hub_repo *repo, const tm_hub_file *file,
                        const tm_fetch_range *g, tm_error *e) {
    writer w = {.range = g, .file = file, .e = e};
    w.fd = open_for_append(g, &w.at, e);
    if (w.fd < 0)
        return e ? e->code : TM_ERROR;
    char *url = tm_hub_file_url(hub, repo->type, repo->id, repo->sha, file->path);
    char *what = tm_fmt("%s of %s", file->path, repo->id);
    int rc = TM_OK;
    for (tries t = {.now = 1, .in_all = 1}; !rc && w.at < g->end; t.now++, t.in_all++) {
        tm_http_response r = {0};
        const int64_t before = w.at;
        rc = ask_for_rest(hub, session, url, &w, &r, e);
        if (w.at > before)
            t.now = 1;
        const double retry_after = r.retry_after;
        if (w.enough) /* whatever the server said after */
            rc = TM_OK;
        else if (!rc)
            rc = judge(hub, repo->id, what, &w, &t, &r, e);
        else if (rc == TM_OFFLINE && t.now < TM_HUB_ATTEMPTS)
            rc = TM_OK;
        else if (rc == TM_OFFLINE)
            tm_next(e, "Check the network, then run the same command again: it goes on where it stopped.");
        tm_http_response_free(&r);
        if (w.enough)
            break;
        if (!rc)
            rc = tm_hub_wait(t.now, retry_after, e);
        if (!rc && g->cancelled && g->cancelled(g->arg))
            rc = tm_fail(e, TM_INTERRUPTED, "interrupted");
    }
    free(url);
    free(what);
    if (close(w.fd) != 0 && !rc)
        rc = disk_error(e, "write", g->path);
    return rc;
}

static bool is_etag(const char *s) {
    size_t n = strlen(s);
    return n > 0 && n <= 128 && *s != '.' &&
           s[strspn(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-")] == '\0';
}

int tm_fetch_head(tm_hub *hub, tm_http_session *session, const tm_hub_repo *repo, const tm_hub_file *file, char **etag,
                  int64_t *size, tm_error *e) {
    char *url = tm_hub_file_url(hub, repo->type, repo->id, repo->sha, file->path);
    char *what = tm_fmt("%s of %s", file->path, repo->id);
    int rc = TM_OK;
    *etag = NULL;
    *size = -1;
    for (int attempt = 1;; attempt++) {
        tm_http_response r = {0};
        exchange x = {.method = "HEAD", .cancelled = tm_interrupt_asked, .hub_etag = etag, .hub_size = size};
        rc = exchange_once(hub, session, url, file, &x, &r, e);
        bool again = rc == TM_OFFLINE || (!rc && tm_hub_may_retry(r.status));
        if (!rc && r.status >= 400 && (!again || attempt >= TM_HUB_ATTEMPTS)) {
            rc = tm_hub_status_error(hub, &r, what, repo->id, NULL, e);
            again = false;
        }
        const double retry_after = r.retry_after;
        tm_http_response_free(&r);
        if (!again || attempt >= TM_HUB_ATTEMPTS)
            break;
        rc = tm_hub_wait(attempt, retry_after, e);
        if (rc)
            break;
    }
    if (!rc && (!*etag || !is_etag(*etag) || *size < 0))
        rc = tm_fail(e, TM_ERROR, "the Hub gives no digest or size for %s", what);
    if (rc) {
        free(*etag);
        *etag = NULL;
    }
    free(url);
    free(what);
    return rc;
}

int tm_append_file(const char *to, const char *from, int64_t skip, tm_error *e) {
    int in = open(from, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    int out = open(to, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0666);
    int rc = TM_OK;
    if (in < 0 || out < 0 || lseek(in, (off_t)skip, SEEK_SET) < 0)
        rc = disk_error(e, "open", in < 0 ? from : to);
    enum { CHUNK = 1 << 18 };
    char *chunk = tm_alloc(CHUNK);
    while (!rc) {
        ssize_t n = read(in, chunk, CHUNK);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            rc = disk_error(e, "read", from);
        if (n <= 0)
            break;
        if (!tm_write_all(out, chunk, (size_t)n))
            rc = disk_error(e, "write", to);
    }
    free(chunk);
    if (in >= 0)
        close(in);
    if (out >= 0 && close(out) != 0 && !rc)
        rc = disk_error(e, "write", to);
    return rc;
}

int tm_rename_synced(const char *from, const char *to, tm_error *e) {
    int fd = open(from, O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        fdatasync(fd);
        close(fd);
    }
    return rename(from, to) == 0 ? TM_OK : disk_error(e, "rename a file to", to);
}
