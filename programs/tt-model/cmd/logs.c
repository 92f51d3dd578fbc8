/* logs.c - tt-model logs: of a container or a native server, running or ended. */
#include "base/fs.h"
#include "base/json.h"
#include "base/ui.h"
#include "cli.h"
#include "package/installed.h"
#include "runtime/container.h"
#include "runtime/native.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static int parse_since(const char *text, double *since, tm_error *e) {
    *since = 0;
    if (!text)
        return TM_OK;
    char *end;
    double n = strtod(text, &end);
    static const char units[] = "smhd";
    static const double seconds[] = {1, 60, 3600, 86400};
    const char *unit = end != text && *end && !end[1] ? strchr(units, *end) : NULL;
    if (end != text && (unit || !*end) && n >= 0) {
        *since = (double)time(NULL) - n * (unit ? seconds[unit - units] : 1);
        return TM_OK;
    }
    *since = tm_parse_iso(text);
    if (*since < 0)
        return tm_fail(e, TM_USAGE, "--since %s: 90s, 10m, 2h, 1d or a time such as 2026-01-31T12:00:00Z is wanted",
                       text);
    return TM_OK;
}

static bool print_line(void *arg, int stream, const char *line) {
    (void)arg;
    FILE *to = stream == 2 ? stderr : stdout;
    return fprintf(to, "%s\n", line) >= 0 && fflush(to) == 0;
}

/* The container to show: a running one, else the newest that ended. Fresh, or NULL. */
static char *find_container(tm_docker *docker, const char *package, const char *profile, bool *running) {
    json_t *list = NULL, *c;
    char *found = NULL;
    size_t i;
    *running = false;
    if (tm_docker_containers(docker, package, true, &list, NULL) != TM_OK)
        return NULL;
    json_array_foreach(list, i, c) {
        const char *of = tm_container_label(c, ".profile");
        if ((profile && (!of || strcmp(of, profile) != 0)) || (found && (*running || !tm_container_running(c))))
            continue;
        free(found);
        found = tm_strdup(tm_json_str_or(c, "Id", ""));
        *running = tm_container_running(c);
    }
    json_decref(list);
    return found;
}

/* The same for native servers: a new reference, or NULL. */
static json_t *find_native(const char *package, const char *profile, bool *running) {
    json_t *list = tm_native_all(package), *state, *found = NULL;
    size_t i;
    *running = false;
    json_array_foreach(list, i, state) {
        if ((profile && strcmp(profile, tm_json_str(state, "profile")) != 0) || (found && *running))
            continue;
        found = state;
        *running = tm_native_alive(state);
    }
    json_incref(found);
    json_decref(list);
    return found;
}

static int show(tm_docker *docker, const char *package, const char *profile, const char *usual, const tm_log_request *q,
                tm_error *e) {
    bool container_runs = false, native_runs;
    char *id = docker ? find_container(docker, package, profile, &container_runs) : NULL;
    json_t *native = find_native(package, profile, &native_runs);
    char *kept = tm_native_log_path(package, profile ? profile : usual ? usual : "default");
    int rc;
    if (id && (container_runs || !native) && !native_runs) {
        rc = tm_docker_logs(docker, id, q, e);
    } else if (native) {
        rc = tm_native_logs(tm_json_str_or(native, "log", ""), native, q, e);
    } else if (tm_exists(kept)) { /* it was stopped: the record is gone, its log is not */
        rc = tm_native_logs(kept, NULL, q, e);
    } else {
        rc = tm_fail(e, TM_ERROR, "%s has not been served here, or its server was removed", package);
        tm_next(e, "`tt-model ps -a`");
    }
    json_decref(native);
    free(id);
    free(kept);
    return rc;
}

int tm_cmd_logs(const tm_args *a, tm_error *e) {
    tm_target t;
    tm_manifest m = {0};
    tm_log_request q = {
        .follow = tm_flag(a, "follow"), .tail = -1, .sink = print_line, .cancelled = tm_interrupt_asked};
    int rc = tm_target_parse(a->words.items[0], true, &t, e);
    if (rc)
        return rc;
    rc = tm_int_value(a, "tail", 0, 1000000000, -1, &q.tail, e);
    if (!rc)
        rc = parse_since(tm_value(a, "since"), &q.since, e);
    const char *package = t.id ? strchr(t.id, '/') + 1 : NULL, *profile = tm_value(a, "profile");
    const char *usual = NULL;
    tm_error ignored;
    if (!rc && tm_target_manifest(&t, &m, NULL, package ? &ignored : e) == TM_OK) {
        package = m.name;
        usual = m.default_profile;
    } else if (!rc && !package) {
        rc = e->code;
    }
    tm_docker docker;
    bool have_docker = !rc && tm_docker_open(&docker, NULL) == TM_OK;
    if (!rc)
        rc = show(have_docker ? &docker : NULL, package, profile, usual, &q, e);
    if (rc == TM_INTERRUPTED || (!rc && tm_interrupted())) { /* Ctrl-C is how following ends */
        *e = (tm_error){0};
        rc = TM_INTERRUPTED;
    }
    if (have_docker)
        tm_docker_close(&docker);
    tm_manifest_free(&m);
    tm_target_free(&t);
    return rc;
}
