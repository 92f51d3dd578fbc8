#include "manifest.h"

#include "base/fs.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

static int bad(tm_error *e, const char *origin, const char *what, const char *got) {
    tm_fail(e, TM_ERROR, "%s: %s", origin, what);
    if (got)
        tm_why(e, "It says \"%.200s\".", got);
    return TM_ERROR;
}

static bool is_token(const char *s, const char *extra, size_t max) {
    size_t n = strlen(s);
    if (n == 0 || n > max || !isalnum((unsigned char)*s))
        return false;
    for (; *s; s++)
        if (!isalnum((unsigned char)*s) && !strchr(extra, *s))
            return false;
    return true;
}

static int string_list(const json_t *array, const char *origin, const char *key, tm_list *out, tm_error *e) {
    size_t i;
    json_t *v;
    if (array && !json_is_null(array) && !json_is_array(array))
        return bad(e, origin, key, "not a list");
    json_array_foreach(array, i, v) {
        if (!json_is_string(v))
            return bad(e, origin, "a pattern of the weights is not text", NULL);
        tm_list_add(out, json_string_value(v));
    }
    return TM_OK;
}

static int read_weights(const json_t *w, const char *origin, tm_weights *out, tm_error *e) {
    const char *repo = tm_json_str(w, "repo_id"), *revision = tm_json_str(w, "revision");
    if (!repo)
        repo = tm_json_str(w, "repo");
    const char *type = tm_json_str_or(w, "repo_type", "model");
    if (!repo || !tm_is_repo_id(repo))
        return bad(e, origin, "the weights name no Hub repository", repo);
    if (revision && *revision && !tm_is_revision(revision))
        return bad(e, origin, "the revision of the weights is not one", revision);
    if (strcmp(type, "model") != 0 && strcmp(type, "dataset") != 0 && strcmp(type, "space") != 0)
        return bad(e, origin, "the repo_type of the weights is not model, dataset or space", type);
    out->repo = tm_strdup(repo);
    out->revision = revision && *revision ? tm_strdup(revision) : NULL;
    out->type = tm_strdup(type);
    int rc = string_list(json_object_get(w, "allow_patterns"), origin, "allow_patterns", &out->allow, e);
    if (!rc)
        rc = string_list(json_object_get(w, "ignore_patterns"), origin, "ignore_patterns", &out->ignore, e);
    return rc;
}

static int read_all_weights(tm_manifest *m, const char *origin, tm_error *e) {
    const json_t *own = tm_json_object(m->doc, "weights"), *aux = tm_json_array(m->doc, "auxiliary_weights");
    m->weights = tm_alloc((1 + json_array_size(aux)) * sizeof *m->weights);
    m->has_weights = !tm_json_empty(own);
    int rc = m->has_weights ? read_weights(own, origin, &m->weights[m->weights_count++], e) : TM_OK;
    size_t i;
    json_t *w;
    json_array_foreach(aux, i, w) {
        if (!rc)
            rc = read_weights(w, origin, &m->weights[m->weights_count++], e);
    }
    return rc;
}

static int read_image(tm_manifest *m, const char *origin, tm_error *e) {
    const json_t *image = tm_json_object(m->container, "image");
    m->registry = tm_json_str_or(image, "registry", "hf");
    m->repository = tm_json_str_or(image, "repository", m->name);
    m->tag = tm_json_str(image, "tag");
    m->digest = tm_json_str(image, "digest");
    if (m->digest && !*m->digest)
        m->digest = NULL;
    if (!m->tag || !is_token(m->tag, "._-/:@", 255))
        return bad(e, origin, "container.image.tag is missing or is not an image name", m->tag);
    if (!is_token(m->registry, "._-/:", 255) || !is_token(m->repository, "._-/", 255))
        return bad(e, origin, "container.image.registry or repository is not an image name", m->registry);
    if (m->digest && (!tm_starts_with(m->digest, "sha256:") || !tm_is_hex(m->digest + 7, 64)))
        return bad(e, origin, "container.image.digest is not sha256: and 64 digits", m->digest);
    return TM_OK;
}

static int read_profiles(tm_manifest *m, const char *origin, tm_error *e) {
    json_t *list = tm_json_array(m->container, "serve_profiles"), *p;
    size_t i, n = json_array_size(list);
    if (n > TM_MAX_PROFILES)
        return bad(e, origin, "it has more serve profiles than are handled", NULL);
    m->profiles = tm_alloc((n + 1) * sizeof *m->profiles);
    int rc = tm_check_serve(tm_json_object(m->container, "serve"), "container.serve", false, NULL, e);
    json_array_foreach(list, i, p) {
        const char *name = tm_json_str(p, "name");
        if (!rc && (!name || !is_token(name, "._-", 64)))
            rc = bad(e, origin, "a serve profile has no usable name", name);
        for (size_t k = 0; !rc && k < m->profile_count; k++)
            if (!strcmp(m->profiles[k], name))
                rc = bad(e, origin, "two serve profiles have the same name", name);
        if (!rc) {
            char *where = tm_fmt("serve profile %s", name);
            rc = tm_check_serve(p, where, true, NULL, e);
            free(where);
        }
        if (rc)
            return rc;
        m->profiles[m->profile_count++] = name;
    }
    if (!m->profile_count)
        m->profiles[m->profile_count++] = "default";
    m->default_profile = tm_json_str(m->container, "default_profile");
    if (!m->default_profile || !*m->default_profile)
        m->default_profile = m->profiles[0];
    for (size_t k = 0; k < m->profile_count; k++)
        if (!strcmp(m->profiles[k], m->default_profile))
            return rc;
    return bad(e, origin, "default_profile is none of its serve profiles", m->default_profile);
}

static bool schema_of(const json_t *doc, const char **out) {
    static const char *const known[] = {"5", "5.1", "6"};
    const json_t *v = json_object_get(doc, "schema_version");
    *out = v ? json_string_value(v) : "5";
    for (size_t i = 0; *out && i < 3; i++)
        if (!strcmp(*out, known[i]))
            return true;
    return false;
}

static int fill(tm_manifest *m, const char *origin, tm_error *e) {
    if (!json_is_object(m->doc))
        return bad(e, origin, "it is not a JSON object", NULL);
    if (!schema_of(m->doc, &m->schema)) {
        tm_fail(e, TM_UNSUPPORTED, "%s: schema_version %s is not read here", origin, m->schema ? m->schema : "");
        tm_why(e, "Schemas 5, 5.1 and 6 are.");
        tm_next(e, "Ask the author to publish the package again with a current tool.");
        return TM_UNSUPPORTED;
    }
    m->name = tm_json_str(m->doc, "name");
    m->arch = tm_json_str(m->doc, "arch");
    if (!m->name || !tm_is_slug(m->name))
        return bad(e, origin, "`name` is missing, or is not a name that may stand in a path", m->name);
    if (!m->arch || !is_token(m->arch, "_-", 64))
        return bad(e, origin, "`arch` is missing", m->arch);
    int rc = read_all_weights(m, origin, e);
    m->container = tm_json_object(m->doc, "container");
    if (rc || !m->container)
        return rc;
    m->kind = tm_json_str_or(m->container, "kind", "vllm-plugin");
    rc = read_image(m, origin, e);
    if (!rc)
        rc = read_profiles(m, origin, e);
    return rc;
}

int tm_manifest_from_json(json_t *doc, const char *origin, tm_manifest *m, tm_error *e) {
    *m = (tm_manifest){.doc = doc};
    int rc = fill(m, origin, e);
    if (rc)
        tm_manifest_free(m);
    return rc;
}

int tm_manifest_parse(const char *text, size_t len, const char *origin, tm_manifest *m, tm_error *e) {
    json_t *doc = NULL;
    *m = (tm_manifest){0};
    int rc = tm_json_parse(text, len, origin, &doc, e);
    return rc ? rc : tm_manifest_from_json(doc, origin, m, e);
}

int tm_manifest_load(const char *path, tm_manifest *m, tm_error *e) {
    tm_buf text = {0};
    *m = (tm_manifest){0};
    int rc = tm_read_file(path, TM_MANIFEST_MAX_BYTES, &text, e);
    if (!rc)
        rc = tm_manifest_parse(text.data, text.len, path, m, e);
    tm_buf_free(&text);
    return rc;
}

void tm_manifest_free(tm_manifest *m) {
    for (size_t i = 0; i < m->weights_count; i++) {
        free(m->weights[i].repo);
        free(m->weights[i].revision);
        free(m->weights[i].type);
        tm_list_free(&m->weights[i].allow);
        tm_list_free(&m->weights[i].ignore);
    }
    free(m->weights);
    free(m->profiles);
    json_decref(m->doc);
    *m = (tm_manifest){0};
}

char *tm_manifest_image_ref(const tm_manifest *m) {
    if (!strcmp(m->registry, "hf"))
        return tm_strdup(m->tag);
    if (m->digest)
        return tm_fmt("%s/%s@%s", m->registry, m->repository, m->digest);
    const char *colon = strrchr(m->tag, ':');
    return tm_fmt("%s/%s:%s", m->registry, m->repository, colon ? colon + 1 : m->tag);
}
