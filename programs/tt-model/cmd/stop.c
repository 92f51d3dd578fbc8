/* stop.c - tt-model stop: the containers and the native servers of a package. */
#include "stop.h"
#include "base/json.h"
#include "base/ui.h"
#include "cli.h"
#include "package/installed.h"
#include "runtime/container.h"
#include "runtime/native.h"
#include "runtime/startup.h"

#include <string.h>

static void report(tm_stopped *done, const char *name, const char *profile, tm_stop_outcome outcome, bool was_running) {
    json_array_append_new(done->list, json_pack("{s:s, s:s, s:s}", "server", name, "profile", profile, "outcome",
                                                was_running ? tm_stop_name(outcome) : "removed"));
    if (!was_running)
        return;
    done->count++;
    if (outcome == TM_STOP_CLEAN)
        tm_step_done("%s", tm_stop_text(outcome));
    else
        tm_step_skip("%s", tm_stop_text(outcome));
}

static int stop_containers(tm_docker *docker, const char *package, const char *profile, tm_stopped *done, tm_error *e) {
    json_t *list = NULL, *c;
    int rc = tm_docker_containers(docker, package, true, &list, e);
    size_t i;
    json_array_foreach(list, i, c) {
        const char *name = tm_json_str_or(c, "Name", "/?") + 1, *of = tm_container_label(c, ".profile");
        bool running = tm_container_running(c);
        tm_stop_outcome outcome = TM_STOP_CLEAN;
        if (rc || (profile && (!of || strcmp(of, profile) != 0)))
            continue;
        if (running)
            tm_step("stop", "stopping %s", name);
        rc = running ? tm_container_stop(docker, c, &outcome, e) : tm_docker_remove(docker, name, e);
        if (!rc)
            report(done, name, of ? of : "", outcome, running);
    }
    json_decref(list);
    return rc;
}

static int stop_natives(const char *package, const char *profile, tm_stopped *done, tm_error *e) {
    json_t *list = tm_native_all(package), *state;
    int rc = TM_OK;
    size_t i;
    json_array_foreach(list, i, state) {
        const char *of = tm_json_str(state, "profile");
        bool running = tm_native_alive(state), clean = true;
        if (rc || (profile && strcmp(of, profile) != 0))
            continue;
        if (running) {
            tm_step("stop", "stopping the native server of %s, process %lld", package,
                    (long long)tm_json_int(state, "pid", 0));
            rc = tm_native_stop(state, TM_STOP_SECONDS, &clean, e);
        }
        if (!rc) {
            tm_native_forget(state);
            report(done, "native", of, clean ? TM_STOP_CLEAN : TM_STOP_KILLED, running);
        }
    }
    json_decref(list);
    return rc;
}

int tm_stop_package(tm_docker *docker, const char *package, const char *profile, tm_stopped *done, tm_error *e) {
    *done = (tm_stopped){.list = json_array()};
    bool wanted;
    int rc = stop_natives(package, profile, done, e);
    if (!rc)
        rc = tm_startup_update(&wanted, e);
    if (!rc && docker)
        rc = stop_containers(docker, package, profile, done, e);
    return rc;
}

int tm_cmd_stop(const tm_args *a, tm_error *e) {
    tm_target t;
    tm_manifest m = {0};
    int rc = tm_target_parse(a->words.items[0], true, &t, e);
    if (rc)
        return rc;
    /* A package that was removed, or was served from a path, still has servers by its name. */
    const char *package = t.id ? strchr(t.id, '/') + 1 : NULL;
    if (tm_target_manifest(&t, &m, NULL, e) == TM_OK)
        package = m.name;
    else if (!package)
        rc = e->code;
    if (!rc)
        *e = (tm_error){0};
    tm_docker docker;
    tm_error why = {0};
    bool have_docker = !rc && tm_docker_open(&docker, &why) == TM_OK;
    tm_stopped done = {0};
    if (!rc)
        rc = tm_stop_package(have_docker ? &docker : NULL, package, tm_value(a, "profile"), &done, e);
    if (!rc && !done.count && !have_docker && why.code != TM_TOOL_MISSING) {
        *e = why; /* "nothing running" would be a guess */
        rc = why.code;
    }
    if (!rc && tm_ui_json()) {
        json_t *doc = json_pack("{s:i, s:O}", "stopped", done.count, "servers", done.list);
        tm_json_print(doc);
        json_decref(doc);
    } else if (!rc && done.count) {
        tm_note("✓", "stopped %d server%s", done.count, done.count == 1 ? "" : "s");
    } else if (!rc) {
        tm_note("○", "nothing running");
    }
    json_decref(done.list);
    if (have_docker)
        tm_docker_close(&docker);
    tm_manifest_free(&m);
    tm_target_free(&t);
    return rc;
}
