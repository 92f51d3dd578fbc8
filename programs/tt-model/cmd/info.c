/* info.c - tt-model info and tt-model profiles: what a package says of itself. */
#include "base/json.h"
#include "base/ui.h"
#include "cli.h"
#include "package/install.h"
#include "runtime/chips.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* From this machine, or, when it is not installed, from the Hub. */
static int find_manifest(const char *word, tm_manifest *m, tm_error *e) {
    tm_target t;
    int rc = tm_target_parse(word, true, &t, e);
    if (rc)
        return rc;
    json_t *record = NULL;
    if (t.path) {
        rc = tm_manifest_load(t.path, m, e);
    } else {
        rc = tm_installed_find(t.id, &record, e);
        const char *have = tm_json_str(record, "revision"), *asked = tm_json_str(record, "requested_revision");
        bool same = !t.revision || (have && tm_starts_with(have, t.revision)) || (asked && !strcmp(asked, t.revision));
        if (!rc && record && same) {
            rc = tm_installed_manifest(tm_json_str(record, "repo_id"), record, m, e);
        } else if (!rc) {
            tm_hub hub;
            tm_hub_repo repo;
            tm_hub_open(&hub);
            rc = tm_fetch_manifest(&hub, t.id, t.revision, &repo, m, e);
            if (!rc)
                tm_hub_repo_free(&repo);
            tm_hub_close(&hub);
        }
    }
    json_decref(record);
    tm_target_free(&t);
    return rc;
}

static json_t *problem(const char *what, const char *level, const char *bundle, const char *local) {
    return json_pack("{s:s, s:s, s:s, s:s}", "check", what, "level", level, "bundle", bundle, "local", local);
}

static json_t *judge(const tm_manifest *m, const char *arch) {
    json_t *list = json_array();
    tm_chips chips;
    tm_chips_inventory(&chips);
    const char *here = arch ? arch : tm_local_arch();
    if (!here)
        json_array_append_new(list, problem("arch", "warn", m->arch, "none"));
    else if (strcmp(here, m->arch) != 0)
        json_array_append_new(list, problem("arch", "FATAL", m->arch, here));
    tm_profile p;
    if (m->container && tm_manifest_profile(m, NULL, &p, NULL) == TM_OK) {
        char need[16], have[16];
        snprintf(need, sizeof need, "%d", p.chips);
        snprintf(have, sizeof have, "%d", chips.count);
        if (p.chips > chips.count)
            json_array_append_new(list, problem("device_count", "warn", need, have));
        tm_profile_free(&p);
    }
    return list;
}

int tm_cmd_info(const tm_args *a, tm_error *e) {
    tm_manifest m;
    int rc = find_manifest(a->words.items[0], &m, e);
    if (rc)
        return rc;
    json_t *problems = judge(&m, tm_value(a, "arch")), *v;
    bool fits = json_array_size(problems) == 0;
    if (tm_ui_json()) {
        json_t *doc = json_pack("{s:O, s:b, s:O}", "manifest", m.doc, "compatible", fits, "problems", problems);
        tm_json_print(doc);
        json_decref(doc);
    } else {
        tm_json_print(m.doc);
        puts(fits ? "\n✓ compatible with the local environment" : "\n! compatibility issues");
        size_t i;
        json_array_foreach(problems, i, v)
            printf("  [%s] %s: bundle='%s' local='%s'\n", tm_json_str(v, "level"), tm_json_str(v, "check"),
                   tm_json_str(v, "bundle"), tm_json_str(v, "local"));
    }
    json_decref(problems);
    tm_manifest_free(&m);
    return TM_OK;
}

static char *size_text(const tm_profile *p) {
    json_int_t seqs = tm_json_int(p->serve, "max_num_seqs", 0), len = tm_json_int(p->serve, "max_model_len", 0);
    tm_buf b = {0};
    if (seqs)
        tm_buf_printf(&b, "seqs %lld", (long long)seqs);
    if (len)
        tm_buf_printf(&b, "%slen %lld", seqs ? " · " : "", (long long)len);
    return tm_buf_take(&b);
}

int tm_cmd_profiles(const tm_args *a, tm_error *e) {
    tm_manifest m;
    int rc = find_manifest(a->words.items[0], &m, e);
    if (rc)
        return rc;
    if (!m.container)
        rc = tm_fail(e, TM_UNSUPPORTED, "%s is a bundle without a container: it has no profiles", m.name);
    json_t *out = json_array();
    for (size_t i = 0; i < m.profile_count && !rc; i++) {
        tm_profile p;
        rc = tm_manifest_profile(&m, m.profiles[i], &p, e);
        if (rc)
            break;
        bool is_default = !strcmp(p.name, m.default_profile);
        if (tm_ui_json()) {
            json_array_append_new(out, json_pack("{s:s, s:b, s:s?, s:s?, s:i, s:O}", "name", p.name, "default",
                                                 is_default, "hardware", p.hardware, "mesh", p.mesh_device, "chips",
                                                 p.chips, "serve", p.serve));
        } else {
            char *name = tm_fmt("%s%s", p.name, is_default ? " (default)" : ""), *sizes = size_text(&p);
            char *where =
                p.hardware ? tm_fmt("%s · %s", p.hardware, p.mesh_device ? p.mesh_device : "-") : tm_strdup("no card");
            printf("  • %-24s %-20s %s\n", name, where, sizes);
            free(name);
            free(sizes);
            free(where);
        }
        tm_profile_free(&p);
    }
    if (!rc && tm_ui_json())
        tm_json_print(out);
    json_decref(out);
    tm_manifest_free(&m);
    return rc;
}
