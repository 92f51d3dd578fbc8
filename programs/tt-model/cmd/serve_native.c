/* serve_native.c - serving a SuperPoint package with this project's own server, without Docker. */
#include "base/fs.h"
#include "base/paths.h"
#include "base/ui.h"
#include "runtime/boot.h"
#include "runtime/native.h"
#include "runtime/port.h"
#include "runtime/startup.h"
#include "serve.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { MAX_CONFIG = 1 << 20 };

/* Only weights of this network can be served by this project's server: their config.json says so. */
static int weights_file(tm_serve *s, char **path, tm_error *e) {
    char *dir = s->manifest.has_weights ? tm_weights_snapshot(&s->manifest.weights[0]) : NULL;
    if (!dir) {
        tm_fail(e, TM_UNSUPPORTED, "%s cannot be served natively: it has no weights here", tm_serve_name(s));
        tm_next(e, "`tt-model pull %s --with-weights`", tm_serve_name(s));
        return TM_UNSUPPORTED;
    }
    char *config_path = tm_join(dir, "config.json");
    json_t *config = NULL;
    *path = tm_join(dir, "model.safetensors");
    int rc = TM_OK;
    if (tm_json_load(config_path, MAX_CONFIG, &config, NULL) != TM_OK ||
        strcasecmp(tm_json_str_or(config, "model_type", ""), "superpoint") != 0 || tm_file_size(*path) < 0) {
        tm_fail(e, TM_UNSUPPORTED, "%s cannot be served natively: its weights are not SuperPoint's", tm_serve_name(s));
        tm_next(e, "Serve it in its container, which needs Docker.");
        free(*path);
        *path = NULL;
        rc = TM_UNSUPPORTED;
    }
    json_decref(config);
    free(config_path);
    free(dir);
    return rc;
}

static void make_command(const tm_serve *s, const char *program, const char *weights, const char *host, int port,
                         tm_list *argv) {
    tm_list_add(argv, program);
    tm_list_add(argv, "serve");
    tm_list_add(argv, "--host");
    tm_list_add(argv, host);
    tm_list_add(argv, "--port");
    tm_list_addf(argv, "%d", port);
    tm_list_add(argv, "--weights");
    tm_list_add(argv, weights);
    tm_list_add(argv, "--model-name");
    tm_list_add(argv, s->manifest.weights[0].repo);
    const char *engine = tm_json_str(json_object_get(s->profile.serve, "env"), "SUPERPOINT_ENGINE");
    if (engine && !tm_list_has(&s->args->passed, "--engine")) {
        tm_list_add(argv, "--engine");
        tm_list_add(argv, engine);
    }
    for (size_t i = 0; i < s->args->passed.count; i++)
        tm_list_add(argv, s->args->passed.items[i]);
}

/* The profile's environment, less what names places inside a container. */
static void make_env(const tm_serve *s, tm_list *env) {
    const char *key;
    json_t *v;
    json_object_foreach(json_object_get(s->profile.serve, "env"), key, v) {
        if (!tm_starts_with(json_string_value(v), "/") && strcmp(key, "HF_MODEL") != 0)
            tm_list_addf(env, "%s=%s", key, json_string_value(v));
    }
    tm_list_add(env, "HF_HUB_OFFLINE=1"); /* all that it needs is here */
}

static const char *host_of(const tm_serve *s) {
    const char *host = tm_value(s->args, "host");
    return host ? host : "0.0.0.0";
}

static int find_program(char **program, tm_error *e) {
    *program = tm_native_program();
    if (*program)
        return TM_OK;
    tm_fail(e, TM_TOOL_MISSING, "the program superpoint is not there");
    tm_next(e, "Install it beside tt-model, or set SUPERPOINT_BIN to it.");
    return TM_TOOL_MISSING;
}

int tm_serve_native_line(tm_serve *s, char **line, tm_error *e) {
    char *program = NULL, *weights = NULL;
    int rc = find_program(&program, e);
    if (!rc)
        rc = weights_file(s, &weights, e);
    if (!rc) {
        tm_list argv = {0}, env = {0};
        tm_buf b = {0};
        make_command(s, program, weights, host_of(s), s->port ? (int)s->port : TM_FIRST_PORT, &argv);
        make_env(s, &env);
        for (size_t i = 0; i < env.count; i++)
            tm_buf_printf(&b, "%s ", env.items[i]);
        for (size_t i = 0; i < argv.count; i++) {
            tm_buf_puts(&b, i ? " " : "");
            tm_buf_shell_word(&b, argv.items[i]);
        }
        *line = tm_buf_take(&b);
        tm_list_free(&argv);
        tm_list_free(&env);
    }
    free(program);
    free(weights);
    return rc;
}

static int follow(void *arg, const tm_log_request *q, tm_error *e) {
    const json_t *state = arg;
    return tm_native_logs(tm_json_str(state, "log"), state, q, e);
}

static bool alive(void *arg) {
    return tm_native_alive(arg);
}

static int refuse_running(const tm_serve *s, tm_error *e) {
    json_t *state = tm_native_state(s->manifest.name, s->profile.name);
    int rc = TM_OK;
    if (state && tm_native_alive(state)) {
        rc = tm_fail(e, TM_ERROR, "%s is running already, on port %lld", tm_serve_name(s),
                     (long long)tm_json_int(state, "port", 0));
        tm_next(e, "`tt-model stop %s`", tm_serve_name(s));
    }
    json_decref(state);
    return rc;
}

/* Choose the port and start, under the lock. The lock is kept until the server listens, so that the next
 * serve sees the port taken. */
static int start_locked(tm_serve *s, const char *program, const char *weights, json_t **state, tm_error *e) {
    int port = 0, rc = refuse_running(s, e);
    if (!rc)
        rc = tm_port_take((int)s->port, &port, e);
    if (rc)
        return rc;
    tm_list argv = {0}, env = {0};
    make_command(s, program, weights, host_of(s), port, &argv);
    make_env(s, &env);
    tm_step("server", "starting superpoint");
    tm_native_start start = {.repo_id = s->target.id,
                             .package = s->manifest.name,
                             .profile = s->profile.name,
                             .revision = tm_json_str(s->record, "revision"),
                             .weights = s->manifest.weights[0].repo,
                             .host = host_of(s),
                             .port = port,
                             .argv = &argv,
                             .env = &env,
                             .restart = s->restart};
    rc = tm_native_launch(&start, state, e);
    if (!rc) {
        tm_native_await_port(*state);
        tm_step_done("process %lld, port %d", (long long)tm_json_int(*state, "pid", 0), port);
    }
    tm_list_free(&argv);
    tm_list_free(&env);
    return rc;
}

static int arrange_restart(tm_error *e) {
    bool wanted;
    int rc = tm_startup_update(&wanted, e);
    char *advice = rc ? NULL : tm_startup_advice();
    if (advice)
        tm_note("!", "%s", advice);
    free(advice);
    return rc;
}

int tm_serve_native(tm_serve *s, tm_error *e) {
    char *program = NULL, *weights = NULL;
    json_t *state = NULL;
    tm_lock lock = {-1};
    double started = tm_seconds();
    int rc = refuse_running(s, e);
    if (!rc)
        rc = find_program(&program, e);
    if (!rc)
        rc = tm_serve_weights(s, true, e);
    if (!rc)
        rc = weights_file(s, &weights, e);
    if (!rc)
        rc = tm_choice_lock(&lock, e);
    if (!rc) {
        rc = start_locked(s, program, weights, &state, e);
        tm_unlock(&lock);
    }
    if (!rc && s->restart)
        rc = arrange_restart(e);
    if (!rc && !s->detach) {
        tm_boot b = {.marker = "Application startup complete", /* our own, whatever the container's server says */
                     .host = host_of(s),
                     .port = (int)tm_json_int(state, "port", 0),
                     .timeout = s->timeout,
                     .follow = follow,
                     .alive = alive,
                     .arg = state};
        rc = tm_boot_watch(&b, &s->args->evidence, e);
        if (rc == TM_INTERRUPTED)
            tm_next(e, "`tt-model logs %s -f` goes on watching\n`tt-model stop %s` ends it", tm_serve_name(s),
                    tm_serve_name(s));
        else if (rc && !*e->next)
            tm_next(e, "`tt-model logs %s` shows all of its log", tm_serve_name(s));
    }
    if (!rc)
        tm_serve_ready(s, "native", (int)tm_json_int(state, "port", 0), tm_seconds() - started);
    json_decref(state);
    free(program);
    free(weights);
    return rc;
}
