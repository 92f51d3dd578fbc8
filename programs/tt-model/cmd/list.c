/* list.c - tt-model list: one row for each installed package. */
#include "base/fs.h"
#include "base/json.h"
#include "base/paths.h"
#include "base/ui.h"
#include "cli.h"
#include "hub/cache.h"
#include "package/install.h"
#include "runtime/native.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct row {
    const char *glyph, *state; /* state: loaded, missing, other, unknown */
    char *why;                 /* NULL: all is well */
    uint64_t bytes;
} row;

static void judge(tm_docker *docker, const char *id, const json_t *record, tm_manifest *m, row *r) {
    char *path = tm_cache_repo_dir("model", id), *image_id = NULL;
    r->bytes = tm_tree_bytes(path);
    free(path);
    tm_error e = {0};
    if (tm_installed_manifest(id, record, m, &e) != TM_OK || !m->container) {
        *r = (row){"✗", "unknown", tm_fmt("its manifest cannot be read: %s", e.what), r->bytes};
        return;
    }
    bool current = false;
    if (!docker) {
        r->glyph = "○";
        r->state = "unknown";
        r->why = tm_strdup("Docker does not run, so its image cannot be looked for (--native serves without)");
    } else if (tm_image_current(docker, m, record, &current, &image_id, &e) != TM_OK) {
        *r = (row){"✗", "unknown", tm_strdup(e.what), r->bytes};
    } else if (current) {
        r->glyph = "✓";
        r->state = "loaded";
    } else {
        r->glyph = "✗";
        r->state = image_id ? "other" : "missing";
        r->why = tm_fmt(image_id ? "Docker has another build under this name; `tt-model pull %s` loads this one"
                                 : "its image is not in Docker; `tt-model pull %s` loads it",
                        id);
    }
    free(image_id);
}

static const char *short_tag(const json_t *record) {
    const char *image = tm_json_str_or(record, "image", ""), *colon = strrchr(image, ':');
    return colon ? colon + 1 : image;
}

/* The native servers of a package, for the JSON row; and the problem that one ended with the machine. */
static json_t *native_servers(const tm_manifest *m, const char *id, tm_buf *problems) {
    json_t *list = m->name ? tm_native_all(m->name) : json_array(), *s, *out = json_array();
    size_t i;
    json_array_foreach(list, i, s) {
        const char *status = tm_native_status(s);
        json_array_append_new(out, json_pack("{s:s, s:s, s:O?}", "profile", tm_json_str(s, "profile"), "status", status,
                                             "port", json_object_get(s, "port")));
        if (!strcmp(status, "rebooted"))
            tm_buf_printf(
                problems,
                "! %s: its server ended when the machine was restarted; `tt-model serve %s` starts it again\n", id, id);
    }
    json_decref(list);
    return out;
}

static json_t *json_row(const char *id, const json_t *record, const tm_manifest *m, const row *r) {
    json_t *o = json_pack("{s:s, s:s, s:s?, s:s?, s:s, s:I, s:s?, s:s?}", "id", id, "kind", "container", "arch",
                          tm_json_str(record, "arch"), "image", tm_json_str(record, "image"), "image_state", r->state,
                          "bytes", (json_int_t)r->bytes, "profile", tm_json_str(record, "profile"), "revision",
                          tm_json_str(record, "revision"));
    json_t *weights = json_array();
    for (size_t i = 0; i < m->weights_count; i++) {
        char *dir = tm_weights_snapshot(&m->weights[i]);
        json_array_append_new(weights, json_pack("{s:s, s:s?, s:b}", "repo", m->weights[i].repo, "revision",
                                                 m->weights[i].revision, "cached", dir != NULL));
        free(dir);
    }
    json_object_set_new(o, "weights", weights);
    if (r->why)
        json_object_set_new(o, "problem", json_string(r->why));
    return o;
}

int tm_cmd_list(const tm_args *a, tm_error *e) {
    (void)a;
    json_t *all, *record, *out = json_array();
    int rc = tm_installed_load(&all, e);
    if (rc)
        return rc;
    tm_docker docker;
    bool have_docker = json_object_size(all) && tm_docker_open(&docker, NULL) == TM_OK;
    tm_buf problems = {0};
    const char *id;
    json_object_foreach(all, id, record) {
        tm_manifest m = {0};
        row r = {0};
        char size[32];
        if (!tm_is_repo_id(id) || !json_is_object(record))
            continue;
        if (!json_is_true(json_object_get(record, "container"))) {
            printf("  ○ %s  venv bundle (served by the Python tt-model)\n", id);
            continue;
        }
        judge(have_docker ? &docker : NULL, id, record, &m, &r);
        json_t *servers = native_servers(&m, id, &problems);
        if (tm_ui_json()) {
            json_t *o = json_row(id, record, &m, &r);
            json_object_set(o, "native_servers", servers);
            json_array_append_new(out, o);
        }
        if (!tm_ui_json())
            printf("  %s %s  container  %s  image %s  %s  profile %s\n", r.glyph, id,
                   tm_json_str_or(record, "arch", "?"), short_tag(record), tm_human_bytes((double)r.bytes, size),
                   tm_json_str_or(record, "profile", "default"));
        if (r.why)
            tm_buf_printf(&problems, "! %s: %s\n", id, r.why);
        free(r.why);
        json_decref(servers);
        tm_manifest_free(&m);
    }
    if (tm_ui_json())
        tm_json_print(out);
    else if (!json_object_size(all))
        puts("No bundles installed.");
    else if (problems.len)
        printf("\n%s", problems.data);
    if (have_docker)
        tm_docker_close(&docker);
    tm_buf_free(&problems);
    json_decref(all);
    json_decref(out);
    return TM_OK;
}
