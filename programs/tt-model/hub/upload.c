#include "upload.h"

#include "base/fs.h"
#include "base/hash.h"
#include "lfs.h"

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
};

typedef struct upload {
    tm_lfs_file f;
    bool lfs, ignore; /* what the Hub says of it */
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
    int fd = open(u->f.file, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, bytes, sizeof bytes);
    if (fd >= 0)
        close(fd);
    if (n < 0)
        return tm_fail(e, TM_ERROR, "cannot read %s: %s", u->f.file, strerror(errno));
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
            json_array_append_new(files,
                                  json_pack("{s:s, s:I, s:s}", "path", list[i].f.path, "size",
                                            (json_int_t)list[i].f.size, "sample", sample.data ? sample.data : ""));
            tm_buf_free(&sample);
        }
        json_t *body = json_pack("{s:o}", "files", files);
        if (!rc)
            rc = post_json(hub, "POST", path, body, "the upload plan", c->id, 0, &answer, NULL, e);
        json_array_foreach(json_object_get(answer, "files"), k, f) {
            for (size_t i = from; i < to; i++)
                if (!strcmp(tm_json_str_or(f, "path", ""), list[i].f.path)) {
                    list[i].lfs = !strcmp(tm_json_str_or(f, "uploadMode", ""), "lfs") && list[i].f.size > 0;
                    list[i].ignore = tm_json_bool(f, "shouldIgnore", false);
                }
        }
        json_decref(body);
        json_decref(answer);
    }
    free(path);
    return rc;
}

static int send_large(tm_hub *hub, const tm_commit *c, const upload *list, size_t count, tm_error *e) {
    uint64_t total = 0, done = 0;
    int rc = TM_OK;
    for (size_t i = 0; i < count; i++)
        total += list[i].lfs && !list[i].ignore ? (uint64_t)list[i].f.size : 0;
    for (size_t i = 0; i < count && !rc; i++)
        if (list[i].lfs && !list[i].ignore)
            rc = tm_lfs_send(hub, c->id, c->branch, &list[i].f, &done, total, e);
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
    int rc = tm_read_file(u->f.file, MAX_INLINE, &data, e);
    if (!rc) {
        base64(data.data, data.len, &text);
        add_line(out, "file",
                 json_pack("{s:s, s:s, s:s}", "content", text.data ? text.data : "", "path", u->f.path, "encoding",
                           "base64"));
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
    const tm_hub_file *f = now ? tm_hub_find(now, u->f.path) : NULL;
    char hex[65];
    *same = false;
    int rc = tm_sha256_file(u->f.file, u->f.sha256, e);
    if (rc || !f || f->size != u->f.size)
        return rc;
    if (f->sha256) {
        *same = !strcmp(f->sha256, u->f.sha256);
    } else if (f->blob_id) {
        rc = tm_git_blob_file(u->f.file, hex, e);
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
        *u = (upload){.f = {.path = c->paths->items[i], .file = tm_join(c->dir, c->paths->items[i])}};
        u->f.size = tm_file_size(u->f.file);
        rc = unchanged(now, u, &same, e);
        if (same)
            free(u->f.file);
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
                         json_pack("{s:s, s:s, s:s, s:I}", "path", list[i].f.path, "algo", "sha256", "oid",
                                   list[i].f.sha256, "size", (json_int_t)list[i].f.size));
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
        free(list[i].f.file);
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
