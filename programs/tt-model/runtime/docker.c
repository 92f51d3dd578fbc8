#include "docker.h"

#include "base/fs.h"
#include "base/ui.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { MAX_LOG_LINE = 1 << 20, FRAME_HEAD = 8 };

static int find_engine(tm_docker *d, tm_error *e) {
    const char *host = getenv("DOCKER_HOST"), *run = getenv("XDG_RUNTIME_DIR");
    if (host && *host) {
        if (tm_starts_with(host, "unix://")) {
            d->socket = tm_strdup(host + 7);
        } else if (tm_starts_with(host, "tcp://")) {
            const char *tls = getenv("DOCKER_TLS_VERIFY");
            if (tls && *tls)
                return tm_fail(e, TM_UNSUPPORTED, "DOCKER_TLS_VERIFY is set: TLS to Docker is not spoken here");
            d->base = tm_fmt("http://%s", host + 6);
        } else {
            tm_fail(e, TM_CONFIG, "DOCKER_HOST=%s is neither unix:// nor tcp://", host);
            return TM_CONFIG;
        }
    } else if (tm_exists("/var/run/docker.sock")) {
        d->socket = tm_strdup("/var/run/docker.sock");
    } else if (run && *run) {
        d->socket = tm_fmt("%s/docker.sock", run);
    }
    if (!d->base)
        d->base = tm_strdup("http://localhost");
    if (d->socket && tm_exists(d->socket))
        return TM_OK;
    if (!d->socket && host && *host)
        return TM_OK;
    tm_fail(e, TM_TOOL_MISSING, "Docker does not run here");
    tm_why(e, "There is no socket %s.", d->socket ? d->socket : "/var/run/docker.sock");
    tm_next(e, "Install and start it: https://docs.docker.com/engine/install/\nor serve without it: --native");
    return TM_TOOL_MISSING;
}

/* libcurl says "could not connect" for every reason; the socket itself tells which. */
static int why_not(const tm_docker *d, tm_error *e) {
    struct sockaddr_un sa = {.sun_family = AF_UNIX};
    if (!d->socket || strlen(d->socket) >= sizeof sa.sun_path)
        return TM_TOOL_FAILED;
    memcpy(sa.sun_path, d->socket, strlen(d->socket));
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int rc = connect(fd, (struct sockaddr *)&sa, sizeof sa), err = errno;
    close(fd);
    if (rc != 0 && (err == EACCES || err == EPERM)) {
        tm_fail(e, TM_NEEDS_SUDO, "this user may not talk to Docker");
        tm_why(e, "%s: %s", d->socket, strerror(err));
        tm_next(e, "sudo usermod -aG docker $USER, then log in again.");
        return TM_NEEDS_SUDO;
    }
    tm_fail(e, TM_TOOL_FAILED, "Docker does not answer on %s", d->socket);
    if (rc != 0)
        tm_why(e, "%s", strerror(err));
    tm_next(e, "sudo systemctl start docker");
    return TM_TOOL_FAILED;
}

int tm_docker_open(tm_docker *d, tm_error *e) {
    *d = (tm_docker){0};
    int rc = find_engine(d, e);
    json_t *version = NULL, *info = NULL;
    if (!rc) {
        d->session = tm_http_session_new();
        rc = tm_docker_call(d, "GET", "/version", NULL, NULL, &version, e);
        if (rc && rc != TM_INTERRUPTED)
            rc = why_not(d, e);
    }
    if (!rc)
        rc = tm_docker_call(d, "GET", "/info", NULL, NULL, &info, e);
    if (!rc) {
        d->version = tm_strdup(tm_json_str_or(version, "Version", "?"));
        size_t i;
        json_t *v;
        json_array_foreach(json_object_get(info, "SecurityOptions"), i, v) {
            if (strstr(json_is_string(v) ? json_string_value(v) : "", "name=rootless"))
                d->rootless = true;
        }
    }
    json_decref(version);
    json_decref(info);
    if (rc)
        tm_docker_close(d);
    return rc;
}

void tm_docker_close(tm_docker *d) {
    free(d->socket);
    free(d->base);
    free(d->version);
    tm_http_session_free(d->session);
    *d = (tm_docker){0};
}

char *tm_docker_host(const tm_docker *d) {
    return d->socket ? tm_fmt("unix://%s", d->socket) : tm_fmt("tcp://%s", d->base + strlen("http://"));
}

static int engine_error(const tm_http_response *r, const char *what, tm_error *e) {
    json_error_t ignored;
    json_t *doc = json_loadb(r->body.data ? r->body.data : "", r->body.len, 0, &ignored);
    const char *message = tm_json_str(doc, "message");
    tm_fail(e, TM_TOOL_FAILED, "Docker refused %s (%ld)", what, r->status);
    tm_why(e, "%s", message ? message : r->body.data ? r->body.data : "");
    json_decref(doc);
    return TM_TOOL_FAILED;
}

int tm_docker_call(tm_docker *d, const char *method, const char *path, const json_t *body, bool *missing, json_t **out,
                   tm_error *e) {
    if (out)
        *out = NULL;
    if (missing)
        *missing = false;
    char *url = tm_fmt("%s%s", d->base, path), *text = body ? json_dumps(body, JSON_COMPACT) : NULL;
    tm_list headers = {0};
    if (text)
        tm_list_add(&headers, "Content-Type: application/json");
    tm_http_request q = {.method = method,
                         .url = url,
                         .unix_socket = d->socket,
                         .headers = &headers,
                         .body = text,
                         .body_len = text ? strlen(text) : 0,
                         .patient = true};
    tm_http_response r;
    int rc = tm_http(d->session, &q, &r, e);
    if (rc == TM_OFFLINE)
        rc = e ? (e->code = TM_TOOL_FAILED) : TM_TOOL_FAILED;
    if (!rc) {
        if (r.status == 404 && missing) {
            *missing = true;
        } else if (r.status >= 400) {
            char *what = tm_fmt("%s %s", method, path);
            rc = engine_error(&r, what, e);
            free(what);
        } else if (out && r.body.len) {
            rc = tm_json_parse(r.body.data, r.body.len, "Docker's answer", out, e);
        }
        tm_http_response_free(&r);
    }
    tm_list_free(&headers);
    free(url);
    free(text);
    return rc;
}

int tm_docker_image_id(tm_docker *d, const char *ref, char **id, tm_error *e) {
    char *name = tm_url_escape(ref, true), *path = tm_fmt("/images/%s/json", name);
    json_t *doc = NULL;
    bool missing;
    *id = NULL;
    int rc = tm_docker_call(d, "GET", path, NULL, &missing, &doc, e);
    if (!rc && tm_json_str(doc, "Id"))
        *id = tm_strdup(tm_json_str(doc, "Id"));
    json_decref(doc);
    free(name);
    free(path);
    return rc;
}

/* Load and pull answer 200 and a line of JSON for each thing that happens; failures are among them. */
static int check_stream(const tm_buf *body, const char *what, tm_error *e) {
    const char *s = body->data ? body->data : "";
    while (*s) {
        size_t n = strcspn(s, "\n");
        json_error_t ignored;
        json_t *line = json_loadb(s, n, 0, &ignored);
        const char *message = tm_json_str(line, "error");
        if (message) {
            tm_fail(e, TM_TOOL_FAILED, "Docker could not %s", what);
            tm_why(e, "%s", message);
            json_decref(line);
            return TM_TOOL_FAILED;
        }
        json_decref(line);
        s += n + (s[n] == '\n');
    }
    return TM_OK;
}

static int stream_call(tm_docker *d, tm_http_request *q, const char *path, const char *what, tm_error *e) {
    char *url = tm_fmt("%s%s", d->base, path);
    tm_http_response r;
    q->method = "POST";
    q->url = url;
    q->unix_socket = d->socket;
    q->patient = true;
    q->cancelled = tm_interrupt_asked;
    int rc = tm_http(d->session, q, &r, e);
    if (!rc) {
        rc = r.status >= 400 ? engine_error(&r, what, e) : check_stream(&r.body, what, e);
        tm_http_response_free(&r);
    }
    free(url);
    return rc;
}

int tm_docker_load(tm_docker *d, long (*read)(void *arg, char *data, size_t n), void *arg, int64_t size, tm_error *e) {
    tm_list headers = {0};
    tm_list_add(&headers, "Content-Type: application/x-tar");
    tm_http_request q = {.headers = &headers, .read = read, .read_arg = arg, .body_size = size};
    int rc = stream_call(d, &q, "/images/load?quiet=1", "load the image", e);
    tm_list_free(&headers);
    return rc;
}

int tm_docker_pull(tm_docker *d, const char *ref, tm_error *e) {
    char *name = tm_url_escape(ref, false), *path = tm_fmt("/images/create?fromImage=%s", name);
    char *what = tm_fmt("pull %s", ref);
    tm_http_request q = {0};
    int rc = stream_call(d, &q, path, what, e);
    free(name);
    free(path);
    free(what);
    return rc;
}

int tm_docker_inspect(tm_docker *d, const char *id, json_t **out, tm_error *e) {
    char *name = tm_url_escape(id, false), *path = tm_fmt("/containers/%s/json", name);
    bool missing;
    int rc = tm_docker_call(d, "GET", path, NULL, &missing, out, e);
    free(name);
    free(path);
    return rc;
}

int tm_docker_containers(tm_docker *d, const char *name, bool all, json_t **out, tm_error *e) {
    char *label = name ? tm_fmt("%s=%s", TM_LABEL, name) : tm_strdup(TM_LABEL);
    json_t *filter = json_pack("{s:[s]}", "label", label), *list = NULL, *entry;
    char *text = json_dumps(filter, JSON_COMPACT), *escaped = tm_url_escape(text, false);
    char *path = tm_fmt("/containers/json?all=%d&filters=%s", all, escaped);
    *out = json_array();
    int rc = tm_docker_call(d, "GET", path, NULL, NULL, &list, e);
    size_t i;
    json_array_foreach(list, i, entry) {
        json_t *full = NULL;
        if (!rc)
            rc = tm_docker_inspect(d, tm_json_str_or(entry, "Id", ""), &full, e);
        if (full) /* it may have gone in between */
            json_array_append_new(*out, full);
    }
    if (rc) {
        json_decref(*out);
        *out = NULL;
    }
    json_decref(list);
    json_decref(filter);
    free(label);
    free(text);
    free(escaped);
    free(path);
    return rc;
}

int tm_docker_remove(tm_docker *d, const char *id, tm_error *e) {
    char *name = tm_url_escape(id, false), *path = tm_fmt("/containers/%s?force=1&v=1", name);
    bool missing;
    int rc = tm_docker_call(d, "DELETE", path, NULL, &missing, NULL, e);
    free(name);
    free(path);
    return rc;
}

/* A log comes as frames: stream number, three zeros, the length in four bytes, then the bytes. */
typedef struct demux {
    const tm_log_request *q;
    unsigned char head[FRAME_HEAD];
    size_t head_len, left;
    tm_buf line[3];
    bool stopped;
} demux;

static void emit(demux *x, int stream) {
    tm_buf *b = &x->line[stream];
    if (b->len && b->data[b->len - 1] == '\r')
        b->data[--b->len] = '\0';
    if (!x->stopped && !x->q->sink(x->q->arg, stream, b->data ? b->data : ""))
        x->stopped = true;
    b->len = 0;
    if (b->data)
        b->data[0] = '\0';
}

static bool on_log(void *arg, const char *data, size_t n) {
    demux *x = arg;
    while (n && !x->stopped) {
        if (x->left == 0) {
            x->head[x->head_len++] = (unsigned char)*data++;
            n--;
            if (x->head_len == FRAME_HEAD) {
                const unsigned char *h = x->head;
                x->left = (size_t)h[4] << 24 | (size_t)h[5] << 16 | (size_t)h[6] << 8 | h[7];
                x->head_len = 0;
            }
            continue;
        }
        int stream = x->head[0] == 2 ? 2 : 1;
        size_t take = n < x->left ? n : x->left;
        const char *end = memchr(data, '\n', take);
        size_t part = end ? (size_t)(end - data) : take;
        if (x->line[stream].len + part <= MAX_LOG_LINE)
            tm_buf_add(&x->line[stream], data, part);
        if (end)
            emit(x, stream);
        part += end != NULL;
        data += part;
        n -= part;
        x->left -= part;
    }
    return !x->stopped;
}

int tm_docker_logs(tm_docker *d, const char *id, const tm_log_request *q, tm_error *e) {
    char *name = tm_url_escape(id, false);
    tm_buf url = {0};
    tm_buf_printf(&url, "%s/containers/%s/logs?stdout=1&stderr=1&follow=%d&timestamps=%d", d->base, name, q->follow,
                  q->timestamps);
    if (q->tail >= 0)
        tm_buf_printf(&url, "&tail=%ld", q->tail);
    if (q->since > 0)
        tm_buf_printf(&url, "&since=%.9f", q->since);
    demux x = {.q = q};
    tm_http_request http = {.url = url.data,
                            .unix_socket = d->socket,
                            .sink = on_log,
                            .sink_arg = &x,
                            .patient = true,
                            .cancelled = q->cancelled,
                            .cancel_arg = q->arg};
    tm_http_response r;
    int rc = tm_http(NULL, &http, &r, e); /* its own connection: it may stay open for days */
    if (rc && x.stopped)
        rc = TM_OK;
    else if (!rc) {
        if (r.status >= 400)
            rc = engine_error(&r, "the log", e);
        tm_http_response_free(&r);
    }
    for (int s = 1; s <= 2; s++) {
        if (x.line[s].len)
            emit(&x, s);
        tm_buf_free(&x.line[s]);
    }
    tm_buf_free(&url);
    free(name);
    return rc;
}

static bool collect(void *arg, int stream, const char *line) {
    (void)stream;
    tm_buf_printf(arg, "%s\n", line);
    return true;
}

char *tm_docker_log_tail(tm_docker *d, const char *id, int lines) {
    tm_buf out = {0};
    tm_log_request q = {.tail = lines, .sink = collect, .arg = &out};
    tm_docker_logs(d, id, &q, NULL);
    return tm_buf_take(&out);
}
