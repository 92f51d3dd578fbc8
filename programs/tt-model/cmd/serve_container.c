/* serve_container.c - serving a package in its container. */
#include "base/fs.h"
#include "base/paths.h"
#include "base/ui.h"
#include "hub/cache.h"
#include "runtime/boot.h"
#include "runtime/container.h"
#include "runtime/port.h"
#include "serve.h"

#include <stdlib.h>
#include <string.h>

static int make_launch(tm_serve *s, const tm_chips *chips, int port, bool rootless, tm_launch *l, tm_error *e) {
    tm_launch_request q = {.manifest = &s->manifest,
                           .profile = &s->profile,
                           .repo_id = s->target.id,
                           .chips = chips,
                           .port = port,
                           .rootless = rootless,
                           .restart = s->restart,
                           .extra = &s->args->passed};
    return tm_launch_make(&q, l, e);
}

int tm_serve_container_line(tm_serve *s, char **line, tm_error *e) {
    tm_docker docker = {0};
    tm_chips chips = {0}, taken = {0};
    bool have_docker = tm_docker_open(&docker, NULL) == TM_OK, chosen = false;
    bool rootless = have_docker && docker.rootless;
    if (have_docker && tm_chips_taken(&docker, &taken, NULL) == TM_OK)
        chosen = tm_chips_choose(&taken, s->profile.chips, tm_value(s->args, "device-id"), &chips, NULL) == TM_OK;
    if (have_docker)
        tm_docker_close(&docker);
    tm_launch l;
    int rc = make_launch(s, chosen ? &chips : NULL, s->port ? (int)s->port : TM_FIRST_PORT, rootless, &l, e);
    if (!rc) {
        *line = tm_launch_shell(&l);
        tm_launch_free(&l);
    }
    return rc;
}

/* The directory that holds image/: the snapshot of what is installed, or beside the manifest. Fetched again
 * at the recorded revision when the cache was cleaned. */
static int package_dir(tm_serve *s, char **dir, tm_error *e) {
    if (s->target.path) {
        *dir = tm_dirname(s->target.path);
        return TM_OK;
    }
    const char *id = tm_json_str_or(s->record, "repo_id", s->target.id), *sha = tm_json_str(s->record, "revision");
    *dir = sha && tm_is_hex(sha, 40) ? tm_cache_snapshot("model", id, sha) : NULL;
    char *index = *dir ? tm_join(*dir, "image/index.json") : NULL;
    bool here = index && tm_exists(index);
    free(index);
    if (here || strcmp(s->manifest.registry, "hf") != 0)
        return TM_OK;
    free(*dir);
    *dir = NULL;
    if (s->local_only)
        return tm_fail(e, TM_ERROR, "the image of %s is not in Docker, nor in the cache", id);
    int rc = tm_pull(s->hub, id, sha, &(tm_pull_options){.need_image = true}, e);
    if (!rc)
        *dir = tm_cache_snapshot("model", id, sha);
    return rc;
}

static int ensure_image(tm_serve *s, tm_docker *docker, tm_error *e) {
    bool current;
    char *id = NULL, *dir = NULL;
    int rc = tm_image_current(docker, &s->manifest, s->record, &current, &id, e);
    free(id);
    id = NULL;
    if (rc || current)
        return rc;
    rc = package_dir(s, &dir, e);
    if (!rc)
        rc = tm_image_ensure(docker, &s->manifest, s->record, dir, false, &id, e);
    if (!rc && s->record && id) {
        json_object_set_new(s->record, "image_loaded_id", json_string(id));
        rc = tm_installed_store(tm_json_str(s->record, "repo_id"), json_incref(s->record), e);
    }
    free(id);
    free(dir);
    return rc;
}

/* Packages whose environment names a path inside the weights' cache cannot start without them. */
static bool pinned_path(const tm_serve *s) {
    const char *key;
    json_t *v;
    bool found = false;
    json_object_foreach(json_object_get(s->profile.serve, "env"), key, v) {
        if (strstr(json_string_value(v), "models--"))
            found = true;
    }
    return found;
}

static int refuse_running(const tm_serve *s, tm_docker *docker, const char *name, tm_error *e) {
    json_t *there = NULL;
    int rc = tm_docker_inspect(docker, name, &there, e);
    if (!rc && there && tm_container_running(there)) {
        rc = tm_fail(e, TM_ERROR, "%s is running already, on port %d", name, tm_container_port(there));
        tm_next(e, "`tt-model stop %s`", tm_serve_name(s));
    }
    json_decref(there);
    return rc;
}

/* Choose chips and port and start, under one lock, so that two serves at once cannot choose the same. */
static int start_locked(tm_serve *s, tm_docker *docker, tm_launch *l, char **id, tm_error *e) {
    tm_chips taken = {0}, chips = {0};
    int port = 0, rc = TM_OK;
    char *name = tm_container_name(s->manifest.name, s->profile.name);
    rc = refuse_running(s, docker, name, e);
    free(name);
    if (!rc && s->profile.chips) {
        rc = tm_chips_taken(docker, &taken, e);
        if (!rc)
            rc = tm_chips_choose(&taken, s->profile.chips, tm_value(s->args, "device-id"), &chips, e);
    }
    if (!rc)
        rc = tm_port_take((int)s->port, &port, e);
    if (rc)
        return rc;
    rc = make_launch(s, &chips, port, docker->rootless, l, e);
    if (rc)
        return rc;
    rc = tm_launch_prepare(l, e);
    if (!rc) {
        tm_step("container", "starting %s", l->name);
        rc = tm_container_start(docker, l, id, e);
    }
    if (!rc)
        tm_step_done("port %d%s%s", port, chips.count ? ", chip " : "", chips.count ? l->devices.items[0] + 17 : "");
    else
        tm_launch_free(l);
    return rc;
}

typedef struct followed {
    tm_docker *docker;
    const char *id;
} followed;

static int follow(void *arg, const tm_log_request *q, tm_error *e) {
    const followed *f = arg;
    return tm_docker_logs(f->docker, f->id, q, e);
}

static bool alive(void *arg) {
    const followed *f = arg;
    json_t *now = NULL;
    bool running = tm_docker_inspect(f->docker, f->id, &now, NULL) == TM_OK && now && tm_container_running(now);
    json_decref(now);
    return running;
}

static int watch(tm_serve *s, tm_docker *docker, const tm_launch *l, const char *id, tm_error *e) {
    double started = tm_seconds();
    followed f = {docker, id};
    tm_boot b = {
        .marker = l->marker, .port = l->port, .timeout = s->timeout, .follow = follow, .alive = alive, .arg = &f};
    int rc = s->detach ? TM_OK : tm_boot_watch(&b, &s->args->evidence, e);
    if (!rc && s->restart) /* not before: one that cannot boot would be started again and again */
        rc = tm_container_keep(docker, id, e);
    if (!rc) {
        tm_serve_ready(s, l->name, l->port, tm_seconds() - started);
    } else if (rc == TM_INTERRUPTED) {
        tm_next(e, "`tt-model logs %s -f` goes on watching\n`tt-model stop %s` ends it", tm_serve_name(s),
                tm_serve_name(s));
    } else if (!*e->next) {
        tm_next(e, "`tt-model logs %s` shows all of its log", tm_serve_name(s));
    }
    return rc;
}

int tm_serve_container(tm_serve *s, tm_docker *docker, tm_error *e) {
    tm_lock lock = {-1};
    tm_launch l = {0};
    char *id = NULL, *name = tm_container_name(s->manifest.name, s->profile.name);
    int rc = refuse_running(s, docker, name, e);
    free(name);
    if (!rc)
        rc = ensure_image(s, docker, e);
    if (!rc)
        rc = tm_serve_weights(s, pinned_path(s) && !s->no_weights, e);
    if (!rc)
        rc = tm_choice_lock(&lock, e);
    if (!rc) {
        rc = start_locked(s, docker, &l, &id, e);
        tm_unlock(&lock);
    }
    if (!rc) {
        char *endpoint = tm_fmt("http://127.0.0.1:%d", l.port);
        tm_event_container(l.name, endpoint);
        free(endpoint);
        rc = watch(s, docker, &l, id, e);
    }
    tm_launch_free(&l);
    free(id);
    return rc;
}
