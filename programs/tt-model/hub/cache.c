#include "cache.h"

#include "base/fs.h"
#include "base/json.h"
#include "base/paths.h"

#include <dirent.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_TREE_JSON = 64 << 20, MAX_REF = 4096 };

static char *folder_name(const char *type, const char *id) {
    const char *slash = strchr(id, '/');
    return tm_fmt("%ss--%.*s--%s", type, (int)(slash - id), id, slash + 1);
}

char *tm_cache_repo_dir(const char *type, const char *id) {
    char *hub = tm_hf_hub(), *name = folder_name(type, id), *out = tm_join(hub, name);
    free(hub);
    free(name);
    return out;
}

char *tm_cache_snapshot(const char *type, const char *id, const char *sha) {
    char *dir = tm_cache_repo_dir(type, id), *out = tm_fmt("%s/snapshots/%s", dir, sha);
    free(dir);
    return out;
}

char *tm_cache_lock(const char *type, const char *id, const char *etag) {
    char *hub = tm_hf_hub(), *name = folder_name(type, id), *out = tm_fmt("%s/.locks/%s/%s.lock", hub, name, etag);
    free(hub);
    free(name);
    return out;
}

static char *read_ref(const char *dir, const char *revision) {
    char *path = tm_fmt("%s/refs/%s", dir, revision), *out = NULL;
    tm_buf text = {0};
    if (tm_read_file(path, MAX_REF, &text, NULL) == TM_OK) {
        text.data[strcspn(text.data, " \r\n")] = '\0';
        if (tm_is_hex(text.data, 40))
            out = tm_strdup(text.data);
    }
    tm_buf_free(&text);
    free(path);
    return out;
}

static char *by_prefix(const char *dir, const char *prefix) {
    if (strlen(prefix) < 4 || strspn(prefix, "0123456789abcdef") != strlen(prefix))
        return NULL;
    char *path = tm_join(dir, "snapshots"), *found = NULL;
    DIR *d = opendir(path);
    free(path);
    int matches = 0;
    for (struct dirent *ent; d && (ent = readdir(d));) {
        if (tm_is_hex(ent->d_name, 40) && tm_starts_with(ent->d_name, prefix) && matches++ == 0)
            found = tm_strdup(ent->d_name);
    }
    if (d)
        closedir(d);
    if (matches != 1) {
        free(found);
        found = NULL;
    }
    return found;
}

char *tm_cache_resolve(const char *type, const char *id, const char *revision) {
    const char *rev = revision ? revision : "main";
    if (tm_is_hex(rev, 40))
        return tm_strdup(rev);
    if (!tm_is_revision(rev))
        return NULL;
    char *dir = tm_cache_repo_dir(type, id), *out = read_ref(dir, rev);
    if (!out)
        out = by_prefix(dir, rev);
    free(dir);
    return out;
}

int tm_cache_write_ref(const char *type, const char *id, const char *revision, const char *sha, tm_error *e) {
    if (tm_is_hex(revision, 40) || !tm_is_revision(revision))
        return TM_OK;
    char *dir = tm_cache_repo_dir(type, id), *path = tm_fmt("%s/refs/%s", dir, revision);
    char *old = read_ref(dir, revision);
    int rc = old && !strcmp(old, sha) ? TM_OK : tm_write_file(path, sha, strlen(sha), e);
    free(old);
    free(dir);
    free(path);
    return rc;
}

static char *tree_path(const char *type, const char *id, const char *sha) {
    char *dir = tm_cache_repo_dir(type, id), *out = tm_fmt("%s/trees/%s.json", dir, sha);
    free(dir);
    return out;
}

int tm_cache_write_tree(const tm_hub_repo *repo, tm_error *e) {
    json_t *files = json_object();
    bool whole = true;
    for (size_t i = 0; i < repo->count; i++) {
        const tm_hub_file *f = &repo->files[i];
        whole = whole && f->blob_id && f->size >= 0;
        json_t *entry = json_pack("{s:I, s:s*}", "size", (json_int_t)f->size, "blob_id", f->blob_id);
        if (f->sha256) {
            json_object_set_new(entry, "lfs_sha256", json_string(f->sha256));
            json_object_set_new(entry, "lfs_size", json_integer(f->size));
        }
        json_object_set_new(files, f->path, entry);
    }
    json_t *doc = json_pack("{s:i, s:o}", "format_version", 1, "files", files);
    char *path = tree_path(repo->type, repo->id, repo->sha);
    int rc = whole && !tm_exists(path) ? tm_json_save(path, doc, e) : TM_OK;
    free(path);
    json_decref(doc);
    return rc;
}

tm_snapshot_state tm_cache_state(const char *type, const char *id, const char *sha, const tm_list *allow,
                                 const tm_list *ignore) {
    char *snapshot = tm_cache_snapshot(type, id, sha), *path = tree_path(type, id, sha);
    json_t *doc = NULL;
    tm_snapshot_state state = TM_SNAPSHOT_UNKNOWN;
    if (!tm_is_dir(snapshot)) {
        state = TM_SNAPSHOT_NONE;
    } else if (tm_json_load(path, MAX_TREE_JSON, &doc, NULL) == TM_OK && tm_json_int(doc, "format_version", 0) == 1) {
        state = TM_SNAPSHOT_WHOLE;
        const char *name;
        json_t *entry;
        json_object_foreach(tm_json_object(doc, "files"), name, entry) {
            if (!tm_path_is_safe(name) || !tm_pattern_selects(name, allow, ignore))
                continue;
            char *file = tm_join(snapshot, name);
            if (tm_file_size(file) != tm_json_int(entry, "lfs_size", tm_json_int(entry, "size", -2)))
                state = TM_SNAPSHOT_PART;
            free(file);
        }
    }
    json_decref(doc);
    free(path);
    free(snapshot);
    return state;
}

static bool matches_any(const char *path, const tm_list *patterns) {
    for (size_t i = 0; patterns && i < patterns->count; i++) {
        char *p = tm_fmt(tm_ends_with(patterns->items[i], "/") ? "%s*" : "%s", patterns->items[i]);
        int rc = fnmatch(p, path, 0);
        free(p);
        if (rc == 0)
            return true;
    }
    return false;
}

bool tm_pattern_selects(const char *path, const tm_list *allow, const tm_list *ignore) {
    if (allow && allow->count && !matches_any(path, allow))
        return false;
    return !matches_any(path, ignore);
}

uint64_t tm_cache_partial_bytes(const char *type, const char *id) {
    char *dir = tm_cache_repo_dir(type, id), *blobs = tm_join(dir, "blobs");
    uint64_t sum = 0;
    DIR *d = opendir(blobs);
    for (struct dirent *ent; d && (ent = readdir(d));) {
        if (strstr(ent->d_name, ".incomplete")) {
            char *path = tm_join(blobs, ent->d_name);
            sum += tm_tree_bytes(path);
            free(path);
        }
    }
    if (d)
        closedir(d);
    free(dir);
    free(blobs);
    return sum;
}

int tm_cache_remove(const char *type, const char *id, tm_error *e) {
    char *dir = tm_cache_repo_dir(type, id), *lock = tm_cache_lock(type, id, "x"), *locks = tm_dirname(lock);
    int rc = tm_remove_tree(dir, e);
    if (!rc)
        rc = tm_remove_tree(locks, e);
    free(dir);
    free(lock);
    free(locks);
    return rc;
}

int tm_cache_link(const tm_hub_repo *repo, const char *path, const char *etag, tm_error *e) {
    char *snapshot = tm_cache_snapshot(repo->type, repo->id, repo->sha);
    char *link = tm_join(snapshot, path);
    tm_buf target = {0};
    tm_buf_puts(&target, "../../");
    for (const char *s = path; *s; s++)
        if (*s == '/')
            tm_buf_puts(&target, "../");
    tm_buf_printf(&target, "blobs/%s", etag);
    char there[PATH_MAX];
    ssize_t n = readlink(link, there, sizeof there - 1);
    int rc = TM_OK;
    if (n < 0 || (size_t)n != target.len || memcmp(there, target.data, target.len) != 0) {
        char *tmp = tm_fmt("%s.%ld.tmp", link, (long)getpid());
        rc = tm_mkdirs_for(link, e);
        if (!rc) {
            unlink(tmp);
            if (symlink(target.data, tmp) != 0 || rename(tmp, link) != 0)
                rc = tm_fail(e, TM_ERROR, "cannot make the link %s", link);
        }
        free(tmp);
    }
    tm_buf_free(&target);
    free(link);
    free(snapshot);
    return rc;
}
