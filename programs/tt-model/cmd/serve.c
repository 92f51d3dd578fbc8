/*
 * serve.c - tt-model serve: find the package, get what is missing, and choose between its container and
 * this project's own server.
 */
#include "serve.h"

#include "base/fs.h"
#include "base/ui.h"
#include "hub/cache.h"
#include "runtime/boot.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *tm_serve_name(const tm_serve *s) {
    return s->target.id ? s->target.id : s->args->words.items[0];
}

void tm_serve_ready(const tm_serve *s, const char *server, int port, double seconds) {
    const char *name = tm_serve_name(s);
    char *endpoint = tm_fmt("http://127.0.0.1:%d", port);
    if (tm_ui_json()) {
        json_t *doc = json_pack("{s:s, s:s, s:s, s:s, s:i, s:s, s:f}", "model", name, "server", server, "profile",
                                s->profile.name, "endpoint", endpoint, "port", port, "state",
                                s->detach ? "started" : "ready", "ready_seconds", seconds);
        tm_json_print(doc);
        json_decref(doc);
    } else if (s->detach) {
        tm_note("✓", "%s started: %s", name, endpoint);
    } else {
        char took[32];
        tm_note("✓", "%s ready  %s", name, tm_human_seconds(seconds, took));
        bool vllm = tm_starts_with(s->manifest.kind, "vllm");
        char *models = tm_fmt("curl %s/v1/models", endpoint), *docs = tm_fmt("%s/docs", endpoint);
        char *logs = tm_fmt("tt-model logs %s -f", name), *stop = tm_fmt("tt-model stop %s", name);
        const char *rows[][2] = {{"endpoint", endpoint},
                                 {"models", models},
                                 {vllm ? "try" : "docs", vllm ? "tt-model curl \"hello\"" : docs},
                                 {"logs", logs},
                                 {"stop", stop}};
        tm_ui_card(server, rows, sizeof rows / sizeof *rows);
        free(models);
        free(docs);
        free(logs);
        free(stop);
    }
    free(endpoint);
}

static int pull(tm_serve *s, const char *revision, bool image, tm_error *e) {
    tm_pull_options o = {.no_image = !image, .need_image = image};
    return tm_pull(s->hub, s->target.id, revision, &o, e);
}

/* Does the installed package stand at the revision that was asked for? */
static bool at_revision(const json_t *record, const char *revision) {
    const char *have = tm_json_str_or(record, "revision", ""), *asked = tm_json_str(record, "requested_revision");
    return !revision || (asked && !strcmp(asked, revision)) ||
           (strlen(revision) >= 7 && tm_starts_with(have, revision));
}

/* --refresh: a package that was not pinned to a commit moves to where its branch stands now. Whatever goes
 * wrong, the one that is here is served. */
static bool wants_refresh(tm_serve *s) {
    const char *asked = tm_json_str(s->record, "requested_revision"), *have = tm_json_str(s->record, "revision");
    if (!have || (asked && tm_is_hex(asked, 40)))
        return false;
    tm_hub_repo repo;
    tm_error e = {0};
    if (tm_hub_repo_info(s->hub, "model", s->target.id, asked, "package", &repo, &e) != TM_OK) {
        tm_note("!", "cannot look for a newer revision (%s); serving %.8s", e.what, have);
        return false;
    }
    bool newer = strcmp(repo.sha, have) != 0;
    if (newer)
        tm_note("↻", "%s moved from %.8s to %.8s", s->target.id, have, repo.sha);
    tm_hub_repo_free(&repo);
    return newer;
}

static int load_installed(tm_serve *s, tm_error *e) {
    tm_manifest_free(&s->manifest);
    json_decref(s->record);
    s->record = NULL;
    int rc = tm_target_manifest(&s->target, &s->manifest, &s->record, e);
    return rc;
}

/* The manifest: from a path, from what is installed, or from the Hub, without fetching more than it. */
static int find_manifest(tm_serve *s, bool print, tm_error *e) {
    if (s->target.path)
        return load_installed(s, e);
    int rc = tm_installed_find(s->target.id, &s->record, e);
    if (rc)
        return rc;
    bool here = s->record && at_revision(s->record, s->target.revision);
    if (here && tm_flag(s->args, "refresh") && !print && !s->local_only && wants_refresh(s))
        here = false;
    if (here)
        return load_installed(s, e);
    if (s->local_only) {
        tm_fail(e, TM_ERROR, s->record ? "%s is installed at another revision than %s" : "%s is not installed here",
                s->target.id, s->target.revision ? s->target.revision : "");
        tm_next(e, "`tt-model pull %s%s%s`", s->target.id, s->target.revision ? "@" : "",
                s->target.revision ? s->target.revision : "");
        return TM_ERROR;
    }
    json_decref(s->record);
    s->record = NULL;
    tm_hub_repo repo;
    rc = tm_fetch_manifest(s->hub, s->target.id, s->target.revision, &repo, &s->manifest, e);
    if (!rc)
        tm_hub_repo_free(&repo);
    if (!rc && !s->manifest.container)
        rc = tm_fail(e, TM_UNSUPPORTED, "%s is a bundle without a container; the Python tt-model serves those",
                     s->target.id);
    return rc;
}

int tm_serve_weights(tm_serve *s, bool must, tm_error *e) {
    if (!s->no_weights && !s->local_only)
        return tm_pull_weights(s->hub, &s->manifest, must, e);
    for (size_t i = 0; i < s->manifest.weights_count; i++) {
        const tm_weights *w = &s->manifest.weights[i];
        char *dir = tm_weights_snapshot(w);
        if (!dir && must) {
            tm_fail(e, TM_ERROR, "the weights %s are not in the cache", w->repo);
            tm_next(e, "`tt-model pull %s --with-weights`", tm_serve_name(s));
            return TM_ERROR;
        }
        if (!dir)
            tm_note("!", "the weights %s are not in the cache; the server will look for them itself", w->repo);
        free(dir);
    }
    return TM_OK;
}

/* A profile of the package that needs no card, when the user did not choose one. */
static bool take_cpu_profile(tm_serve *s) {
    if (tm_flag(s->args, "profile") || tm_flag(s->args, "device-id"))
        return false;
    for (size_t i = 0; i < s->manifest.profile_count; i++) {
        tm_profile p;
        if (tm_manifest_profile(&s->manifest, s->manifest.profiles[i], &p, NULL) != TM_OK)
            continue;
        if (p.chips == 0) {
            tm_note("!", "there is no Tenstorrent card here: serving the profile %s, which needs none", p.name);
            tm_profile_free(&s->profile);
            s->profile = p;
            return true;
        }
        tm_profile_free(&p);
    }
    return false;
}

static int check_arch(const tm_serve *s, tm_error *e) {
    const char *here = tm_local_arch();
    if (!here || !s->profile.chips || !strcmp(here, s->manifest.arch))
        return TM_OK;
    tm_fail(e, TM_UNSUPPORTED, "%s is for %s, and the card in this machine is %s", tm_serve_name(s), s->manifest.arch,
            here);
    return TM_UNSUPPORTED;
}

/* The package's files and image, when they are not here yet. */
static int install(tm_serve *s, bool image, tm_error *e) {
    if (s->target.path || s->record)
        return TM_OK;
    int rc = pull(s, s->target.revision, image, e);
    return rc ? rc : load_installed(s, e);
}

/* Container or native: what the user asked for, else what this machine can do; a change is said aloud. */
static int choose_and_serve(tm_serve *s, tm_error *e) {
    tm_docker docker = {0};
    tm_error why = {0};
    tm_chips chips;
    tm_chips_inventory(&chips);
    bool native = tm_flag(s->args, "native");
    int rc = native ? TM_OK : tm_docker_open(&docker, &why);
    if (rc == TM_INTERRUPTED) {
        *e = why;
        return rc;
    }
    if (rc) {
        tm_note("!", "%s: serving with this project's own server instead", why.what);
        native = true;
    } else if (!native && s->profile.chips && !chips.count && !take_cpu_profile(s) && !tm_flag(s->args, "device-id") &&
               !tm_flag(s->args, "profile")) {
        tm_note("!", "there is no Tenstorrent card here: serving with this project's own server instead");
        native = true;
    }
    if (native) {
        rc = install(s, false, e);
        if (!rc)
            rc = tm_serve_native(s, e);
        if (rc == TM_UNSUPPORTED && *why.what) { /* it cannot stand in: the first reason is the one to mend */
            *e = why;
            rc = why.code;
        }
    } else {
        if (s->profile.chips)
            rc = tm_host_check(&docker, e);
        if (!rc)
            rc = check_arch(s, e);
        if (!rc)
            rc = install(s, true, e);
        if (!rc)
            rc = tm_serve_container(s, &docker, e);
    }
    if (docker.session)
        tm_docker_close(&docker);
    return rc;
}

static int print_line(tm_serve *s, tm_error *e) {
    char *line = NULL;
    int rc = tm_flag(s->args, "native") ? tm_serve_native_line(s, &line, e) : tm_serve_container_line(s, &line, e);
    if (!rc && tm_ui_json()) {
        json_t *doc = json_pack("{s:s, s:s}", "model", tm_serve_name(s), "command", line);
        tm_json_print(doc);
        json_decref(doc);
    } else if (!rc) {
        puts(line);
    }
    free(line);
    return rc;
}

int tm_cmd_serve(const tm_args *a, tm_error *e) {
    tm_hub hub;
    tm_serve s = {.args = (tm_args *)a,
                  .hub = &hub,
                  .detach = tm_flag(a, "detach"),
                  .local_only = tm_flag(a, "local-only"),
                  .no_weights = tm_flag(a, "no-weights"),
                  .restart = tm_flag(a, "restart")};
    bool print = tm_flag(a, "print");
    int rc = tm_target_parse(a->words.items[0], true, &s.target, e);
    if (!rc)
        rc = tm_int_value(a, "port", 1, 65535, 0, &s.port, e);
    if (!rc)
        rc = tm_boot_timeout(&s.timeout, e);
    if (rc) {
        tm_target_free(&s.target);
        return rc;
    }
    tm_hub_open(&hub);
    tm_step("host", "looking at the package");
    rc = find_manifest(&s, print, e);
    if (!rc)
        rc = tm_manifest_profile(&s.manifest, tm_value(a, "profile"), &s.profile, e);
    if (!rc && print) {
        rc = print_line(&s, e);
    } else if (!rc) {
        tm_step_done("%s, profile %s", s.manifest.name, s.profile.name);
        rc = choose_and_serve(&s, e);
    }
    tm_profile_free(&s.profile);
    tm_manifest_free(&s.manifest);
    json_decref(s.record);
    tm_target_free(&s.target);
    tm_hub_close(&hub);
    return rc;
}
