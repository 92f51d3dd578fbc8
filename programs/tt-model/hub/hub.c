#include "hub.h"

#include "base/fs.h"
#include "base/paths.h"
#include "base/ui.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

/* A repository of more files than this is not a package of ours. */
enum { MAX_FILES = 100000 };
/* A repository that was renamed more often than this is not followed. */
enum { MAX_HOPS = 5 };

void tm_hub_open(tm_hub *hub) {
    hub->endpoint = tm_hf_endpoint();
    hub->token = tm_hf_token();
    hub->session = tm_http_session_new();
}

void tm_hub_close(tm_hub *hub) {
    free(hub->endpoint);
    free(hub->token);
    tm_http_session_free(hub->session);
    *hub = (tm_hub){0};
}

static const char *type_prefix(const char *type) {
    return !strcmp(type, "dataset") ? "datasets/" : !strcmp(type, "space") ? "spaces/" : "";
}

char *tm_hub_file_url(const tm_hub *hub, const char *type, const char *id, const char *revision, const char *path) {
    char *rev = tm_url_escape(revision, false), *p = tm_url_escape(path, true);
    char *url = tm_fmt("%s/%s%s/resolve/%s/%s", hub->endpoint, type_prefix(type), id, rev, p);
    free(rev);
    free(p);
    return url;
}

bool tm_hub_may_retry(long status) {
    return status == 408 || status == 429 || status == 500 || status == 502 || status == 503 || status == 504;
}

int tm_hub_wait(int attempt, double retry_after, tm_error *e) {
    double seconds = 0.25 * (double)(1 << (attempt < 6 ? attempt : 6));
    if (retry_after > 0)
        seconds = retry_after < TM_HUB_MAX_RETRY_AFTER ? retry_after : TM_HUB_MAX_RETRY_AFTER;
    for (double waited = 0; waited < seconds; waited += 0.05) {
        if (tm_interrupted())
            return tm_fail(e, TM_INTERRUPTED, "interrupted");
        nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
    }
    return TM_OK;
}

static int gated_or_forbidden(const tm_hub *hub, const char *code, const char *what, const char *id, tm_error *e) {
    if (code && !strcmp(code, "GatedRepo")) {
        tm_fail(e, TM_CONFIG, "%s is gated: its owner wants you to accept the terms first", id ? id : what);
        tm_next(e, "Open %s/%s, accept the terms, then `tt-model login` with a token of that account.", hub->endpoint,
                id ? id : "");
    } else {
        tm_fail(e, TM_CONFIG, "the Hub does not allow this account to read %s", what);
        tm_next(e, "Use a token with read access to it: `tt-model login`.");
    }
    return TM_CONFIG;
}

static int not_found(const char *code, const char *what, const char *id, const char *role, tm_error *e) {
    if (code && !strcmp(code, "RevisionNotFound")) {
        tm_fail(e, TM_ERROR, "%s has no such revision", id ? id : what);
        tm_next(e, "Look at the branches and tags on its Hub page, or leave `@revision` out.");
    } else if (code && !strcmp(code, "EntryNotFound")) {
        tm_fail(e, TM_ERROR, "the Hub does not have %s", what);
    } else if (role && !strcmp(role, "weights")) {
        tm_fail(e, TM_ERROR, "the weights of this package, %s, are not on the Hub", id ? id : what);
        tm_why(e, "The package names them; they were removed or renamed, or are private.");
        tm_next(e, "Tell the package's author, or log in with an account that may read them: `tt-model login`.");
    } else {
        tm_fail(e, TM_ERROR, "the Hub does not have %s", id ? id : what);
        tm_why(e, "Either the id is wrong, or it is private and this account may not see it.");
        tm_next(e, "`tt-model search%s%s`\n`tt-model login`", id ? " " : "", id ? tm_basename(id) : "");
    }
    return TM_ERROR;
}

int tm_hub_status_error(const tm_hub *hub, const tm_http_response *r, const char *what, const char *id,
                        const char *role, tm_error *e) {
    const char *code = tm_http_header(r, "X-Error-Code"), *message = tm_http_header(r, "X-Error-Message");
    int rc;
    if (r->status == 401 && code && (!strcmp(code, "GatedRepo") || !strcmp(code, "RepoNotFound")) && !hub->token) {
        rc = !strcmp(code, "GatedRepo") ? gated_or_forbidden(hub, code, what, id, e)
                                        : not_found(code, what, id, role, e);
    } else if (r->status == 401) {
        rc = tm_fail(e, TM_CONFIG, hub->token ? "the Hub rejected the token" : "the Hub asks for a token to read %s",
                     what);
        tm_next(e, "`tt-model login` with a token from %s/settings/tokens (or set HF_TOKEN).", hub->endpoint);
    } else if (r->status == 403) {
        rc = gated_or_forbidden(hub, code, what, id, e);
    } else if (r->status == 404 || r->status == 410) {
        rc = not_found(code, what, id, role, e);
    } else if (r->status == 429) {
        rc = tm_fail(e, TM_OFFLINE, "the Hub asks to slow down (429) for %s", what);
        tm_next(e, "Wait some minutes and run the same command again: what was fetched is kept.");
    } else if (r->status >= 500) {
        rc = tm_fail(e, TM_OFFLINE, "the Hub answers %ld for %s", r->status, what);
        tm_next(e, "Run the same command again later: what was fetched is kept.");
    } else {
        rc = tm_fail(e, TM_ERROR, "the Hub answers %ld for %s", r->status, what);
    }
    if (message && e && !*e->why)
        tm_why(e, "The Hub says: %s", message);
    return rc;
}

static int refuse_offline(const char *what, tm_error *e) {
    const char *why = tm_offline();
    if (!why)
        return TM_OK;
    tm_fail(e, TM_OFFLINE, "%s is needed, and %s forbids asking the Hub", what, why);
    tm_next(e, "Unset %s, or pull while online first.", why);
    return TM_OFFLINE;
}

static void list_headers(const tm_hub *hub, const tm_hub_request *q, tm_list *headers) {
    tm_list_add(headers, "Accept: application/json");
    if (q->body)
        tm_list_addf(headers, "Content-Type: %s", q->content_type ? q->content_type : "application/json");
    if (hub->token)
        tm_list_addf(headers, "Authorization: Bearer %s", hub->token);
}

/* One request, and the redirects of a repository that was renamed: they stay at the Hub. *url becomes the last one. */
static int ask(const tm_hub *hub, const tm_hub_request *q, const tm_list *headers, char **url, tm_http_response *r,
               tm_error *e) {
    for (int hops = 0;; hops++) {
        const tm_http_request http = {.method = q->method,
                                      .url = *url,
                                      .headers = headers,
                                      .body = q->body,
                                      .body_len = q->body_len,
                                      .cancelled = tm_interrupt_asked};
        int rc = tm_http(hub->session, &http, r, e);
        if (rc || r->status < 300 || r->status >= 400 || hops == MAX_HOPS)
            return rc;
        const char *location = tm_http_header(r, "Location");
        char *next = location ? tm_resolve_url(*url, location) : NULL;
        const bool same = next && tm_same_origin(*url, next);
        tm_http_response_free(r);
        if (!same) {
            rc = tm_fail(e, TM_ERROR, "the Hub sends %s to another host, %s", q->what, next ? next : "nowhere");
            free(next);
            return rc;
        }
        free(*url);
        *url = next;
    }
}

/* What is said of a request that came to nothing: `rc` without an answer, or an answer that is none. */
static int give_up(const tm_hub *hub, const tm_hub_request *q, int rc, const tm_http_response *r, tm_error *e) {
    if (rc == TM_OFFLINE)
        tm_next(e, "Check the network (and HTTPS_PROXY, HF_ENDPOINT), then run the same command again.");
    if (rc)
        return rc;
    if (r->cut)
        return tm_fail(e, TM_OFFLINE, "the connection to the Hub broke while reading %s", q->what);
    return tm_hub_status_error(hub, r, q->what, q->id, q->role, e);
}

int tm_hub_call(tm_hub *hub, const tm_hub_request *q, tm_http_response *r, tm_error *e) {
    int rc = refuse_offline(q->what, e);
    if (rc)
        return rc;
    tm_list headers = {0};
    list_headers(hub, q, &headers);
    char *url = tm_fmt("%s%s", hub->endpoint, q->path);
    for (int attempt = 1;; attempt++) {
        rc = ask(hub, q, &headers, &url, r, e);
        if (!rc && !r->cut && (r->status < 300 || r->status == q->accept_status))
            break;
        const bool passing = rc ? rc == TM_OFFLINE : r->cut || tm_hub_may_retry(r->status);
        const bool again = passing && !q->once && attempt < TM_HUB_ATTEMPTS;
        const double retry_after = rc ? 0 : r->retry_after;
        rc = again ? TM_OK : give_up(hub, q, rc, r, e);
        tm_http_response_free(r);
        if (again)
            rc = tm_hub_wait(attempt, retry_after, e);
        if (rc)
            break;
    }
    free(url);
    tm_list_free(&headers);
    return rc;
}

int tm_hub_json(tm_hub *hub, const tm_hub_request *q, json_t **out, tm_error *e) {
    tm_http_response r;
    *out = NULL;
    int rc = tm_hub_call(hub, q, &r, e);
    if (rc)
        return rc;
    rc = tm_json_parse(r.body.data ? r.body.data : "", r.body.len, q->what, out, e);
    tm_http_response_free(&r);
    return rc;
}

static int read_file_entry(const json_t *entry, const char *id, tm_hub_file *f, tm_error *e) {
    const char *path = tm_json_str(entry, "rfilename");
    if (!path || !tm_path_is_safe(path)) {
        tm_fail(e, TM_ERROR, "%s is refused: it holds a file whose name leads outside the package", id);
        tm_why(e, "The name is \"%s\".", path ? path : "(none)");
        return TM_ERROR;
    }
    const json_t *lfs = tm_json_object(entry, "lfs");
    const char *blob = tm_json_str(entry, "blobId"), *sha = tm_json_str(lfs, "sha256");
    if ((blob && !tm_is_hex(blob, 40)) || (sha && !tm_is_hex(sha, 64)))
        return tm_fail(e, TM_ERROR, "%s is refused: the digest of %s is not one", id, path);
    f->path = tm_strdup(path);
    f->blob_id = blob ? tm_strdup(blob) : NULL;
    f->sha256 = sha ? tm_strdup(sha) : NULL;
    f->size = tm_json_int(lfs, "size", tm_json_int(entry, "size", -1));
    if (f->size < -1)
        return tm_fail(e, TM_ERROR, "%s is refused: the size of %s is negative", id, path);
    return TM_OK;
}

static const char *license_of(const json_t *doc) {
    const json_t *card = tm_json_object(doc, "cardData");
    const char *name = tm_json_str(card, "license_name"), *license = tm_json_str(card, "license");
    if (name)
        return name;
    if (license)
        return license;
    size_t i;
    json_t *tag;
    json_array_foreach(json_object_get(doc, "tags"), i, tag) {
        const char *s = json_string_value(tag);
        if (s && tm_starts_with(s, "license:"))
            return s + strlen("license:");
    }
    return NULL;
}

int tm_hub_repo_info(tm_hub *hub, const char *type, const char *id, const char *revision, const char *role,
                     tm_hub_repo *out, tm_error *e) {
    *out = (tm_hub_repo){0};
    char *rev = tm_url_escape(revision ? revision : "main", false);
    char *path = tm_fmt("/api/%ss/%s/revision/%s?blobs=true", type, id, rev);
    char *what = revision ? tm_fmt("%s at %s", id, revision) : tm_strdup(id);
    json_t *doc = NULL;
    int rc = tm_hub_json(hub, &(tm_hub_request){.path = path, .what = what, .id = id, .role = role}, &doc, e);
    free(rev);
    free(path);
    free(what);
    if (rc)
        return rc;

    const char *sha = tm_json_str(doc, "sha"), *license = license_of(doc), *real = tm_json_str(doc, "id");
    json_t *files = tm_json_array(doc, "siblings");
    if (!sha || !tm_is_hex(sha, 40) || !files)
        rc = tm_fail(e, TM_ERROR, "the Hub's answer for %s names no commit or no files", id);
    else if (json_array_size(files) > MAX_FILES)
        rc = tm_fail(e, TM_ERROR, "%s holds %zu files, more than the %d that are handled", id, json_array_size(files),
                     MAX_FILES);
    if (!rc) {
        out->id = tm_strdup(real && tm_is_repo_id(real) ? real : id);
        out->type = tm_strdup(type);
        out->sha = tm_strdup(sha);
        out->license = license ? tm_strdup(license) : NULL;
        out->files = tm_alloc((json_array_size(files) + 1) * sizeof *out->files);
        size_t i;
        json_t *entry;
        json_array_foreach(files, i, entry) {
            rc = read_file_entry(entry, id, &out->files[out->count++], e);
            if (rc)
                break;
        }
    }
    json_decref(doc);
    if (rc)
        tm_hub_repo_free(out);
    return rc;
}

void tm_hub_repo_free(tm_hub_repo *repo) {
    for (size_t i = 0; i < repo->count; i++) {
        free(repo->files[i].path);
        free(repo->files[i].blob_id);
        free(repo->files[i].sha256);
    }
    free(repo->files);
    free(repo->id);
    free(repo->type);
    free(repo->sha);
    free(repo->license);
    *repo = (tm_hub_repo){0};
}

const tm_hub_file *tm_hub_find(const tm_hub_repo *repo, const char *path) {
    for (size_t i = 0; i < repo->count; i++)
        if (!strcmp(repo->files[i].path, path))
            return &repo->files[i];
    return NULL;
}
