#include "authored.h"

#include "base/fs.h"
#include "manifest.h"

#include <stdlib.h>
#include <string.h>

typedef enum { TEXT, LIST, MAP, TEXT_OR_MAP, ANY } value_kind;

typedef struct field {
    const char *name;
    value_kind kind;
    bool required;
} field;

static const field top_fields[] = {{"schema", TEXT, false},
                                   {"repo", TEXT, true},
                                   {"name", TEXT, true},
                                   {"weights", TEXT_OR_MAP, true},
                                   {"auxiliary_weights", LIST, false},
                                   {"kind", TEXT, false},
                                   {"arch", TEXT, true},
                                   {"source", MAP, true},
                                   {"image", MAP, false},
                                   {"runtime", MAP, false},
                                   {"serve", MAP, false},
                                   {"serve_profiles", LIST, false},
                                   {"default_profile", TEXT, false},
                                   {"verify", LIST, false},
                                   {"card", MAP, false},
                                   {NULL, ANY, false}};
static const field weights_fields[] = {{"repo", TEXT, true},
                                       {"revision", TEXT, false},
                                       {"allow_patterns", LIST, false},
                                       {"ignore_patterns", LIST, false},
                                       {NULL, ANY, false}};
static const field source_fields[] = {{"tt_metal", TEXT_OR_MAP, false}, {"code", LIST, false},
                                      {"extra_code", LIST, false},      {"ubuntu", TEXT, false},
                                      {"python", TEXT, false},          {NULL, ANY, false}};
static const field extra_fields[] = {{"root", TEXT, true}, {"paths", LIST, true}, {NULL, ANY, false}};
static const field image_fields[] = {{"registry", TEXT, false},   {"repository", TEXT, false}, {"rootfs", TEXT, false},
                                     {"entrypoint", LIST, false}, {"env", MAP, false},         {"user", TEXT, false},
                                     {"workdir", TEXT, false},    {NULL, ANY, false}};
static const field runtime_fields[] = {{"app", TEXT, false},       {"mesh_shape_env", TEXT, false},
                                       {"packages", LIST, false},  {"lock", TEXT, false},
                                       {"command", LIST, false},   {"ready_line", TEXT, false},
                                       {"vllm", ANY, false},       {"plugin", ANY, false},
                                       {"extension", ANY, false},  {"overrides", ANY, false},
                                       {"wheels", ANY, false},     {"extra_models_dir", TEXT, false},
                                       {"model_dir", TEXT, false}, {NULL, ANY, false}};
static const field card_fields[] = {{"description", TEXT, false},
                                    {"quickstart", TEXT, false},
                                    {"architecture", TEXT, false},
                                    {"status", TEXT, false},
                                    {"intended_use", TEXT, false},
                                    {"out_of_scope_use", TEXT, false},
                                    {"usage", TEXT, false},
                                    {"performance", TEXT, false},
                                    {"limitations", TEXT, false},
                                    {"risks", TEXT, false},
                                    {"licensing", TEXT, false},
                                    {"related", TEXT, false},
                                    {"license", MAP, false},
                                    {"pipeline_tag", TEXT, false},
                                    {"base_model", ANY, false},
                                    {"media", LIST, false},
                                    {NULL, ANY, false}};
static const field license_fields[] = {
    {"id", TEXT, true}, {"name", TEXT, false}, {"link", TEXT, false}, {NULL, ANY, false}};

static bool fits(const json_t *v, value_kind k) {
    switch (k) {
    case TEXT:
        return json_is_string(v);
    case LIST:
        return json_is_array(v);
    case MAP:
        return json_is_object(v);
    case TEXT_OR_MAP:
        return json_is_string(v) || json_is_object(v);
    default:
        return true;
    }
}

/* Keys and types of one block at `at` ("" for the document). */
static int check_block(const tm_authored *a, const json_t *block, const char *at, const field *fields, tm_error *e) {
    static const char *const names[] = {"text (in quotes where it looks like a number)", "a list", "a block of keys",
                                        "text or a block of keys", ""};
    const char *key;
    json_t *v;
    json_object_foreach((json_t *)block, key, v) {
        const field *f = fields;
        while (f->name && strcmp(f->name, key) != 0)
            f++;
        char *path = tm_fmt("%s%s%s", at, *at ? "." : "", key);
        int rc = TM_OK;
        if (!f->name)
            rc = tm_yaml_error(&a->yaml, path, e, "is not a key that is known here");
        else if (!json_is_null(v) && !fits(v, f->kind))
            rc = tm_yaml_error(&a->yaml, path, e, "must be %s", names[f->kind]);
        free(path);
        if (rc)
            return rc;
    }
    for (const field *f = fields; f->name; f++)
        if (f->required && tm_json_empty(json_object_get(block, f->name))) {
            char *path = tm_fmt("%s%s%s", at, *at ? "." : "", f->name);
            int rc = tm_yaml_error(&a->yaml, path, e, "is missing");
            free(path);
            return rc;
        }
    return TM_OK;
}

static int check_weights(const tm_authored *a, const json_t *w, const char *at, tm_error *e) {
    int rc = json_is_object(w) ? check_block(a, w, at, weights_fields, e) : TM_OK;
    const char *repo = json_is_string(w) ? json_string_value(w) : tm_json_str(w, "repo");
    const char *revision = tm_json_str(w, "revision");
    if (!rc && (!repo || !tm_is_repo_id(repo)))
        rc = tm_yaml_error(&a->yaml, at, e, "must name a Hub repository, owner/name");
    if (!rc && revision && !tm_is_revision(revision))
        rc = tm_yaml_error(&a->yaml, at, e, "has a revision that is not one");
    return rc;
}

static const char *weights_repo(const json_t *w) {
    return json_is_string(w) ? json_string_value(w) : tm_json_str_or(w, "repo", "");
}

static int check_all_weights(const tm_authored *a, tm_error *e) {
    const json_t *own = json_object_get(a->doc, "weights");
    json_t *aux = json_object_get(a->doc, "auxiliary_weights"), *v, *w;
    int rc = check_weights(a, own, "weights", e);
    size_t i, k;
    json_array_foreach(aux, i, v) {
        char *at = tm_fmt("auxiliary_weights.%zu", i);
        if (!rc)
            rc = check_weights(a, v, at, e);
        if (!rc && !strcmp(weights_repo(v), weights_repo(own)))
            rc = tm_yaml_error(&a->yaml, at, e, "names the same repository as `weights`");
        json_array_foreach(aux, k, w) {
            if (!rc && k < i && !strcmp(weights_repo(v), weights_repo(w)))
                rc = tm_yaml_error(&a->yaml, at, e, "names a repository for the second time");
        }
        free(at);
    }
    return rc;
}

static int check_paths(const tm_authored *a, const json_t *list, const char *root, const char *at, tm_error *e) {
    size_t i;
    json_t *v;
    json_array_foreach(list, i, v) {
        const char *path = json_string_value(v);
        char *key = tm_fmt("%s.%zu", at, i), *base = tm_authored_path(a, root);
        char *full = path ? tm_join(base, path) : NULL;
        int rc = TM_OK;
        if (!path || !tm_path_is_safe(path))
            rc = tm_yaml_error(&a->yaml, key, e, "must be a relative path without ..");
        else if (!tm_exists(full))
            rc = tm_yaml_error(&a->yaml, key, e, "is not there: %s", full);
        free(key);
        free(base);
        free(full);
        if (rc)
            return rc;
    }
    return TM_OK;
}

static int check_source(const tm_authored *a, bool rootfs, tm_error *e) {
    const json_t *source = tm_json_object(a->doc, "source"), *code = json_object_get(source, "code");
    json_t *extra = json_object_get(source, "extra_code"), *v;
    static const char *const needed[] = {"tt_metal", "code", "ubuntu", "python"};
    int rc = check_block(a, source, "source", source_fields, e);
    for (size_t i = 0; i < 4 && !rc && !rootfs; i++)
        if (tm_json_empty(json_object_get(source, needed[i]))) {
            char *path = tm_fmt("source.%s", needed[i]);
            rc = tm_yaml_error(&a->yaml, path, e, "is missing");
            free(path);
        }
    const char *metal = tm_json_str(source, "tt_metal");
    if (!rc && !tm_json_empty(code) && !metal)
        rc = tm_yaml_error(&a->yaml, "source.code", e, "is relative to `source.tt_metal`, which is not a path");
    if (!rc && !tm_json_empty(code))
        rc = check_paths(a, code, metal, "source.code", e);
    size_t i;
    json_array_foreach(extra, i, v) {
        char *at = tm_fmt("source.extra_code.%zu", i), *paths = tm_fmt("%s.paths", at);
        if (!rc && !json_is_object(v))
            rc = tm_yaml_error(&a->yaml, at, e, "must be a block with root and paths");
        if (!rc)
            rc = check_block(a, v, at, extra_fields, e);
        if (!rc)
            rc = check_paths(a, json_object_get(v, "paths"), tm_json_str(v, "root"), paths, e);
        free(at);
        free(paths);
    }
    if (!rc && tm_json_empty(code) && tm_json_empty(extra))
        rc = tm_yaml_error(&a->yaml, "source", e, "ships no code: name some in code or extra_code");
    return rc;
}

static int check_serve_block(const tm_authored *a, const json_t *block, const char *at, bool named, tm_error *e) {
    tm_buf key = {0};
    tm_error inner = {0};
    int rc = tm_check_serve(block, at, named, &key, &inner);
    if (rc) {
        char *path = tm_fmt("%s.%s", at, key.data ? key.data : "");
        tm_fail(e, TM_CONFIG, "%s:%d: %s", a->yaml.path, tm_yaml_line(&a->yaml, path), inner.what);
        rc = TM_CONFIG;
        free(path);
    }
    tm_buf_free(&key);
    return rc;
}

/* What the kind of server needs, in each profile as it is merged. */
static int check_kind(const tm_authored *a, const char *kind, const json_t *merged, const char *at, tm_error *e) {
    static const char *const vllm[] = {"hardware", "mesh_device", "max_num_seqs", "block_size", NULL};
    static const char *const dit[] = {NULL};
    const char *const *needed = tm_starts_with(kind, "vllm") ? vllm : dit;
    for (; *needed; needed++)
        if (tm_json_empty(json_object_get(merged, *needed))) {
            char *path = tm_fmt("%s.%s", at, *needed);
            int rc = tm_yaml_error(&a->yaml, path, e, "is missing: the kind %s needs it", kind);
            free(path);
            return rc;
        }
    const char *hardware = tm_json_str(merged, "hardware"), *mesh = tm_json_str(merged, "mesh_device");
    int rows = 0, cols = 0;
    if (hardware && mesh && tm_mesh_shape(mesh, &rows, &cols) && rows * cols != tm_hardware_chips(hardware)) {
        char *path = tm_fmt("%s.mesh_device", at);
        int rc = tm_yaml_error(&a->yaml, path, e, "%s is %d chips, and the hardware %s has %d", mesh, rows * cols,
                               hardware, tm_hardware_chips(hardware));
        free(path);
        return rc;
    }
    return TM_OK;
}

static int check_serving(const tm_authored *a, const char *kind, tm_error *e) {
    const json_t *serve = json_object_get(a->doc, "serve");
    json_t *profiles = json_object_get(a->doc, "serve_profiles"), *v, *w;
    const char *chosen = tm_json_str(a->doc, "default_profile");
    int rc = check_serve_block(a, serve, "serve", false, e);
    bool found = false;
    size_t i, k;
    json_array_foreach(profiles, i, v) {
        char *at = tm_fmt("serve_profiles.%zu", i), *at_name = tm_fmt("%s.name", at);
        const char *name = tm_json_str(v, "name");
        if (!rc && (!name || !*name ||
                    name[strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                                      "0123456789._-")]))
            rc = tm_yaml_error(&a->yaml, at_name, e, "is missing, or has other letters than a-z, 0-9, . _ -");
        json_array_foreach(profiles, k, w) {
            if (!rc && k < i && !strcmp(tm_json_str_or(w, "name", ""), name))
                rc = tm_yaml_error(&a->yaml, at_name, e, "is a profile's name for the second time");
        }
        if (!rc)
            rc = check_serve_block(a, v, at, true, e);
        json_t *merged = tm_merge(serve, v);
        if (!rc)
            rc = check_kind(a, kind, merged, at, e);
        json_decref(merged);
        found = found || (chosen && name && !strcmp(chosen, name));
        free(at);
        free(at_name);
    }
    if (!rc && !json_array_size(profiles))
        rc = check_kind(a, kind, serve, "serve", e);
    if (!rc && json_array_size(profiles) > 1 && !chosen)
        rc = tm_yaml_error(&a->yaml, "default_profile", e, "is missing: there is more than one profile");
    if (!rc && chosen && !found)
        rc = tm_yaml_error(&a->yaml, "default_profile", e, "names no profile");
    return rc;
}

static int check_runtime(const tm_authored *a, const char *kind, tm_error *e) {
    const json_t *runtime = json_object_get(a->doc, "runtime");
    int rc = check_block(a, runtime, "runtime", runtime_fields, e);
    const char *app = tm_json_str(runtime, "app");
    if (!rc && !strcmp(kind, "tt-dit-server") && (!app || !strchr(app, ':')))
        rc = tm_yaml_error(&a->yaml, "runtime.app", e, "is missing: the kind tt-dit-server needs module:attribute");
    if (!rc && !strcmp(kind, "http-server") && !json_array_size(json_object_get(runtime, "command")))
        rc = tm_yaml_error(&a->yaml, "runtime.command", e, "is missing: the kind http-server needs it");
    return rc;
}

static int check_image(const tm_authored *a, bool *rootfs, tm_error *e) {
    const json_t *image = json_object_get(a->doc, "image"), *entry = json_object_get(image, "entrypoint");
    const char *dir = tm_json_str(image, "rootfs");
    int rc = check_block(a, image, "image", image_fields, e);
    *rootfs = dir != NULL;
    size_t i;
    json_t *v;
    json_array_foreach(entry, i, v) {
        if (!rc && !json_is_string(v))
            rc = tm_yaml_error(&a->yaml, "image.entrypoint", e, "must hold words");
    }
    const char *key;
    json_object_foreach(json_object_get(image, "env"), key, v) {
        if (!rc && !json_is_string(v))
            rc = tm_yaml_error(&a->yaml, "image.env", e, "must hold text");
    }
    if (!rc && dir && !json_array_size(entry))
        rc = tm_yaml_error(&a->yaml, "image.entrypoint", e, "is missing: an image of its own needs one");
    return rc;
}

static int check_card(const tm_authored *a, tm_error *e) {
    const json_t *card = json_object_get(a->doc, "card"), *license = json_object_get(card, "license");
    int rc = check_block(a, card, "card", card_fields, e);
    if (!rc && license)
        rc = check_block(a, license, "card.license", license_fields, e);
    if (!rc && !strcmp(tm_json_str_or(license, "id", ""), "other") &&
        (!tm_json_str(license, "name") || !tm_json_str(license, "link")))
        rc = tm_yaml_error(&a->yaml, "card.license", e, "other needs a name and a link");
    return rc;
}

static int check(const tm_authored *a, tm_error *e) {
    static const char *const kinds[] = {"vllm-plugin", "vllm-fork", "tt-dit-server", "http-server"};
    if (!json_is_object(a->doc))
        return tm_fail(e, TM_CONFIG, "%s:1: a block of keys is wanted", a->yaml.path);
    int rc = check_block(a, a->doc, "", top_fields, e);
    const char *schema = tm_json_str(a->doc, "schema"), *kind = tm_json_str_or(a->doc, "kind", "vllm-plugin");
    const char *arch = tm_json_str(a->doc, "arch");
    bool rootfs = false, known = false;
    for (size_t i = 0; i < 4; i++)
        known = known || !strcmp(kinds[i], kind);
    if (!rc && schema && strcmp(schema, "5.1") != 0)
        rc = tm_yaml_error(&a->yaml, "schema", e, "must be \"5.1\"");
    if (!rc && !tm_is_repo_id(tm_json_str(a->doc, "repo")))
        rc = tm_yaml_error(&a->yaml, "repo", e, "must be owner/name");
    if (!rc && !tm_is_slug(tm_json_str(a->doc, "name")))
        rc = tm_yaml_error(&a->yaml, "name", e, "must begin with a-z or 0-9, and have only a-z, 0-9, . _ -");
    if (!rc && strcmp(arch, "blackhole") != 0 && strcmp(arch, "wormhole_b0") != 0)
        rc = tm_yaml_error(&a->yaml, "arch", e, "must be blackhole or wormhole_b0");
    if (!rc && !known)
        rc = tm_yaml_error(&a->yaml, "kind", e, "must be vllm-plugin, vllm-fork, tt-dit-server or http-server");
    if (!rc)
        rc = check_all_weights(a, e);
    if (!rc)
        rc = check_image(a, &rootfs, e);
    if (!rc)
        rc = check_source(a, rootfs, e);
    if (!rc)
        rc = check_runtime(a, kind, e);
    if (!rc)
        rc = check_serving(a, kind, e);
    if (!rc)
        rc = check_card(a, e);
    if (!rc && !tm_json_empty(json_object_get(a->doc, "verify")))
        rc = tm_yaml_error(&a->yaml, "verify", e,
                           "is Python that the Python tool runs in the image; it is not run here");
    return rc;
}

int tm_authored_load(const char *path, tm_authored *a, tm_error *e) {
    *a = (tm_authored){0};
    int rc = tm_yaml_load(path, &a->yaml, e);
    if (rc)
        return rc;
    a->doc = a->yaml.doc;
    a->dir = tm_dirname(path);
    rc = check(a, e);
    if (rc)
        tm_authored_free(a);
    return rc;
}

void tm_authored_free(tm_authored *a) {
    tm_yaml_free(&a->yaml);
    free(a->dir);
    *a = (tm_authored){0};
}

char *tm_authored_path(const tm_authored *a, const char *path) {
    return *path == '/' ? tm_strdup(path) : tm_join(a->dir, path);
}
