/* rm.c - tt-model rm: everything of a package, except what others use. */
#include "base/fs.h"
#include "base/json.h"
#include "base/paths.h"
#include "base/ui.h"
#include "cli.h"
#include "hub/cache.h"
#include "package/install.h"
#include "stop.h"

#include <stdlib.h>
#include <string.h>

/* Whether another installed package uses the same image, or the same weights. */
static bool used_elsewhere(const char *id, const char *image, const char *weights) {
    json_t *all = NULL, *record;
    const char *other;
    bool used = false;
    if (tm_installed_load(&all, NULL) != TM_OK)
        return true;
    json_object_foreach(all, other, record) {
        tm_manifest m;
        if (!strcmp(other, id) || !tm_is_repo_id(other))
            continue;
        if (image && !strcmp(tm_json_str_or(record, "image", ""), image))
            used = true;
        if (weights && tm_installed_manifest(other, record, &m, NULL) == TM_OK) {
            for (size_t i = 0; i < m.weights_count; i++)
                used = used || !strcmp(m.weights[i].repo, weights);
            tm_manifest_free(&m);
        }
    }
    json_decref(all);
    return used;
}

static int remove_image(tm_docker *docker, const char *id, const char *image, tm_error *e) {
    if (!docker || !image || used_elsewhere(id, image, NULL))
        return TM_OK;
    char *name = tm_url_escape(image, true), *path = tm_fmt("/images/%s", name);
    bool missing;
    int rc = tm_docker_call(docker, "DELETE", path, NULL, &missing, NULL, e);
    free(name);
    free(path);
    return rc;
}

static int remove_caches(const char *package, tm_error *e) {
    char *dir = tm_root_file("%s", package);
    int rc = tm_remove_tree(dir, e);
    free(dir);
    return rc;
}

static int remove_weights(const tm_manifest *m, const char *id, tm_error *e) {
    int rc = TM_OK;
    for (size_t i = 0; i < m->weights_count && !rc; i++) {
        const tm_weights *w = &m->weights[i];
        if (used_elsewhere(id, NULL, w->repo))
            tm_note("○", "the weights %s stay: another package uses them", w->repo);
        else
            rc = tm_cache_remove(w->type, w->repo, e);
    }
    return rc;
}

static int remove_one(const tm_args *a, tm_docker *docker, const char *id, tm_error *e) {
    json_t *record = NULL;
    tm_manifest m = {0};
    int rc = tm_installed_find(id, &record, e);
    if (!rc && !record)
        rc = tm_fail(e, TM_ERROR, "%s is not installed here", id);
    if (rc)
        return rc;
    const char *real = tm_json_str(record, "repo_id");
    bool readable = tm_installed_manifest(real, record, &m, NULL) == TM_OK;
    const char *package = readable ? m.name : strchr(real, '/') + 1;
    char *pulled = tm_pulled_manifest(real), *pulled_dir = tm_dirname(pulled);
    tm_stopped done = {0};
    tm_step("rm", "removing %s", real);
    if (tm_is_slug(package))
        rc = tm_stop_package(docker, package, NULL, &done, e);
    if (!rc)
        rc = remove_image(docker, real, tm_json_str(record, "image"), e);
    if (!rc && !tm_flag(a, "keep-cache") && tm_is_slug(package))
        rc = remove_caches(package, e);
    if (!rc && readable && tm_flag(a, "include-weights"))
        rc = remove_weights(&m, real, e);
    if (!rc)
        rc = tm_cache_remove("model", real, e);
    if (!rc)
        rc = tm_remove_tree(pulled_dir, e);
    if (!rc)
        rc = tm_installed_store(real, NULL, e);
    if (!rc)
        tm_note("✓", "removed %s", real);
    json_decref(done.list);
    json_decref(record);
    tm_manifest_free(&m);
    free(pulled);
    free(pulled_dir);
    return rc;
}

static int remove_all(const tm_args *a, tm_docker *docker, tm_error *e) {
    json_t *all = NULL, *record;
    const char *id;
    int rc = tm_installed_load(&all, e), failed = 0;
    if (rc)
        return rc;
    if (json_object_size(all) && !tm_flag(a, "yes") &&
        !tm_ui_confirm("Remove all %zu installed packages?", json_object_size(all))) {
        json_decref(all);
        rc = tm_fail(e, TM_ERROR, "nothing was removed");
        tm_next(e, "Say so with --yes.");
        return rc;
    }
    json_object_foreach(all, id, record) {
        tm_error one = {0};
        if (tm_is_repo_id(id) && remove_one(a, docker, id, &one) != TM_OK) {
            tm_note("✗", "%s: %s", id, one.what);
            failed++;
        }
    }
    json_decref(all);
    return failed ? tm_fail(e, TM_ERROR, "%d package%s could not be removed", failed, failed == 1 ? "" : "s") : TM_OK;
}

int tm_cmd_rm(const tm_args *a, tm_error *e) {
    bool all = tm_flag(a, "all");
    if (all == (a->words.count > 0))
        return tm_fail(e, TM_USAGE, "rm needs the id of a package, or --all");
    tm_target t = {0};
    int rc = all ? TM_OK : tm_target_parse(a->words.items[0], false, &t, e);
    tm_docker docker;
    bool have_docker = !rc && tm_docker_open(&docker, NULL) == TM_OK;
    if (!rc && !have_docker)
        tm_note("!", "Docker does not answer: its images and containers stay");
    if (!rc)
        rc =
            all ? remove_all(a, have_docker ? &docker : NULL, e) : remove_one(a, have_docker ? &docker : NULL, t.id, e);
    if (!rc && tm_ui_json()) {
        json_t *doc = json_pack("{s:s}", "removed", all ? "all" : t.id);
        tm_json_print(doc);
        json_decref(doc);
    }
    if (have_docker)
        tm_docker_close(&docker);
    tm_target_free(&t);
    return rc;
}
