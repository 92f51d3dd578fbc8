/* push.c - tt-model push, publish and unpublish. */
#include "base/fs.h"
#include "base/json.h"
#include "base/ui.h"
#include "cli.h"
#include "hub/upload.h"
#include "package/card.h"
#include "package/manifest.h"

#include <stdlib.h>
#include <string.h>

static int need_token(const tm_hub *hub, tm_error *e) {
    if (hub->token)
        return TM_OK;
    tm_fail(e, TM_CONFIG, "writing to the Hub needs a token");
    tm_next(e, "`tt-model login`");
    return TM_CONFIG;
}

/* What is below code/ and image/ in the repository, and not in the package any more. */
static void find_stale(const tm_hub_repo *now, const tm_list *staged, tm_list *out) {
    for (size_t i = 0; i < now->count; i++) {
        const char *path = now->files[i].path;
        if ((tm_starts_with(path, "code/") || tm_starts_with(path, "image/")) && !tm_list_has(staged, path))
            tm_list_add(out, path);
    }
}

/* --repo: the four command lines of the card's quickstart name the package's own repository. */
static int card_for(const char *dir, const char *from, const char *to, tm_error *e) {
    static const char *const commands[] = {"tt model pull ", "tt serve ", "tt-model pull ", "tt-model serve "};
    char *path = tm_join(dir, "README.md");
    tm_buf text = {0}, out = {0};
    int rc = tm_read_file(path, 16 << 20, &text, e);
    size_t from_len = strlen(from);
    for (const char *s = rc ? "" : text.data; *s;) {
        size_t n = strcspn(s, "\n"), head = 0;
        for (size_t i = 0; i < 4 && !head; i++)
            if (!strncmp(s, commands[i], strlen(commands[i])) && !strncmp(s + strlen(commands[i]), from, from_len) &&
                strchr(" \n", s[strlen(commands[i]) + from_len]))
                head = strlen(commands[i]);
        if (head) {
            tm_buf_add(&out, s, head);
            tm_buf_puts(&out, to);
            tm_buf_add(&out, s + head + from_len, n - head - from_len);
        } else {
            tm_buf_add(&out, s, n);
        }
        s += n;
        if (*s == '\n') {
            tm_buf_puts(&out, "\n");
            s++;
        }
    }
    if (!rc)
        rc = tm_write_file(path, out.data ? out.data : "", out.len, e);
    tm_buf_free(&text);
    tm_buf_free(&out);
    free(path);
    return rc;
}

static int may_be_listed(const tm_manifest *m, tm_error *e) {
    static const char *const wanted[] = {"performance", "limitations"};
    const json_t *card = tm_json_object(m->container, "card");
    for (size_t i = 0; card && i < 2; i++)
        if (tm_json_empty(json_object_get(card, wanted[i]))) {
            tm_fail(e, TM_ERROR, "the card's section \"%s\" is empty: such a package is not listed", wanted[i]);
            tm_next(e, "Write card.%s in tt-model.yaml, and package it again.", wanted[i]);
            return TM_ERROR;
        }
    return TM_OK;
}

static int set_listed(tm_hub *hub, const char *id, bool listed, tm_error *e) {
    tm_buf readme = {0}, changed = {0};
    int rc = tm_hub_read_text(hub, id, "README.md", &readme, e);
    if (!rc)
        rc = tm_card_set_listed(readme.data, listed, &changed, e);
    if (!rc && strcmp(readme.data, changed.data) != 0)
        rc = tm_hub_commit_text(hub, id, "README.md", changed.data,
                                listed ? "List in the catalog" : "Take out of the catalog", e);
    tm_buf_free(&readme);
    tm_buf_free(&changed);
    return rc;
}

static int push(const tm_args *a, tm_hub *hub, const char *dir, const char *id, char **sha, tm_error *e) {
    bool publish = tm_flag(a, "publish"), is_public = publish || tm_flag(a, "public"), made;
    tm_list paths = {0}, stale = {0};
    tm_hub_repo now = {0};
    tm_step("push", "pushing to %s", id);
    int rc = tm_hub_create(hub, id, !is_public, &made, e);
    if (!rc && !made && (is_public || tm_flag(a, "private")))
        rc = tm_hub_set_private(hub, id, !is_public, e);
    if (!rc)
        rc = tm_hub_repo_info(hub, "model", id, NULL, "package", &now, e);
    if (!rc)
        rc = tm_walk_files(dir, false, &paths, e);
    if (!rc) {
        find_stale(&now, &paths, &stale);
        tm_commit c = {.id = id,
                       .branch = "main",
                       .summary = "Package by tt-model " TM_VERSION,
                       .dir = dir,
                       .paths = &paths,
                       .deletions = &stale};
        rc = tm_hub_commit(hub, &c, &now, sha, e);
    }
    if (!rc)
        tm_step_done(*sha ? "commit %.8s" : "nothing had changed", *sha ? *sha : "");
    if (!rc && publish)
        rc = set_listed(hub, id, true, e);
    tm_list_free(&paths);
    tm_list_free(&stale);
    tm_hub_repo_free(&now);
    return rc;
}

int tm_cmd_push(const tm_args *a, tm_error *e) {
    const char *dir = a->words.items[0], *other = tm_value(a, "repo");
    if (tm_flag(a, "private") && (tm_flag(a, "public") || tm_flag(a, "publish")))
        return tm_fail(e, TM_USAGE, "--private contradicts --public and --publish");
    char *manifest = tm_join(dir, TM_MANIFEST_NAME), *sha = NULL;
    tm_manifest m;
    int rc = tm_manifest_load(manifest, &m, e);
    free(manifest);
    if (rc)
        return rc;
    const char *own = tm_json_str(tm_json_object(m.container, "built"), "repo"), *id = other ? other : own;
    if (!id || !tm_is_repo_id(id)) {
        rc = tm_fail(e, TM_USAGE, "the package names no repository: give --repo owner/name");
    } else if (tm_flag(a, "publish")) {
        rc = may_be_listed(&m, e);
    }
    tm_hub hub;
    tm_hub_open(&hub);
    if (!rc)
        rc = need_token(&hub, e);
    if (!rc && other && own && strcmp(other, own) != 0)
        rc = card_for(dir, own, other, e);
    if (!rc)
        rc = push(a, &hub, dir, id, &sha, e);
    if (!rc && tm_ui_json()) {
        json_t *doc = json_pack("{s:s, s:s?, s:s}", "repo", id, "commit", sha, "url", hub.endpoint);
        tm_json_print(doc);
        json_decref(doc);
    } else if (!rc) {
        tm_note("✓", "pushed %s/%s", hub.endpoint, id);
        tm_note("→", "next:  tt-model pull %s", id);
    }
    free(sha);
    tm_hub_close(&hub);
    tm_manifest_free(&m);
    return rc;
}

static int change_listing(const tm_args *a, bool listed, tm_error *e) {
    const char *id = a->words.items[0];
    if (!tm_is_repo_id(id))
        return tm_fail(e, TM_USAGE, "\"%s\" is not a package: packages are named owner/name", id);
    tm_hub hub;
    tm_hub_open(&hub);
    int rc = need_token(&hub, e);
    if (!rc && listed)
        rc = tm_hub_set_private(&hub, id, false, e);
    if (!rc)
        rc = set_listed(&hub, id, listed, e);
    if (!rc && tm_ui_json()) {
        json_t *doc = json_pack("{s:s, s:b}", "repo", id, "listed", listed);
        tm_json_print(doc);
        json_decref(doc);
    } else if (!rc) {
        tm_note("✓", listed ? "%s is public, and listed in the catalog" : "%s is not listed any more", id);
    }
    tm_hub_close(&hub);
    return rc;
}

int tm_cmd_publish(const tm_args *a, tm_error *e) {
    return change_listing(a, true, e);
}

int tm_cmd_unpublish(const tm_args *a, tm_error *e) {
    return change_listing(a, false, e);
}
