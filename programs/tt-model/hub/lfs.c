#include "lfs.h"

#include "base/ui.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_PARTS = 10000 };

typedef struct sending {
    int fd;
    int64_t left;
    uint64_t *done, total;
} sending;

static long read_body(void *arg, char *data, size_t n) {
    sending *b = arg;
    if (tm_interrupted())
        return -1;
    ssize_t k = read(b->fd, data, (int64_t)n < b->left ? n : (size_t)b->left);
    if (k < 0)
        return -1;
    b->left -= k;
    *b->done += (uint64_t)k;
    tm_step_progress(*b->done, b->total, true);
    return (long)k;
}

/* PUT a stretch of a file to an address of the storage: signed, so no token goes along. */
static int put_range(tm_hub *hub, const tm_lfs_file *u, const char *href, int64_t at, int64_t size, uint64_t *done,
                     uint64_t total, char **etag, tm_error *e) {
    int rc = TM_OK;
    for (int attempt = 1;; attempt++) {
        sending b = {.fd = open(u->file, O_RDONLY | O_CLOEXEC), .left = size, .done = done, .total = total};
        uint64_t before = *done;
        if (b.fd < 0 || lseek(b.fd, (off_t)at, SEEK_SET) < 0) {
            if (b.fd >= 0)
                close(b.fd);
            return tm_fail(e, TM_ERROR, "cannot read %s: %s", u->file, strerror(errno));
        }
        tm_http_response r = {0};
        tm_http_request q = {.method = "PUT",
                             .url = href,
                             .read = read_body,
                             .read_arg = &b,
                             .body_size = size,
                             .cancelled = tm_interrupt_asked};
        rc = tm_http(hub->session, &q, &r, e);
        close(b.fd);
        bool again = rc == TM_OFFLINE || (!rc && tm_hub_may_retry(r.status));
        if (!rc && r.status >= 300)
            rc = tm_fail(e, again ? TM_OFFLINE : TM_ERROR, "the storage answers %ld for %s", r.status, u->path);
        else if (!rc && etag)
            *etag = tm_strdup(tm_http_header(&r, "ETag") ? tm_http_header(&r, "ETag") : "");
        const double retry_after = r.retry_after;
        tm_http_response_free(&r);
        if (!rc || !again || attempt >= TM_HUB_ATTEMPTS)
            return rc;
        *done = before;
        rc = tm_hub_wait(attempt, retry_after, e);
        if (rc)
            return rc;
    }
}

/* The parts' addresses stand in the header, under their numbers. */
static int put_parts(tm_hub *hub, const tm_lfs_file *u, const json_t *action, int64_t chunk, uint64_t *done,
                     uint64_t total, tm_error *e) {
    const json_t *header = json_object_get(action, "header");
    json_t *parts = json_array();
    int rc = TM_OK;
    int64_t count = chunk > 0 ? (u->size + chunk - 1) / chunk : 0;
    if (count < 1 || count > MAX_PARTS)
        rc = tm_fail(e, TM_ERROR, "the Hub asks for %lld parts of %s", (long long)count, u->path);
    for (int64_t i = 0; i < count && !rc; i++) {
        const char *href = NULL, *key;
        json_t *v;
        json_object_foreach((json_t *)header, key, v) {
            if (key[strspn(key, "0123456789")] == '\0' && strtoll(key, NULL, 10) == i + 1)
                href = json_string_value(v);
        }
        char *etag = NULL;
        int64_t at = i * chunk, n = at + chunk < u->size ? chunk : u->size - at;
        rc = href ? put_range(hub, u, href, at, n, done, total, &etag, e)
                  : tm_fail(e, TM_ERROR, "the Hub gives no address for part %lld of %s", (long long)i + 1, u->path);
        if (!rc)
            json_array_append_new(parts, json_pack("{s:I, s:s}", "partNumber", (json_int_t)i + 1, "etag", etag));
        free(etag);
    }
    json_t *end = json_pack("{s:s, s:o}", "oid", u->sha256, "parts", parts);
    char *text = json_dumps(end, JSON_COMPACT);
    tm_list headers = {0};
    tm_list_add(&headers, "Content-Type: application/vnd.git-lfs+json");
    tm_http_response r = {0};
    tm_http_request q = {.method = "POST",
                         .url = tm_json_str_or(action, "href", ""),
                         .headers = &headers,
                         .body = text,
                         .body_len = strlen(text),
                         .cancelled = tm_interrupt_asked};
    if (!rc)
        rc = tm_http(hub->session, &q, &r, e);
    if (!rc && r.status >= 300)
        rc = tm_fail(e, TM_ERROR, "the storage answers %ld to the end of %s", r.status, u->path);
    tm_http_response_free(&r);
    tm_list_free(&headers);
    json_decref(end);
    free(text);
    return rc;
}

static int verify(tm_hub *hub, const tm_lfs_file *u, const json_t *action, tm_error *e) {
    const char *href = tm_json_str(action, "href");
    if (!href)
        return TM_OK;
    if (!tm_same_origin(hub->endpoint, href)) /* it would get the token */
        return tm_fail(e, TM_ERROR, "the Hub sends the check of %s to another host, %s", u->path, href);
    char *text = tm_fmt("{\"oid\":\"%s\",\"size\":%lld}", u->sha256, (long long)u->size);
    const char *path = strchr(strstr(href, "://") + 3, '/');
    tm_hub_request q = {.method = "POST", .path = path, .body = text, .body_len = strlen(text), .what = u->path};
    tm_http_response r;
    int rc = tm_hub_call(hub, &q, &r, e);
    if (!rc)
        tm_http_response_free(&r);
    free(text);
    return rc;
}

static int send_object(tm_hub *hub, const tm_lfs_file *u, const json_t *object, uint64_t *done, uint64_t total,
                       tm_error *e) {
    const json_t *error = json_object_get(object, "error"), *actions = json_object_get(object, "actions");
    if (error)
        return tm_fail(e, TM_ERROR, "the Hub refuses %s: %s", u->path, tm_json_str_or(error, "message", "no reason"));
    const json_t *action = json_object_get(actions, "upload");
    if (!action) { /* it has these bytes */
        *done += (uint64_t)u->size;
        return TM_OK;
    }
    const char *chunk = tm_json_str(json_object_get(action, "header"), "chunk_size"),
               *href = tm_json_str(action, "href");
    int rc;
    if (!href || (strncmp(href, "http://", 7) != 0 && strncmp(href, "https://", 8) != 0))
        rc = tm_fail(e, TM_ERROR, "the Hub gives no address for %s", u->path);
    else if (chunk)
        rc = put_parts(hub, u, action, strtoll(chunk, NULL, 10), done, total, e);
    else
        rc = put_range(hub, u, href, 0, u->size, done, total, NULL, e);
    return rc ? rc : verify(hub, u, json_object_get(actions, "verify"), e);
}

int tm_lfs_send(tm_hub *hub, const char *id, const char *branch, const tm_lfs_file *u, uint64_t *done, uint64_t total,
                tm_error *e) {
    char *path = tm_fmt("/%s.git/info/lfs/objects/batch", id);
    json_t *body = json_pack("{s:s, s:[s,s], s:[{s:s, s:I}], s:s, s:{s:s}}", "operation", "upload", "transfers",
                             "basic", "multipart", "objects", "oid", u->sha256, "size", (json_int_t)u->size,
                             "hash_algo", "sha256", "ref", "name", branch);
    json_t *answer = NULL;
    char *text = json_dumps(body, JSON_COMPACT);
    tm_hub_request q = {.method = "POST",
                        .path = path,
                        .content_type = "application/vnd.git-lfs+json",
                        .body = text,
                        .body_len = strlen(text),
                        .what = "the upload addresses",
                        .id = id};
    int rc = tm_hub_json(hub, &q, &answer, e);
    if (!rc)
        rc = send_object(hub, u, json_array_get(json_object_get(answer, "objects"), 0), done, total, e);
    json_decref(body);
    json_decref(answer);
    free(text);
    free(path);
    return rc;
}
