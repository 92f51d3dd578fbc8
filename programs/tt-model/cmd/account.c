/* account.c - tt-model login, search and version. */
#include "base/fs.h"
#include "base/json.h"
#include "base/paths.h"
#include "base/ui.h"
#include "cli.h"
#include "hub/hub.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

enum { MAX_TOKEN = 4096 };

static char *ask_token(void) {
    if (!isatty(0))
        return NULL;
    struct termios old, quiet;
    bool hidden = tcgetattr(0, &old) == 0;
    if (hidden) {
        quiet = old;
        quiet.c_lflag &= ~(tcflag_t)ECHO;
        tcsetattr(0, TCSANOW, &quiet);
    }
    fprintf(stderr, "Hub token (it is not shown): ");
    char line[MAX_TOKEN];
    char *got = fgets(line, sizeof line, stdin);
    if (hidden)
        tcsetattr(0, TCSANOW, &old);
    fputc('\n', stderr);
    if (!got)
        return NULL;
    line[strcspn(line, "\r\n")] = '\0';
    return *line ? tm_strdup(line) : NULL;
}

static bool plausible(const char *token) {
    for (const char *s = token; *s; s++)
        if (*s <= ' ' || *s > '~')
            return false;
    return *token != '\0';
}

int tm_cmd_login(const tm_args *a, tm_error *e) {
    char *token = tm_value(a, "token") ? tm_strdup(tm_value(a, "token")) : ask_token();
    if (!token || !plausible(token)) {
        free(token);
        return tm_fail(e, TM_USAGE, "login needs a token: type it in, or give --token");
    }
    tm_hub hub;
    tm_hub_open(&hub);
    free(hub.token);
    hub.token = tm_strdup(token);
    json_t *who = NULL;
    int rc = tm_hub_json(&hub, &(tm_hub_request){.path = "/api/whoami-v2", .what = "who you are"}, &who, e);
    char *path = tm_hf_token_path();
    mode_t old = umask(077); /* for this user's eyes */
    if (!rc)
        rc = tm_write_file(path, token, strlen(token), e);
    umask(old);
    const char *name = tm_json_str_or(who, "name", "?");
    if (!rc && tm_ui_json()) {
        json_t *doc = json_pack("{s:s}", "name", name);
        tm_json_print(doc);
        json_decref(doc);
    } else if (!rc) {
        printf("Logged in as %s\n", name);
        if (getenv("HF_TOKEN"))
            tm_note("!", "HF_TOKEN is set, and comes before the token that was kept");
    }
    json_decref(who);
    free(path);
    free(token);
    tm_hub_close(&hub);
    return rc;
}

static void add_query(tm_buf *path, const char *key, const char *value) {
    char *v = tm_url_escape(value, false);
    tm_buf_printf(path, "&%s=%s", key, v);
    free(v);
}

static json_t *search_row(const json_t *model) {
    const char *id = tm_json_str(model, "id"), *when = tm_json_str(model, "lastModified");
    return json_pack("{s:s, s:b, s:I, s:s?}", "id", id ? id : tm_json_str_or(model, "modelId", "?"), "private",
                     tm_json_bool(model, "private", false), "downloads", tm_json_int(model, "downloads", 0),
                     "last_modified", when);
}

int tm_cmd_search(const tm_args *a, tm_error *e) {
    long limit;
    int rc = tm_int_value(a, "limit", 1, 1000, 50, &limit, e);
    if (rc)
        return rc;
    tm_buf path = {0};
    tm_buf_printf(&path, "/api/models?filter=%s&full=true&sort=lastModified&direction=-1&limit=%ld",
                  tm_flag(a, "catalog") ? "tt-model-catalog" : "tt-model-cache", limit);
    if (tm_value(a, "arch"))
        add_query(&path, "filter", tm_value(a, "arch"));
    if (a->words.count && *a->words.items[0])
        add_query(&path, "search", a->words.items[0]);
    tm_hub hub;
    tm_hub_open(&hub);
    json_t *found = NULL, *rows = json_array(), *v;
    rc = tm_hub_json(&hub, &(tm_hub_request){.path = path.data, .what = "a search of the Hub"}, &found, e);
    size_t i;
    json_array_foreach(found, i, v) json_array_append_new(rows, search_row(v));
    if (!rc && tm_ui_json()) {
        tm_json_print(rows);
    } else if (!rc) {
        json_array_foreach(rows, i, v)
            printf("%-48s %-8s downloads=%lld\n", tm_json_str(v, "id"),
                   tm_json_bool(v, "private", false) ? "private" : "public", (long long)tm_json_int(v, "downloads", 0));
        if (!json_array_size(rows))
            puts("No matching bundles found.");
    }
    json_decref(found);
    json_decref(rows);
    tm_buf_free(&path);
    tm_hub_close(&hub);
    return rc;
}

int tm_cmd_version(const tm_args *a, tm_error *e) {
    (void)a;
    (void)e;
    if (tm_ui_json()) {
        json_t *doc = json_pack("{s:s, s:[s,s,s]}", "version", TM_VERSION, "schemas", "5", "5.1", "6");
        tm_json_print(doc);
        json_decref(doc);
    } else {
        puts(TM_VERSION);
    }
    return TM_OK;
}
