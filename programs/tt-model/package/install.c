#include "install.h"

#include "base/fs.h"
#include "base/paths.h"
#include "base/ui.h"
#include "hub/cache.h"
#include "hub/download.h"
#include "licence.h"
#include "oci.h"
#include "runtime/chips.h"

#include <stdlib.h>
#include <string.h>

enum { MANIFEST_NAMES = 1 };

static int read_snapshot_manifest(const tm_hub_repo *repo, tm_manifest *m, tm_error *e) {
    char *dir = tm_cache_snapshot(repo->type, repo->id, repo->sha), *path = tm_join(dir, TM_MANIFEST_NAME);
    int rc = tm_manifest_load(path, m, e);
    free(dir);
    free(path);
    return rc;
}

int tm_fetch_manifest(tm_hub *hub, const char *id, const char *revision, tm_hub_repo *repo, tm_manifest *m,
                      tm_error *e) {
    *m = (tm_manifest){0};
    int rc = tm_hub_repo_info(hub, "model", id, revision, "package", repo, e);
    if (rc)
        return rc;
    const tm_hub_file *f = tm_hub_find(repo, TM_MANIFEST_NAME);
    if (!f) {
        rc = tm_fail(e, TM_UNSUPPORTED, "%s is not a package: it has no %s", id, TM_MANIFEST_NAME);
        tm_next(e, "`tt-model search %s`", tm_basename(id));
    } else if (f->size > TM_MANIFEST_MAX_BYTES) {
        rc = tm_fail(e, TM_ERROR, "%s is refused: its manifest is %lld bytes, more than the %d that are read", id,
                     (long long)f->size, TM_MANIFEST_MAX_BYTES);
    }
    char *names[MANIFEST_NAMES + 1] = {(char *)TM_MANIFEST_NAME, NULL};
    tm_list only = {names, MANIFEST_NAMES, MANIFEST_NAMES + 1};
    tm_download_stats stats;
    if (!rc)
        rc = tm_download(hub, repo, &(tm_download_options){.allow = &only}, &stats, e);
    if (!rc)
        rc = read_snapshot_manifest(repo, m, e);
    if (rc)
        tm_hub_repo_free(repo);
    return rc;
}

static int download_step(tm_hub *hub, const tm_hub_repo *repo, const tm_download_options *o, tm_error *e) {
    tm_download_stats stats;
    int rc = tm_download_check_space(repo, o, NULL, e);
    if (!rc)
        rc = tm_download(hub, repo, o, &stats, e);
    if (rc)
        return rc;
    char a[32], b[32];
    if (!stats.fetched)
        tm_step_done("already in the cache, %s", tm_human_bytes((double)stats.total, a));
    else if (stats.resumed)
        tm_step_done("%s, of which %s were here from before", tm_human_bytes((double)stats.total, a),
                     tm_human_bytes((double)(stats.total > stats.fetched ? stats.total - stats.fetched : 0), b));
    else
        tm_step_done("%s", tm_human_bytes((double)stats.fetched, a));
    return TM_OK;
}

char *tm_weights_snapshot(const tm_weights *w) {
    char *sha = tm_cache_resolve(w->type, w->repo, w->revision), *dir = NULL;
    if (sha && tm_cache_state(w->type, w->repo, sha, &w->allow, &w->ignore) >= TM_SNAPSHOT_UNKNOWN)
        dir = tm_cache_snapshot(w->type, w->repo, sha);
    free(sha);
    return dir;
}

/* Offline readers that ask for the default branch find the pinned commit there. */
static int default_ref(const tm_hub_repo *repo, tm_error *e) {
    char *known = tm_cache_resolve(repo->type, repo->id, "main");
    int rc = known ? TM_OK : tm_cache_write_ref(repo->type, repo->id, "main", repo->sha, e);
    free(known);
    return rc;
}

static int pull_one_weights(tm_hub *hub, const tm_weights *w, tm_error *e) {
    bool pinned = w->revision && tm_is_hex(w->revision, 40);
    if (pinned && tm_cache_state(w->type, w->repo, w->revision, &w->allow, &w->ignore) == TM_SNAPSHOT_WHOLE) {
        tm_step("weights", "weights %s@%.8s", w->repo, w->revision);
        tm_step_done("already in the cache");
        return TM_OK;
    }
    bool partial = tm_cache_partial_bytes(w->type, w->repo) > 0;
    tm_step("weights", "weights %s@%.8s%s", w->repo, w->revision ? w->revision : "main",
            partial ? " — resuming a partial download" : "");
    tm_hub_repo repo;
    int rc = tm_hub_repo_info(hub, w->type, w->repo, w->revision, "weights", &repo, e);
    if (rc)
        return rc;
    rc = download_step(hub, &repo, &(tm_download_options){.allow = &w->allow, .ignore = &w->ignore}, e);
    if (!rc && w->revision)
        rc = tm_cache_write_ref(repo.type, repo.id, w->revision, repo.sha, e);
    if (!rc)
        rc = default_ref(&repo, e);
    if (!rc)
        tm_licence_notice(&repo, hub->endpoint);
    tm_hub_repo_free(&repo);
    return rc;
}

int tm_pull_weights(tm_hub *hub, const tm_manifest *m, bool must, tm_error *e) {
    for (size_t i = 0; i < m->weights_count; i++) {
        const tm_weights *w = &m->weights[i];
        int rc = pull_one_weights(hub, w, e);
        char *there = rc ? tm_weights_snapshot(w) : NULL;
        bool fatal = rc == TM_INTERRUPTED || (rc && strstr(e->what, "disk space"));
        if (rc && !fatal && there) {
            tm_step_skip("in the cache; the Hub was not asked: %s", e->what);
            rc = TM_OK;
        } else if (rc && !fatal && !must) {
            tm_step_fail();
            tm_note("!", "the weights %s are not here: %s", w->repo, e->what);
            rc = TM_OK;
        }
        free(there);
        if (rc)
            return rc;
    }
    return TM_OK;
}

int tm_image_current(tm_docker *docker, const tm_manifest *m, const json_t *record, bool *current, char **id,
                     tm_error *e) {
    char *ref = tm_manifest_image_ref(m);
    const char *digest = tm_json_str(record, "image_digest"), *loaded = tm_json_str(record, "image_loaded_id");
    *current = false;
    int rc = tm_docker_image_id(docker, ref, id, e);
    if (!rc && *id) {
        bool recorded = digest && loaded && m->digest && !strcmp(digest, m->digest) && !strcmp(loaded, *id);
        *current = !m->digest || !strcmp(m->digest, *id) || recorded;
    }
    free(ref);
    return rc;
}

static int load_layout(tm_docker *docker, const tm_manifest *m, const char *package_dir, char **id, tm_error *e) {
    char *dir = tm_join(package_dir, "image"), size[32];
    tm_oci_image image;
    tm_step_detail("checking its digests");
    int rc = tm_oci_open(dir, &image, e);
    free(dir);
    if (rc)
        return rc;
    tm_step_detail("giving it to Docker");
    rc = tm_oci_load(&image, docker, m->tag, id, e);
    if (!rc)
        tm_step_done("loaded, %s", tm_human_bytes((double)image.bytes, size));
    if (!rc && m->digest && strcmp(m->digest, image.config.digest) != 0 &&
        strcmp(m->digest, image.manifest.digest) != 0)
        tm_note("!", "the manifest names the build %.19s; the image that it carries is %.19s", m->digest, *id);
    tm_oci_close(&image);
    return rc;
}

int tm_image_ensure(tm_docker *docker, const tm_manifest *m, const json_t *record, const char *package_dir, bool reload,
                    char **id, tm_error *e) {
    bool current;
    int rc = tm_image_current(docker, m, record, &current, id, e);
    if (rc)
        return rc;
    tm_step("image", "image %s", m->tag);
    if (current && !reload) {
        tm_step_done(m->digest ? "already loaded" : "already loaded, judged by its name: the package gives no digest");
        return TM_OK;
    }
    free(*id);
    *id = NULL;
    if (!strcmp(m->registry, "hf"))
        return load_layout(docker, m, package_dir, id, e);
    char *ref = tm_manifest_image_ref(m);
    rc = tm_docker_pull(docker, ref, e);
    if (!rc)
        rc = tm_docker_image_id(docker, ref, id, e);
    if (!rc && !*id)
        rc = tm_fail(e, TM_TOOL_FAILED, "Docker pulled %s, but does not have it", ref);
    if (!rc)
        tm_step_done("pulled from %s", m->registry);
    free(ref);
    return rc;
}

static json_t *make_record(const tm_hub_repo *repo, const tm_manifest *m, const char *manifest_path,
                           const char *revision, const char *loaded_id) {
    json_t *profiles = json_array();
    char *ref = tm_manifest_image_ref(m), now[32];
    for (size_t i = 0; i < m->profile_count; i++)
        json_array_append_new(profiles, json_string(m->profiles[i]));
    json_t *record =
        json_pack("{s:s, s:b, s:s, s:s, s:s, s:s, s:s?, s:s?, s:s, s:o, s:s?, s:s}", "repo_id", repo->id, "container",
                  1, "image", ref, "revision", repo->sha, "manifest", manifest_path, "arch", m->arch, "image_digest",
                  m->digest, "image_loaded_id", loaded_id, "profile", m->default_profile, "profiles", profiles,
                  "requested_revision", revision, "pulled_at", tm_now_iso(now));
    free(ref);
    return record;
}

static int load_image(const tm_hub_repo *repo, const tm_manifest *m, const tm_pull_options *o, char **id, tm_error *e) {
    tm_docker docker;
    tm_error why = {0};
    *id = NULL;
    if (o->no_image)
        return TM_OK;
    int rc = tm_docker_open(&docker, &why);
    if (rc == TM_INTERRUPTED || (rc && o->need_image)) {
        *e = why;
        return rc;
    }
    if (rc) {
        tm_note("!", "the image was not loaded: %s", why.what);
        return TM_OK;
    }
    json_t *record = NULL;
    char *dir = tm_cache_snapshot(repo->type, repo->id, repo->sha);
    rc = tm_installed_find(repo->id, &record, e);
    if (!rc)
        rc = tm_image_ensure(&docker, m, record, dir, o->reload, id, e);
    json_decref(record);
    free(dir);
    tm_docker_close(&docker);
    return rc;
}

static void warn_arch(const tm_manifest *m) {
    const char *here = tm_local_arch();
    if (here && strcmp(here, m->arch) != 0)
        tm_note("!", "this package is for %s; the card in this machine is %s", m->arch, here);
}

int tm_pull(tm_hub *hub, const char *id, const char *revision, const tm_pull_options *o, tm_error *e) {
    tm_hub_repo repo;
    tm_manifest m;
    tm_step("package", "package %s%s%s", id, revision ? "@" : "", revision ? revision : "");
    int rc = tm_fetch_manifest(hub, id, revision, &repo, &m, e);
    if (rc)
        return rc;
    char *image_id = NULL, *path = tm_pulled_manifest(repo.id);
    if (!m.container) {
        rc = tm_fail(e, TM_UNSUPPORTED, "%s is a bundle of schema %s without a container", id, m.schema);
        tm_next(e, "This program serves container packages; use the Python tt-model for that one.");
    }
    if (!rc)
        rc = download_step(hub, &repo, NULL, e);
    if (!rc)
        rc = tm_cache_write_ref(repo.type, repo.id, revision ? revision : "main", repo.sha, e);
    if (!rc)
        warn_arch(&m);
    if (!rc)
        rc = load_image(&repo, &m, o, &image_id, e);
    if (!rc)
        rc = tm_json_save(path, m.doc, e);
    if (!rc)
        rc = tm_installed_store(repo.id, make_record(&repo, &m, path, revision, image_id), e);
    if (!rc && o->weights)
        rc = tm_pull_weights(hub, &m, true, e);
    free(path);
    free(image_id);
    tm_manifest_free(&m);
    tm_hub_repo_free(&repo);
    return rc;
}
