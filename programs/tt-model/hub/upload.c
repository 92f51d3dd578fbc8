#include "upload.h"

#include "base/fs.h"
#include "base/hash.h"
#include "base/ui.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    SAMPLE = 512,          /* of each file, for the Hub to tell text from binary */
    PER_CALL = 256,        /* files that one preupload call may name */
    MAX_INLINE = 64 << 20, /* what may travel inside a commit */
    MAX_PARTS = 10000,
};

typedef struct upload {
    const char *path; /* in the repository */
    char *file;       /* on disk */
    int64_t size;
    char sha256[65];
    bool lfs, ignore;
} upload;

static void base64(const void *data, size_t n, tm_buf *out) {
    char *text = tm_alloc(4 * ((n + 2) / 3) + 1);
    int len = EVP_EncodeBlock((unsigned char *)text, data, (int)n);
    tm_buf_add(out, text, (size_t)len);
    free(text);
}

static int post_json(tm_hub *hub, const char *method, const char *path, const json_t *body, const char *what,
                     const char *id, long accept, json_t **out, long *status, tm_error *e) {
    char *text = json_dumps(body, JSON_COMPACT);
    tm_hub_request q = {.method = method,
                        .path = path,
                        .body = text,
                        .body_len = strlen(text),
                        .what = what,
                        .id = id,
                        .accept_status = accept};
    tm_http_response r;
    int rc = tm_hub_call(hub, &q, &r, e);
    free(text);
    if (rc)
        return rc;
    if (status)
        *status = r.status;
    if (out)
        rc = tm_json_parse(r.body.data ? r.body.data : "", r.body.len, what, out, e);
    tm_http_response_free(&r);
    return rc;
}

int tm_hub_create(tm_hub *hub, const char *id, bool private_repo, bool *made, tm_error *e) {
    const char *slash = strchr(id, '/');
    char *owner = tm_strndup(id, (size_t)(slash - id));
    json_t *body = json_pack("{s:s, s:s, s:s, s:b}", "name", slash + 1, "organization", owner, "type", "model",
                             "private", private_repo);
    long status = 0;
    int rc = post_json(hub, "POST", "/api/repos/create", body, "the new repository", id, 409, NULL, &status, e);
    *made = !rc && status != 409;
    json_decref(body);
    free(owner);
    return rc;
}

int tm_hub_set_private(tm_hub *hub, const char *id, bool private_repo, tm_error *e) {
    json_t *body = json_pack("{s:b}", "private", private_repo);
    char *path = tm_fmt("/api/models/%s/settings", id);
    int rc = post_json(hub, "PUT", path, body, "the visibility of the repository", id, 0, NULL, NULL, e);
    json_decref(body);
    free(path);
    return rc;
}

static int sample_of(const upload *u, tm_buf *out, tm_error *e) {
    unsigned char bytes[SAMPLE];
    int fd = open(u->file, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, bytes, sizeof bytes);
    if (fd >= 0)
        close(fd);
    if (n < 0)
        return tm_fail(e, TM_ERROR, "cannot read %s: %s", u->file, strerror(errno));
    base64(bytes, (size_t)n, out);
    return TM_OK;
}

/* Ask how each file is to travel. */
static int choose_modes(tm_hub *hub, const tm_commit *c, upload *list, size_t count, tm_error *e) {
    char *path = tm_fmt("/api/models/%s/preupload/%s", c->id, c->branch);
    int rc = TM_OK;
    for (size_t from = 0; from < count && !rc; from += PER_CALL) {
        size_t to = from + PER_CALL < count ? from + PER_CALL : count, k;
        json_t *files = json_array(), *answer = NULL, *f;
        for (size_t i = from; i < to && !rc; i++) {
            tm_buf sample = {0};
            rc = sample_of(&list[i], &sample, e);
            json_array_append_new(files, json_pack("{s:s, s:I, s:s}", "path", list[i].path, "size",
                                                   (json_int_t)list[i].size, "sample", sample.data ? sample.data : ""));
            tm_buf_free(&sample);
        }
        json_t *body = json_pack("{s:o}", "files", files);
        if (!rc)
            rc = post_json(hub, "POST", path, body, "the upload plan", c->id, 0, &answer, NULL, e);
        json_array_foreach(json_object_get(answer, "files"), k, f) {
            for (size_t i = from; i < to; i++)
                if (!strcmp(tm_json_str_or(f, "path", ""), list[i].path)) {
                    list[i].lfs = !strcmp(tm_json_str_or(f, "uploadMode", ""), "lfs") && list[i].size > 0;
                    list[i].ignore = tm_json_bool(f, "shouldIgnore", false);
                }
        }
        json_decref(body);
        json_decref(answer);
    }
    free(path);
    return rc;
}

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
static int put_range(tm_hub *hub, const upload *u, const char *href, int64_t at, int64_t size, uint64_t *done,
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
        tm_http_response_free(&r);
        if (!rc || !again || attempt >= TM_HUB_ATTEMPTS)
            return rc;
        *done = before;
        rc = tm_hub_wait(attempt, NULL, e);
        if (rc)
            return rc;
    }
}

/* The parts' addresses stand in the header, under their numbers. */
static int put_parts(tm_hub *hub, const upload *u, const json_t *action, int64_t chunk, uint64_t *done, uint64_t total,
                     tm_error *e) {
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

static int verify(tm_hub *hub, const upload *u, const json_t *action, tm_error *e) {
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

static int send_object(tm_hub *hub, const upload *u, const json_t *object, uint64_t *done, uint64_t total,
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

static int send_large(tm_hub *hub, const tm_commit *c, upload *list, size_t count, tm_error *e) {
    uint64_t total = 0, done = 0;
    int rc = TM_OK;
    char *path = tm_fmt("/%s.git/info/lfs/objects/batch", c->id);
    for (size_t i = 0; i < count; i++)
        total += list[i].lfs ? (uint64_t)list[i].size : 0;
    for (size_t i = 0; i < count && !rc; i++) {
        upload *u = &list[i];
        if (!u->lfs || u->ignore)
            continue;
        json_t *body = json_pack("{s:s, s:[s,s], s:[{s:s, s:I}], s:s, s:{s:s}}", "operation", "upload", "transfers",
                                 "basic", "multipart", "objects", "oid", u->sha256, "size", (json_int_t)u->size,
                                 "hash_algo", "sha256", "ref", "name", c->branch);
        json_t *answer = NULL;
        char *text = json_dumps(body, JSON_COMPACT);
        tm_hub_request q = {.method = "POST",
                            .path = path,
                            .content_type = "application/vnd.git-lfs+json",
                            .body = text,
                            .body_len = strlen(text),
                            .what = "the upload addresses",
                            .id = c->id};
        rc = tm_hub_json(hub, &q, &answer, e);
        if (!rc)
            rc = send_object(hub, u, json_array_get(json_object_get(answer, "objects"), 0), &done, total, e);
        free(text);
        json_decref(body);
        json_decref(answer);
    }
    free(path);
    return rc;
}

static void add_line(tm_buf *out, const char *key, json_t *value) {
    json_t *line = json_pack("{s:s, s:o}", "key", key, "value", value);
    char *text = json_dumps(line, JSON_COMPACT);
    tm_buf_puts(out, text);
    tm_buf_puts(out, "\n");
    free(text);
    json_decref(line);
}

static int add_small(const upload *u, tm_buf *out, tm_error *e) {
    tm_buf data = {0}, text = {0};
    int rc = tm_read_file(u->file, MAX_INLINE, &data, e);
    if (!rc) {
        base64(data.data, data.len, &text);
        add_line(
            out, "file",
            json_pack("{s:s, s:s, s:s}", "content", text.data ? text.data : "", "path", u->path, "encoding", "base64"));
    }
    tm_buf_free(&data);
    tm_buf_free(&text);
    return rc;
}

static int send_commit(tm_hub *hub, const char *id, const char *branch, const tm_buf *lines, char **sha, tm_error *e) {
    char *path = tm_fmt("/api/models/%s/commit/%s", id, branch);
    tm_hub_request q = {.method = "POST",
                        .path = path,
                        .content_type = "application/x-ndjson",
                        .body = lines->data,
                        .body_len = lines->len,
                        .what = "the commit",
                        .id = id,
                        .once = true}; /* repeated, it could be made twice */
    json_t *answer = NULL;
    int rc = tm_hub_json(hub, &q, &answer, e);
    if (!rc && sha)
        *sha = tm_strdup(tm_json_str_or(answer, "commitOid", ""));
    json_decref(answer);
    free(path);
    return rc;
}

static json_t *header(const char *summary, const char *parent) {
    json_t *h = json_pack("{s:s, s:s}", "summary", summary, "description", "");
    if (parent)
        json_object_set_new(h, "parentCommit", json_string(parent));
    return h;
}

/* Leave out what the repository has with the same bytes. */
static int unchanged(const tm_hub_repo *now, upload *u, bool *same, tm_error *e) {
    const tm_hub_file *f = now ? tm_hub_find(now, u->path) : NULL;
    char hex[65];
    *same = false;
    int rc = tm_sha256_file(u->file, u->sha256, e);
    if (rc || !f || f->size != u->size)
        return rc;
    if (f->sha256) {
        *same = !strcmp(f->sha256, u->sha256);
    } else if (f->blob_id) {
        rc = tm_git_blob_file(u->file, hex, e);
        *same = !rc && !strcmp(hex, f->blob_id);
    }
    return rc;
}

int tm_hub_commit(tm_hub *hub, const tm_commit *c, const tm_hub_repo *now, char **sha, tm_error *e) {
    upload *list = tm_alloc((c->paths->count + 1) * sizeof *list);
    size_t count = 0;
    int rc = TM_OK;
    *sha = NULL;
    for (size_t i = 0; i < c->paths->count && !rc; i++) {
        upload *u = &list[count];
        bool same = false;
        *u = (upload){.path = c->paths->items[i], .file = tm_join(c->dir, c->paths->items[i])};
        u->size = tm_file_size(u->file);
        rc = unchanged(now, u, &same, e);
        if (same)
            free(u->file);
        else
            count++;
    }
    size_t deleted = c->deletions ? c->deletions->count : 0;
    if (!rc && (count || deleted)) {
        tm_buf lines = {0};
        rc = choose_modes(hub, c, list, count, e);
        if (!rc)
            rc = send_large(hub, c, list, count, e);
        add_line(&lines, "header", header(c->summary, now ? now->sha : NULL));
        for (size_t i = 0; i < count && !rc; i++) {
            if (list[i].lfs)
                add_line(&lines, "lfsFile",
                         json_pack("{s:s, s:s, s:s, s:I}", "path", list[i].path, "algo", "sha256", "oid",
                                   list[i].sha256, "size", (json_int_t)list[i].size));
            else if (!list[i].ignore)
                rc = add_small(&list[i], &lines, e);
        }
        for (size_t i = 0; i < deleted; i++)
            add_line(&lines, "deletedFile", json_pack("{s:s}", "path", c->deletions->items[i]));
        if (!rc)
            rc = send_commit(hub, c->id, c->branch, &lines, sha, e);
        tm_buf_free(&lines);
    }
    for (size_t i = 0; i < count; i++)
        free(list[i].file);
    free(list);
    return rc;
}

int tm_hub_commit_text(tm_hub *hub, const char *id, const char *path, const char *text, const char *summary,
                       tm_error *e) {
    tm_buf lines = {0}, encoded = {0};
    base64(text, strlen(text), &encoded);
    add_line(&lines, "header", header(summary, NULL));
    add_line(
        &lines, "file",
        json_pack("{s:s, s:s, s:s}", "content", encoded.data ? encoded.data : "", "path", path, "encoding", "base64"));
    int rc = send_commit(hub, id, "main", &lines, NULL, e);
    tm_buf_free(&lines);
    tm_buf_free(&encoded);
    return rc;
}

int tm_hub_read_text(tm_hub *hub, const char *id, const char *path, tm_buf *out, tm_error *e) {
    char *url = tm_fmt("/%s/resolve/main/%s", id, path), *what = tm_fmt("%s of %s", path, id);
    tm_http_response r;
    int rc = tm_hub_call(hub, &(tm_hub_request){.path = url, .what = what, .id = id}, &r, e);
    if (!rc) {
        tm_buf_add(out, r.body.data ? r.body.data : "", r.body.len);
        tm_http_response_free(&r);
    }
    free(url);
    free(what);
    return rc;
}
