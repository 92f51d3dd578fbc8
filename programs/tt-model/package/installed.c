#include "installed.h"

#include "base/fs.h"
#include "base/paths.h"
#include "base/ui.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { MAX_INDEX = 16 << 20 };

int tm_installed_load(json_t **out, tm_error *e) {
    char *path = tm_root_file("installed.json");
    int rc = TM_OK;
    if (!tm_exists(path)) {
        *out = json_object();
    } else {
        rc = tm_json_load(path, MAX_INDEX, out, e);
        if (!rc && !json_is_object(*out)) {
            json_decref(*out);
            *out = NULL;
            rc = tm_fail(e, TM_ERROR, "%s is not a JSON object", path);
        }
        if (rc)
            tm_next(e, "It is the list of installed packages. Move it away and pull the packages again.");
    }
    free(path);
    return rc;
}

static const char *find_key(json_t *all, const char *repo_id) {
    const char *key, *found = NULL;
    json_t *v;
    json_object_foreach(all, key, v) {
        if (!strcasecmp(key, repo_id))
            found = key;
    }
    return found;
}

int tm_installed_find(const char *repo_id, json_t **out, tm_error *e) {
    json_t *all;
    *out = NULL;
    int rc = tm_installed_load(&all, e);
    if (rc)
        return rc;
    const char *key = find_key(all, repo_id);
    if (key) {
        json_t *record = json_object_get(all, key); /* one that is no object can still be removed */
        *out = json_is_object(record) ? json_incref(record) : json_object();
        if (!tm_json_str(*out, "repo_id"))
            json_object_set_new(*out, "repo_id", json_string(key));
    }
    json_decref(all);
    return TM_OK;
}

int tm_installed_store(const char *repo_id, json_t *record, tm_error *e) {
    char *path = tm_root_file("installed.json"), *lock_path = tm_root_file("locks/installed.lock");
    tm_lock lock;
    json_t *all = NULL;
    int rc = tm_lock_file(lock_path, tm_interrupt_asked, NULL, NULL, &lock, e);
    if (!rc) {
        rc = tm_installed_load(&all, e);
        if (!rc) {
            const char *key = find_key(all, repo_id);
            if (key)
                json_object_del(all, key);
            if (record)
                json_object_set(all, repo_id, record);
            rc = tm_json_save(path, all, e);
        }
        tm_unlock(&lock);
    }
    json_decref(all);
    json_decref(record);
    free(path);
    free(lock_path);
    return rc;
}

int tm_installed_manifest(const char *repo_id, const json_t *record, tm_manifest *m, tm_error *e) {
    const char *recorded = tm_json_str(record, "manifest");
    char *usual = tm_pulled_manifest(repo_id);
    int rc = tm_manifest_load(recorded && tm_exists(recorded) ? recorded : usual, m, e);
    free(usual);
    return rc;
}

static int path_target(const char *text, tm_target *t, tm_error *e) {
    if (tm_ends_with(text, ".yaml") || tm_ends_with(text, ".yml")) {
        tm_fail(e, TM_USAGE, "%s is what a package is built from, not a package", text);
        tm_next(e, "`tt-model package --container %s`, then serve the %s that it writes,\nor serve the Hub id.", text,
                TM_MANIFEST_NAME);
        return TM_USAGE;
    }
    t->path = tm_is_dir(text) ? tm_join(text, TM_MANIFEST_NAME) : tm_strdup(text);
    if (!tm_exists(t->path)) {
        int rc = tm_fail(e, TM_USAGE, "there is no manifest at %s", t->path);
        tm_target_free(t);
        return rc;
    }
    return TM_OK;
}

int tm_target_parse(const char *text, bool paths, tm_target *t, tm_error *e) {
    *t = (tm_target){0};
    bool looks_like_path = *text == '/' || *text == '.' || tm_ends_with(text, ".json") || tm_ends_with(text, ".yaml") ||
                           tm_ends_with(text, ".yml");
    if (paths && (looks_like_path || (tm_exists(text) && !tm_is_repo_id(text))))
        return path_target(text, t, e);
    const char *at = strrchr(text, '@');
    char *id = at ? tm_strndup(text, (size_t)(at - text)) : tm_strdup(text);
    if (!tm_is_repo_id(id)) {
        tm_fail(e, TM_USAGE, "\"%s\" is not a package: packages are named owner/name[@revision]", text);
        const char *word = tm_basename(id);
        tm_next(e, "`tt-model search%s%s`", *word ? " " : "", word);
    } else if (at && !tm_is_revision(at + 1)) {
        tm_fail(e, TM_USAGE, "\"%s\" is not a revision", at + 1);
    } else {
        t->id = id;
        t->revision = at ? tm_strdup(at + 1) : NULL;
        return TM_OK;
    }
    free(id);
    return TM_USAGE;
}

void tm_target_free(tm_target *t) {
    free(t->id);
    free(t->revision);
    free(t->path);
    *t = (tm_target){0};
}

int tm_target_manifest(const tm_target *t, tm_manifest *m, json_t **record, tm_error *e) {
    json_t *found = NULL;
    int rc;
    if (t->path) {
        rc = tm_manifest_load(t->path, m, e);
    } else {
        rc = tm_installed_find(t->id, &found, e);
        if (!rc && !found) {
            rc = tm_fail(e, TM_ERROR, "%s is not installed here", t->id);
            tm_next(e, "`tt-model pull %s`", t->id);
        }
        if (!rc)
            rc = tm_installed_manifest(tm_json_str(found, "repo_id"), found, m, e);
    }
    if (!rc && !m->container) {
        tm_fail(e, TM_UNSUPPORTED, "%s is a bundle of schema %s without a container", m->name, m->schema);
        tm_next(e, "This program serves container packages; use the Python tt-model for that one.");
        tm_manifest_free(m);
        rc = TM_UNSUPPORTED;
    }
    if (record && !rc)
        *record = found;
    else
        json_decref(found);
    return rc;
}
