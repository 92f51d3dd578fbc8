/* ps.c - tt-model ps: what is served on this machine, in the form that `tt model ps --json` has. */
#include "base/json.h"
#include "base/ui.h"
#include "cli.h"
#include "runtime/boot.h"
#include "runtime/container.h"
#include "runtime/native.h"
#include "served.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* The id that GET /v1/models reports, or NULL when the server does not answer (yet). */
static char *served_id(const char *host, int port) {
    tm_buf body = {0};
    char *id = NULL;
    if (tm_probe(host, port, "/v1/models", &body) == 200) {
        json_error_t ignored;
        json_t *doc = json_loadb(body.data, body.len, 0, &ignored);
        const char *first = tm_json_str(json_array_get(json_object_get(doc, "data"), 0), "id");
        id = first ? tm_strdup(first) : NULL;
        json_decref(doc);
    }
    tm_buf_free(&body);
    return id;
}

static void finish_row(json_t *row, const char *host, const char *started, bool running, bool probe) {
    int port = (int)tm_json_int(row, "port", 0);
    char *id = running && probe && port ? served_id(host, port) : NULL;
    const char *health = !running ? "stopped" : !probe || !port ? "unknown" : id ? "healthy" : "starting";
    double at = started ? tm_parse_iso(started) : -1;
    json_object_set_new(row, "health", json_string(health));
    if (at > 0) {
        time_t whole = (time_t)at;
        struct tm tm;
        char text[32];
        gmtime_r(&whole, &tm);
        strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &tm);
        json_object_set_new(row, "started_at", json_string(text));
    } else {
        json_object_set_new(row, "started_at", json_null());
    }
    json_object_set_new(row, "uptime_s",
                        running && at > 0 ? json_integer((json_int_t)((double)time(NULL) - at)) : json_null());
    json_object_set_new(row, "served_id", id ? json_string(id) : json_null());
    free(id);
}

static json_t *new_row(const char *name, const char *container, const char *container_id, const char *image, int port,
                       const char *status, const char *profile) {
    char *url = port ? tm_fmt("http://127.0.0.1:%d/v1", port) : NULL;
    json_t *row = json_pack("{s:s, s:s, s:s?, s:s?, s:s?, s:o, s:s?, s:s, s:s?}", "name", name, "backend",
                            container ? "model-manager" : "native", "container", container, "container_id",
                            container_id, "image", image, "port", port ? json_integer(port) : json_null(), "base_url",
                            url, "status", status, "profile", profile);
    free(url);
    return row;
}

static int container_rows(tm_docker *docker, bool all, bool probe, json_t *out, tm_error *e) {
    json_t *list = NULL, *c;
    int rc = tm_docker_containers(docker, NULL, all, &list, e);
    size_t i;
    json_array_foreach(list, i, c) {
        const char *repo = tm_container_label(c, ".repo"), *name = tm_container_label(c, "");
        const json_t *state = tm_json_object(c, "State");
        char *id = tm_strndup(tm_json_str_or(c, "Id", ""), 12);
        json_t *row =
            new_row(repo   ? repo
                    : name ? name
                           : "?",
                    tm_json_str_or(c, "Name", "/?") + 1, id, tm_json_str(tm_json_object(c, "Config"), "Image"),
                    tm_container_port(c), tm_json_str_or(state, "Status", "exited"), tm_container_label(c, ".profile"));
        finish_row(row, NULL, tm_json_str(state, "StartedAt"), tm_container_running(c), probe);
        json_array_append_new(out, row);
        free(id);
    }
    json_decref(list);
    return rc;
}

/* *rebooted: how many there are that ended with the machine, shown or not. */
static void native_rows(bool all, bool probe, json_t *out, int *rebooted) {
    json_t *list = tm_native_all(NULL), *s;
    size_t i;
    json_array_foreach(list, i, s) {
        bool running = tm_native_alive(s);
        *rebooted += !strcmp(tm_native_status(s), "rebooted");
        if (!running && !all)
            continue;
        const char *repo = tm_json_str(s, "repo_id");
        json_t *row = new_row(repo ? repo : tm_json_str(s, "package"), NULL, NULL, NULL, (int)tm_json_int(s, "port", 0),
                              tm_native_status(s), tm_json_str(s, "profile"));
        json_object_set(row, "pid", json_object_get(s, "pid"));
        if (json_object_get(s, "exit_code"))
            json_object_set(row, "exit_code", json_object_get(s, "exit_code"));
        finish_row(row, tm_json_str(s, "host"), tm_json_str(s, "started_at"), running, probe);
        json_array_append_new(out, row);
    }
    json_decref(list);
}

static void uptime_text(const json_t *row, char out[32]) {
    json_int_t s = tm_json_int(row, "uptime_s", -1);
    if (s < 0)
        snprintf(out, 32, "-");
    else if (s >= 86400)
        snprintf(out, 32, "%lldd %lldh", (long long)s / 86400, (long long)s / 3600 % 24);
    else if (s >= 3600)
        snprintf(out, 32, "%lldh %lldm", (long long)s / 3600, (long long)s / 60 % 60);
    else
        snprintf(out, 32, "%lld%s", (long long)(s >= 60 ? s / 60 : s), s >= 60 ? "m" : "s");
}

static void print_table(const json_t *rows) {
    size_t i;
    json_t *row;
    if (!json_array_size(rows)) {
        puts("Nothing is being served.");
        return;
    }
    printf("%-34s %-12s %-10s %6s  %-9s %-8s %s\n", "MODEL", "PROFILE", "STATUS", "PORT", "HEALTH", "UP", "SERVER");
    json_array_foreach(rows, i, row) {
        char up[32], port[16], *server;
        const char *container = tm_json_str(row, "container");
        uptime_text(row, up);
        snprintf(port, sizeof port, "%lld", (long long)tm_json_int(row, "port", 0));
        server = container ? tm_strdup(container) : tm_fmt("process %lld", (long long)tm_json_int(row, "pid", 0));
        printf("%-34s %-12s %-10s %6s  %-9s %-8s %s\n", tm_json_str(row, "name"), tm_json_str_or(row, "profile", "-"),
               tm_json_str(row, "status"), port, tm_json_str(row, "health"), up, server);
        free(server);
    }
}

int tm_served_list(bool all, bool probe, tm_served *out, tm_error *e) {
    *out = (tm_served){.rows = json_array()};
    tm_docker docker;
    tm_error why = {0};
    int rc = TM_OK;
    native_rows(all, probe, out->rows, &out->rebooted);
    if (tm_docker_open(&docker, &why) == TM_OK) {
        rc = container_rows(&docker, all, probe, out->rows, e);
        tm_docker_close(&docker);
    } else if (why.code != TM_TOOL_MISSING) {
        tm_note("!", "containers are not shown: %s", why.what);
    }
    return rc;
}

int tm_cmd_ps(const tm_args *a, tm_error *e) {
    bool probe = !tm_flag(a, "no-probe");
    tm_served s;
    int rc = tm_served_list(tm_flag(a, "all"), probe, &s, e);
    if (!rc && tm_ui_json()) {
        json_t *doc = json_pack("{s:O, s:b}", "served", s.rows, "probed", probe);
        tm_json_print(doc);
        json_decref(doc);
    } else if (!rc) {
        print_table(s.rows);
    }
    const char *it = s.rebooted == 1 ? "it" : "them";
    if (!rc && s.rebooted)
        tm_note("!",
                "%d native server%s ended when the machine was restarted: `tt-model ps -a` shows %s, "
                "`tt-model resume --all` starts %s again",
                s.rebooted, s.rebooted == 1 ? "" : "s", it, it);
    json_decref(s.rows);
    return rc;
}
