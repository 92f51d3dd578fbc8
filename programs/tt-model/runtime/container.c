#include "container.h"

#include "base/fs.h"
#include "base/ui.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { RESET_SECONDS = 180, KILLED = 137 };

#define HUGEPAGES "/dev/hugepages-1G"

static bool hugepages_mounted(void) {
    FILE *f = fopen("/proc/mounts", "re");
    char line[4096], where[2048], type[128];
    bool found = false;
    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, "%*s %2047s %127s", where, type) == 2 && !strcmp(where, HUGEPAGES) &&
            !strcmp(type, "hugetlbfs"))
            found = true;
    if (f)
        fclose(f);
    return found;
}

int tm_host_check(const tm_docker *docker, tm_error *e) {
    tm_chips all;
    tm_chips_inventory(&all);
    if (!all.count) {
        tm_fail(e, TM_NO_DEVICES, "there is no Tenstorrent card in this machine");
        tm_why(e, "%s holds no chips.", TM_DEVICE_DIR);
        tm_next(e, "Install the card and its kernel driver (tt-kmd).");
        return TM_NO_DEVICES;
    }
    for (int i = 0; docker->rootless && i < all.count; i++) {
        char path[64];
        snprintf(path, sizeof path, "%s/%d", TM_DEVICE_DIR, all.ids[i]);
        if (access(path, R_OK | W_OK) != 0)
            return tm_fail(e, TM_NEEDS_SUDO, "%s is not readable and writable for this user", path);
    }
    if (!hugepages_mounted()) {
        tm_fail(e, TM_CONFIG, "%s is not mounted", HUGEPAGES);
        tm_why(e, "The card's driver needs 1 GiB pages there.");
        tm_next(e, "Install tenstorrent-tools (tt-system-tools), which sets them up, and restart the machine.");
        return TM_CONFIG;
    }
    if (docker->rootless && access(HUGEPAGES, W_OK) != 0)
        return tm_fail(e, TM_NEEDS_SUDO, "%s is not writable for this user", HUGEPAGES);
    return TM_OK;
}

const char *tm_container_label(const json_t *container, const char *suffix) {
    char *key = tm_fmt("%s%s", TM_LABEL, suffix);
    const char *v = tm_json_str(tm_json_object(tm_json_object(container, "Config"), "Labels"), key);
    free(key);
    return v;
}

int tm_container_port(const json_t *container) {
    const json_t *bindings = tm_json_object(tm_json_object(container, "HostConfig"), "PortBindings");
    const char *inside;
    json_t *list;
    int lowest = 0;
    json_object_foreach((json_t *)bindings, inside, list) {
        size_t i;
        json_t *b;
        json_array_foreach(list, i, b) {
            int port = atoi(tm_json_str_or(b, "HostPort", "0"));
            if (port > 0 && (!lowest || port < lowest))
                lowest = port;
        }
    }
    return lowest;
}

bool tm_container_running(const json_t *container) {
    return tm_json_bool(tm_json_object(container, "State"), "Running", false);
}

int tm_container_start(tm_docker *docker, const tm_launch *l, char **id, tm_error *e) {
    json_t *old = NULL, *made = NULL, *body = tm_launch_body(l);
    *id = NULL;
    int rc = tm_docker_inspect(docker, l->name, &old, e);
    if (!rc && old && tm_container_running(old)) {
        tm_fail(e, TM_ERROR, "%s is running already", l->name);
        rc = TM_ERROR;
    } else if (!rc && old) {
        rc = tm_docker_remove(docker, l->name, e);
    }
    char *path = tm_fmt("/containers/create?name=%s", l->name);
    if (!rc)
        rc = tm_docker_call(docker, "POST", path, body, NULL, &made, e);
    if (!rc) {
        *id = tm_strdup(tm_json_str_or(made, "Id", l->name));
        free(path);
        path = tm_fmt("/containers/%s/start", *id);
        rc = tm_docker_call(docker, "POST", path, NULL, NULL, NULL, e);
        if (rc) {
            tm_docker_remove(docker, *id, NULL);
            free(*id);
            *id = NULL;
            if (strstr(e->why, "port is already allocated") || strstr(e->why, "address already in use"))
                tm_next(e, "Port %d is taken. Leave --port out, or give one that is free.", l->port);
        }
    }
    free(path);
    json_decref(body);
    json_decref(old);
    json_decref(made);
    return rc;
}

int tm_container_keep(tm_docker *docker, const char *id, tm_error *e) {
    char *path = tm_fmt("/containers/%s/update", id);
    json_t *body = json_pack("{s:{s:s}}", "RestartPolicy", "Name", "unless-stopped");
    int rc = tm_docker_call(docker, "POST", path, body, NULL, NULL, e);
    json_decref(body);
    free(path);
    return rc;
}

/* Run the package's own tt-smi on the chips. */
static bool reset_chips(tm_docker *docker, const json_t *container) {
    json_t *devices = json_object_get(tm_json_object(container, "HostConfig"), "Devices"), *made = NULL, *state = NULL;
    json_t *body =
        json_pack("{s:s, s:[s], s:[s,s], s:{s:O, s:[{s:s,s:s,s:s}]}}", "Image", tm_json_str_or(container, "Image", ""),
                  "Entrypoint", "tt-smi", "Cmd", "-r", "all", "HostConfig", "Devices", devices, "Mounts", "Type",
                  "bind", "Source", HUGEPAGES, "Target", HUGEPAGES);
    bool done = false;
    char *path = NULL;
    if (tm_docker_call(docker, "POST", "/containers/create", body, NULL, &made, NULL) == TM_OK) {
        const char *id = tm_json_str_or(made, "Id", "");
        path = tm_fmt("/containers/%s/start", id);
        int rc = tm_docker_call(docker, "POST", path, NULL, NULL, NULL, NULL);
        for (int s = 0; rc == TM_OK && s < RESET_SECONDS * 2; s++) {
            json_decref(state);
            rc = tm_docker_inspect(docker, id, &state, NULL);
            if (rc == TM_OK && state && !tm_container_running(state)) {
                done = tm_json_int(tm_json_object(state, "State"), "ExitCode", 1) == 0;
                break;
            }
            tm_step_tick();
            nanosleep(&(struct timespec){.tv_nsec = 500000000}, NULL);
        }
        tm_docker_remove(docker, id, NULL);
    }
    json_decref(state);
    json_decref(body);
    json_decref(made);
    free(path);
    return done;
}

static tm_stop_outcome after_kill(tm_docker *docker, const json_t *container) {
    if (!json_array_size(json_object_get(tm_json_object(container, "HostConfig"), "Devices")))
        return TM_STOP_KILLED;
    tm_chips taken = {0};
    const char *mine = tm_container_label(container, ".devices");
    if (tm_chips_taken(docker, &taken, NULL) != TM_OK)
        return TM_STOP_RESET_SKIPPED;
    for (const char *s = mine; s && *s; s += strcspn(s, ","), s += *s == ',')
        if (tm_chips_has(&taken, atoi(s)))
            return TM_STOP_RESET_SKIPPED;
    return reset_chips(docker, container) ? TM_STOP_RESET : TM_STOP_RESET_FAILED;
}

int tm_container_stop(tm_docker *docker, const json_t *container, tm_stop_outcome *outcome, tm_error *e) {
    const char *id = tm_json_str_or(container, "Id", "");
    char *path = tm_fmt("/containers/%s/stop?t=%d", id, TM_STOP_SECONDS);
    json_t *after = NULL;
    bool missing;
    int rc = tm_docker_call(docker, "POST", path, NULL, &missing, NULL, e);
    if (!rc)
        rc = tm_docker_inspect(docker, id, &after, e);
    *outcome = TM_STOP_CLEAN;
    if (!rc) {
        json_int_t code = tm_json_int(tm_json_object(after, "State"), "ExitCode", KILLED);
        rc = after ? tm_docker_remove(docker, id, e) : TM_OK;
        if (code == KILLED)
            *outcome = after_kill(docker, container);
    }
    json_decref(after);
    free(path);
    return rc;
}

const char *tm_stop_text(tm_stop_outcome outcome) {
    static const char *const text[] = {"clean shutdown", "killed: it did not end by itself",
                                       "killed; the chips were reset",
                                       "killed; the reset did not complete: the machine may need a restart",
                                       "killed; the reset was skipped: the machine may need a restart"};
    return text[outcome];
}

const char *tm_stop_name(tm_stop_outcome outcome) {
    static const char *const name[] = {"clean", "killed", "reset", "reset-failed", "reset-skipped"};
    return name[outcome];
}
