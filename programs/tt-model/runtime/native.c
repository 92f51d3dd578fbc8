#include "native.h"

#include "base/fs.h"
#include "base/paths.h"
#include "base/process.h"
#include "base/ui.h"
#include "keeper.h"
#include "port.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { PORT_WAIT_MS = 60000, NAP_MS = 50 };

static char *state_path(const char *package, const char *profile) {
    return tm_root_file("native/%s--%s.json", package, profile);
}

char *tm_native_log_path(const char *package, const char *profile) {
    return tm_root_file("%s/logs/%s.log", package, profile);
}

char *tm_native_program(void) {
    const char *set = getenv("SUPERPOINT_BIN");
    if (set && *set)
        return tm_find_program(set);
    char self[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    if (n > 0) {
        self[n] = '\0';
        char *dir = tm_dirname(self), *beside = tm_join(dir, "superpoint");
        free(dir);
        if (access(beside, X_OK) == 0)
            return beside;
        free(beside);
    }
    return tm_find_program("superpoint");
}

static json_t *strings(const tm_list *l) {
    json_t *out = json_array();
    for (size_t i = 0; l && i < l->count; i++)
        json_array_append_new(out, json_string(l->items[i]));
    return out;
}

int tm_native_launch(const tm_native_start *s, json_t **out, tm_error *e) {
    char *path = state_path(s->package, s->profile), *log = tm_native_log_path(s->package, s->profile), now[32];
    json_t *state =
        json_pack("{s:s?, s:s, s:s, s:s?, s:s?, s:s, s:i, s:s?, s:s, s:s, s:o, s:o, s:b}", "repo_id", s->repo_id,
                  "package", s->package, "profile", s->profile, "revision", s->revision, "weights", s->weights, "host",
                  s->host, "port", s->port, "devices", s->devices, "log", log, "started_at", tm_now_iso(now), "argv",
                  strings(s->argv), "env", strings(s->env), "restart", s->restart);
    int rc = tm_mkdirs_for(path, e);
    if (!rc)
        rc = tm_mkdirs_for(log, e);
    if (!rc)
        rc = tm_keeper_start(path, log, state, s->argv, s->env, e);
    json_decref(state);
    *out = rc ? NULL : tm_native_state(s->package, s->profile);
    if (!rc && !*out)
        rc = tm_fail(e, TM_TOOL_FAILED, "the server's state was not written to %s", path);
    free(path);
    free(log);
    return rc;
}

static void add_strings(tm_list *to, const json_t *array) {
    size_t i;
    json_t *v;
    json_array_foreach(array, i, v) {
        if (json_is_string(v))
            tm_list_add(to, json_string_value(v));
    }
}

int tm_native_again(const json_t *record, int port, json_t **state, tm_error *e) {
    tm_list argv = {0}, env = {0};
    add_strings(&argv, json_object_get(record, "argv"));
    add_strings(&env, json_object_get(record, "env"));
    for (size_t i = 0; i + 1 < argv.count; i++)
        if (!strcmp(argv.items[i], "--port")) {
            free(argv.items[i + 1]);
            argv.items[i + 1] = tm_fmt("%d", port);
            break;
        }
    tm_native_start start = {.repo_id = tm_json_str(record, "repo_id"),
                             .package = tm_json_str(record, "package"),
                             .profile = tm_json_str(record, "profile"),
                             .revision = tm_json_str(record, "revision"),
                             .weights = tm_json_str(record, "weights"),
                             .host = tm_json_str_or(record, "host", "0.0.0.0"),
                             .port = port,
                             .devices = tm_json_str(record, "devices"),
                             .argv = &argv,
                             .env = &env,
                             .restart = tm_json_bool(record, "restart", false)};
    int rc = argv.count ? tm_native_launch(&start, state, e)
                        : tm_fail(e, TM_ERROR, "the record of %s names no program", start.package);
    tm_list_free(&argv);
    tm_list_free(&env);
    return rc;
}

static json_t *load_state(const char *path) {
    json_t *state = NULL;
    if (tm_json_load(path, TM_MAX_NATIVE_STATE, &state, NULL) == TM_OK && json_is_object(state) &&
        tm_json_str(state, "package") && tm_json_str(state, "profile"))
        return state;
    json_decref(state);
    return NULL;
}

json_t *tm_native_state(const char *package, const char *profile) {
    char *path = state_path(package, profile);
    json_t *state = load_state(path);
    free(path);
    return state;
}

json_t *tm_native_all(const char *package) {
    json_t *list = json_array();
    char *dir = tm_root_file("native");
    struct dirent **names = NULL;
    int n = scandir(dir, &names, NULL, alphasort);
    for (int i = 0; i < n; i++) {
        if (tm_ends_with(names[i]->d_name, ".json")) {
            char *path = tm_join(dir, names[i]->d_name);
            json_t *state = load_state(path);
            if (state && (!package || !strcmp(package, tm_json_str(state, "package"))))
                json_array_append(list, state);
            json_decref(state);
            free(path);
        }
        free(names[i]);
    }
    free(names);
    free(dir);
    return list;
}

bool tm_native_before_boot(const json_t *state) {
    char boot[64];
    tm_boot_id(boot);
    return strcmp(tm_json_str_or(state, "boot_id", ""), boot) != 0;
}

bool tm_native_alive(const json_t *state) {
    return !json_object_get(state, "exit_code") && !tm_native_before_boot(state) &&
           tm_process_start((long)tm_json_int(state, "pid", 0)) == tm_json_int(state, "start_ticks", -1);
}

const char *tm_native_status(const json_t *state) {
    if (tm_native_alive(state))
        return "running";
    if (json_object_get(state, "exit_code"))
        return "exited";
    return tm_native_before_boot(state) ? "rebooted" : "lost";
}

void tm_native_forget(const json_t *state) {
    char *path = state_path(tm_json_str(state, "package"), tm_json_str(state, "profile"));
    unlink(path);
    free(path);
}

static void nap(long ms) {
    nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL);
}

void tm_native_await_port(const json_t *state) {
    int port = (int)tm_json_int(state, "port", 0);
    for (long waited = 0; waited < PORT_WAIT_MS && !tm_interrupted(); waited += NAP_MS) {
        if (!tm_port_free(port) || !tm_native_alive(state))
            break;
        tm_step_tick();
        nap(NAP_MS);
    }
}

/* The keeper writes the exit code a moment after the server has ended. */
static json_t *final_state(const json_t *state) {
    json_t *now = NULL;
    for (int i = 0; i < 50; i++) {
        json_decref(now);
        now = tm_native_state(tm_json_str(state, "package"), tm_json_str(state, "profile"));
        if (!now || json_object_get(now, "exit_code"))
            break;
        nap(20);
    }
    return now;
}

int tm_native_stop(const json_t *state, int grace, bool *clean, tm_error *e) {
    pid_t pid = (pid_t)tm_json_int(state, "pid", 0);
    bool killed = false;
    *clean = false;
    if (tm_native_alive(state) && kill(pid, SIGTERM) != 0 && errno == EPERM)
        return tm_fail(e, TM_NEEDS_SUDO, "the server (process %d) belongs to another user", (int)pid);
    for (long waited = 0; tm_native_alive(state); waited += NAP_MS) {
        if (!killed && waited >= grace * 1000L) {
            killed = true;
            kill(pid, SIGKILL);
        } else if (waited > grace * 1000L + 10000) {
            return tm_fail(e, TM_TOOL_FAILED, "process %d does not end", (int)pid);
        }
        tm_step_tick();
        nap(NAP_MS);
    }
    json_t *end = final_state(state);
    *clean = !killed && tm_json_int(end, "exit_code", -1) == 0;
    json_decref(end);
    return TM_OK;
}

/* Lines of the log are "<time> <stream> <text>". */
static bool give_line(const tm_log_request *q, char *line) {
    char *stream = strchr(line, ' ');
    if (!stream || !stream[1] || stream[2] != ' ')
        return q->sink(q->arg, 1, line);
    *stream = '\0';
    if (q->since > 0 && tm_parse_iso(line) < q->since)
        return true;
    int number = stream[1] == '2' ? 2 : 1;
    if (!q->timestamps)
        return q->sink(q->arg, number, stream + 3);
    char *text = tm_fmt("%s %s", line, stream + 3);
    bool more = q->sink(q->arg, number, text);
    free(text);
    return more;
}

/* Where the last `lines` lines begin. */
static long tail_offset(FILE *f, long lines) {
    if (lines < 0 || fseek(f, 0, SEEK_END) != 0)
        return 0;
    long end = ftell(f), at = end, found = 0;
    char chunk[4096];
    if (lines == 0)
        return end;
    while (at > 0) {
        long n = at < (long)sizeof chunk ? at : (long)sizeof chunk;
        at -= n;
        if (fseek(f, at, SEEK_SET) != 0 || fread(chunk, 1, (size_t)n, f) != (size_t)n)
            return 0;
        for (long i = n; i-- > 0;)
            if (chunk[i] == '\n' && at + i + 1 != end && ++found == lines)
                return at + i + 1;
    }
    return 0;
}

int tm_native_logs(const char *log_path, const json_t *state, const tm_log_request *q, tm_error *e) {
    FILE *f = fopen(log_path, "re");
    if (!f)
        return tm_fail(e, TM_ERROR, "there is no log at %s", log_path);
    fseek(f, tail_offset(f, q->tail), SEEK_SET);
    char *line = NULL;
    size_t cap = 0;
    bool more = true, alive = true;
    while (more) {
        ssize_t n = getline(&line, &cap, f);
        if (n > 0 && line[n - 1] == '\n') {
            line[n - 1] = '\0';
            more = give_line(q, line);
            continue;
        }
        if (n > 0)
            fseek(f, -(long)n, SEEK_CUR); /* a line that is being written */
        if (!q->follow || (q->cancelled && q->cancelled(q->arg)) || (!alive && n <= 0))
            break;
        alive = tm_native_alive(state); /* once more round after its end, for the last lines */
        nap(100);
        clearerr(f);
    }
    free(line);
    fclose(f);
    return TM_OK;
}
