#include "card.h"

#include "base/fs.h"
#include "base/json.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_REPORT = 16 << 20 };

#define NOT_PROVIDED "Not provided by the package author."

/* ---- values of reports ------------------------------------------------------------------------------ */

static const json_t *look_up(const json_t *v, const char *key_path) {
    char *copy = tm_strdup(key_path), *save = NULL;
    for (char *part = strtok_r(copy, ".", &save); part && v; part = strtok_r(NULL, ".", &save))
        v = json_is_array(v) ? json_array_get(v, (size_t)strtoul(part, NULL, 10)) : json_object_get(v, part);
    free(copy);
    return v;
}

/* "%.4f": a percent, a dot, one digit, f. Nothing else reaches printf. */
static int digits_of(const char *format) {
    return format && strlen(format) == 4 && format[0] == '%' && format[1] == '.' && isdigit((unsigned char)format[2]) &&
                   format[3] == 'f'
               ? format[2] - '0'
               : -1;
}

static int one_value(const tm_authored *a, const char *key, char *spec, tm_buf *out, tm_error *e) {
    char *format = strchr(spec, '|'), *hash = strchr(spec, '#');
    if (format)
        *format++ = '\0';
    if (!hash || (format && digits_of(format) < 0))
        return tm_yaml_error(&a->yaml, key, e,
                             "holds {{%s}}: {{file.json#key.path}} or {{file.json#key.path|%%.4f}} "
                             "is wanted",
                             spec);
    *hash = '\0';
    char *path = tm_authored_path(a, spec);
    json_t *doc = NULL;
    tm_error inner = {0};
    int rc = tm_json_load(path, MAX_REPORT, &doc, &inner);
    const json_t *v = rc ? NULL : look_up(doc, hash + 1);
    if (rc)
        rc = tm_yaml_error(&a->yaml, key, e, "needs a report: %s", inner.what);
    else if (json_is_number(v) && format)
        tm_buf_printf(out, "%.*f", digits_of(format), json_number_value(v));
    else if (json_is_integer(v))
        tm_buf_printf(out, "%lld", (long long)json_integer_value(v));
    else if (json_is_real(v))
        tm_buf_printf(out, "%.6g", json_real_value(v));
    else if (json_is_string(v))
        tm_buf_puts(out, json_string_value(v));
    else
        rc = tm_yaml_error(&a->yaml, key, e, "needs the value %s of %s, which is not there", hash + 1, path);
    json_decref(doc);
    free(path);
    return rc;
}

static int fill_in(const tm_authored *a, const char *key, const char *text, tm_buf *out, tm_error *e) {
    for (const char *open; (open = strstr(text, "{{"));) {
        const char *close = strstr(open, "}}");
        if (!close)
            break;
        tm_buf_add(out, text, (size_t)(open - text));
        char *spec = tm_strndup(open + 2, (size_t)(close - open - 2));
        int rc = one_value(a, key, spec, out, e);
        free(spec);
        if (rc)
            return rc;
        text = close + 2;
    }
    tm_buf_puts(out, text);
    return TM_OK;
}

int tm_card_resolve(const tm_authored *a, json_t **card, tm_error *e) {
    const char *key;
    json_t *v;
    *card = json_object();
    json_object_foreach(tm_json_object(a->doc, "card"), key, v) {
        if (!json_is_string(v)) {
            json_object_set(*card, key, v);
            continue;
        }
        char *path = tm_fmt("card.%s", key);
        tm_buf text = {0};
        int rc = fill_in(a, path, json_string_value(v), &text, e);
        if (!rc)
            json_object_set_new(*card, key, json_string(text.data));
        tm_buf_free(&text);
        free(path);
        if (rc) {
            json_decref(*card);
            *card = NULL;
            return rc;
        }
    }
    return TM_OK;
}

/* ---- front matter ------------------------------------------------------------------------------------ */

void tm_card_tags(const tm_manifest *m, bool listed, tm_list *tags) {
    tm_list_add(tags, "tt-model-cache");
    tm_list_add(tags, "tt-model-container");
    tm_list_add(tags, m->arch);
    tm_list_add(tags, m->kind);
    if (listed)
        tm_list_add(tags, "tt-model-catalog");
    for (size_t i = 0; i < m->profile_count; i++) {
        tm_profile p;
        if (tm_manifest_profile(m, m->profiles[i], &p, NULL) != TM_OK)
            continue;
        if (p.hardware && !tm_list_has(tags, p.hardware))
            tm_list_add(tags, p.hardware);
        tm_profile_free(&p);
    }
    tm_list_sort(tags);
}

static void slugify(const char *s, tm_buf *out) {
    bool dash = false;
    for (; *s; s++) {
        char c = (char)tolower((unsigned char)*s);
        if (isalnum((unsigned char)c) || c == '.') {
            if (dash && out->len)
                tm_buf_puts(out, "-");
            tm_buf_add(out, &c, 1);
            dash = false;
        } else {
            dash = true;
        }
    }
}

/* A word that YAML would not take for anything else, or the same in quotes. */
static void yaml_word(tm_buf *out, const char *s) {
    bool plain = isalpha((unsigned char)*s) &&
                 s[strspn(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_./-")] == '\0';
    if (plain) {
        tm_buf_puts(out, s);
        return;
    }
    tm_buf_puts(out, "'");
    for (; *s; s++)
        tm_buf_printf(out, *s == '\'' ? "''" : "%c", *s);
    tm_buf_puts(out, "'");
}

static void front_matter(const tm_manifest *m, const json_t *card, tm_buf *out) {
    const json_t *license = tm_json_object(card, "license"), *base = json_object_get(card, "base_model");
    const char *id = tm_json_str(license, "id"), *pipeline = tm_json_str(card, "pipeline_tag");
    tm_list tags = {0};
    tm_card_tags(m, false, &tags);
    tm_buf_puts(out, "---\ntags:\n");
    for (size_t i = 0; i < tags.count; i++) {
        tm_buf_puts(out, "- ");
        yaml_word(out, tags.items[i]);
        tm_buf_puts(out, "\n");
    }
    if (id) {
        tm_buf_puts(out, "license: ");
        yaml_word(out, id);
        tm_buf_puts(out, "\n");
    }
    if (id && !strcmp(id, "other")) {
        tm_buf slug = {0};
        slugify(tm_json_str_or(license, "name", "other"), &slug);
        tm_buf_printf(out, "license_name: %s\nlicense_link: ", slug.data ? slug.data : "other");
        yaml_word(out, tm_json_str_or(license, "link", ""));
        tm_buf_puts(out, "\n");
        tm_buf_free(&slug);
    }
    if (pipeline || tm_starts_with(m->kind, "vllm"))
        tm_buf_printf(out, "pipeline_tag: %s\n", pipeline ? pipeline : "text-generation");
    size_t i;
    json_t *v;
    if (json_is_string(base) || json_array_size(base) || m->has_weights) {
        tm_buf_puts(out, "base_model:\n");
        if (json_is_string(base))
            tm_buf_printf(out, "- %s\n", json_string_value(base));
        json_array_foreach(base, i, v) tm_buf_printf(out, "- %s\n", json_is_string(v) ? json_string_value(v) : "");
        if (!json_is_string(base) && !json_array_size(base))
            tm_buf_printf(out, "- %s\n", m->weights[0].repo);
    }
    tm_buf_puts(out, "---\n\n");
    tm_list_free(&tags);
}

/* ---- sections ---------------------------------------------------------------------------------------- */

static void section(tm_buf *out, const char *title, const char *text) {
    const char *said = text && *text ? text : NOT_PROVIDED;
    size_t n = strlen(said);
    while (n && said[n - 1] == '\n')
        n--;
    tm_buf_printf(out, "## %s\n\n%.*s\n\n", title, (int)n, said);
}

static void row(tm_buf *out, const char *name, const char *value) {
    if (value && *value)
        tm_buf_printf(out, "| %s | %s |\n", name, value);
}

static void licence_text(const json_t *card, tm_buf *out) {
    const json_t *license = tm_json_object(card, "license");
    const char *name = tm_json_str(license, "name"), *link = tm_json_str(license, "link"),
               *id = tm_json_str(license, "id");
    if (link)
        tm_buf_printf(out, "[%s](%s)", name ? name : id ? id : "licence", link);
    else if (id)
        tm_buf_puts(out, id);
}

static void at_a_glance(const tm_manifest *m, const tm_profile *p, const json_t *card, tm_buf *out) {
    tm_buf licence = {0};
    licence_text(card, &licence);
    char *hardware = p->hardware ? tm_fmt("%s (%s)", p->hardware, m->arch) : tm_strdup(m->arch);
    json_int_t len = tm_json_int(p->serve, "max_model_len", 0);
    char *context = len ? tm_fmt("%lld tokens", (long long)len) : NULL;
    tm_buf_puts(out, "## At a glance\n\n| | |\n|---|---|\n");
    row(out, "Architecture", tm_json_str(card, "architecture"));
    row(out, "Hardware", hardware);
    row(out, "Context", context);
    row(out, "License", licence.data);
    row(out, "Status", tm_json_str(card, "status"));
    tm_buf_puts(out, "\n");
    free(hardware);
    free(context);
    tm_buf_free(&licence);
}

static void quickstart(const char *repo_id, const json_t *card, const char *marker, tm_buf *out) {
    tm_buf_printf(out,
                  "## Quickstart\n\n```bash\ntt model pull %s\ntt serve %s\n```\n\nor, without `tt`:\n\n"
                  "```bash\ntt-model pull %s --with-weights\ntt-model serve %s\n```\n\n"
                  "It listens on port 20000, or on the next free one and says which, and is ready when its log says "
                  "`%s`.\n\n",
                  repo_id, repo_id, repo_id, repo_id, marker);
    const char *own = tm_json_str(card, "quickstart");
    if (own)
        tm_buf_printf(out, "%s\n\n", own);
}

static void profiles(const tm_manifest *m, tm_buf *out) {
    if (m->profile_count < 2)
        return;
    tm_buf_puts(out, "## Serve profiles\n\n| profile | hardware | mesh | |\n|---|---|---|---|\n");
    for (size_t i = 0; i < m->profile_count; i++) {
        tm_profile p;
        if (tm_manifest_profile(m, m->profiles[i], &p, NULL) != TM_OK)
            continue;
        size_t k;
        json_t *v;
        const char *about = "";
        json_array_foreach(json_object_get(m->container, "serve_profiles"), k, v) {
            if (!strcmp(tm_json_str_or(v, "name", ""), p.name))
                about = tm_json_str_or(v, "description", "");
        }
        tm_buf_printf(out, "| `%s`%s | %s | %s | %s |\n", p.name,
                      strcmp(p.name, m->default_profile) ? "" : " (default)", p.hardware ? p.hardware : "none needed",
                      p.mesh_device ? p.mesh_device : "-", about);
        tm_profile_free(&p);
    }
    tm_buf_puts(out, "\n");
}

static void usage(const tm_manifest *m, const json_t *card, tm_buf *out) {
    const char *own = tm_json_str(card, "usage");
    tm_buf_puts(out, "## Using it\n\n");
    tm_buf_puts(out, tm_starts_with(m->kind, "vllm")
                         ? "The server speaks the OpenAI API.\n\n"
                         : "The server has its own API, which it documents at `/docs` and `/openapi.json`.\n\n");
    if (own)
        tm_buf_printf(out, "%s\n\n", own);
}

static bool browsable(const char *remote) {
    return remote && (tm_starts_with(remote, "https://github.com/") || tm_starts_with(remote, "https://gitlab.com/"));
}

static void source_row(const char *name, const json_t *src, tm_buf *out) {
    const char *sha = tm_json_str(src, "sha"), *remote = tm_json_str(src, "remote");
    if (!sha)
        return;
    const char *dirty = tm_json_bool(src, "dirty", false) ? ", with changes that were not committed" : "";
    char *value;
    if (browsable(remote) && tm_json_bool(src, "pushed", false)) {
        int n = (int)strlen(remote) - (tm_ends_with(remote, ".git") ? 4 : 0);
        value = tm_fmt("[`%.12s`](%.*s/tree/%s)%s", sha, n, remote, sha, dirty);
    } else {
        value = tm_fmt("`%.12s`, a local checkout%s", sha, dirty);
    }
    row(out, name, value);
    free(value);
}

static void provenance(const tm_manifest *m, tm_buf *out) {
    const json_t *built = tm_json_object(m->container, "built");
    const char *code = tm_json_str(built, "code_sha256");
    char *digest = code ? tm_fmt("`%.16s`", code) : NULL, *image = tm_fmt("`%s`", m->tag);
    char *weights = !m->has_weights ? NULL
                    : m->weights[0].revision
                        ? tm_fmt("[%s](https://huggingface.co/%s) at `%.12s`", m->weights[0].repo, m->weights[0].repo,
                                 m->weights[0].revision)
                        : tm_fmt("[%s](https://huggingface.co/%s)", m->weights[0].repo, m->weights[0].repo);
    tm_buf_puts(out, "## Provenance\n\n| | |\n|---|---|\n");
    row(out, "Weights", weights);
    row(out, "Image", image);
    source_row("tt-metal", json_object_get(built, "tt_metal"), out);
    source_row("Source", json_object_get(built, "source"), out);
    row(out, "Code digest", digest);
    row(out, "Built", tm_json_str(built, "created_at"));
    free(digest);
    free(image);
    free(weights);
}

int tm_card_write(const tm_manifest *m, const char *repo_id, tm_buf *out, tm_error *e) {
    const json_t *card = tm_json_object(m->container, "card");
    tm_profile p;
    int rc = tm_manifest_profile(m, NULL, &p, e);
    if (rc)
        return rc;
    front_matter(m, card, out);
    tm_buf_printf(out, "# %s\n\n%s\n\n", m->name, tm_json_str_or(card, "description", NOT_PROVIDED));
    if (p.hardware)
        tm_buf_printf(out, "Runs on **%s** (mesh `%s`).\n", p.hardware, p.mesh_device ? p.mesh_device : "-");
    tm_buf_printf(out, "Packaged and published with tt-model-manager %s (manifest schema %s).\n\n", TM_VERSION,
                  m->schema);
    size_t i;
    json_t *v;
    json_array_foreach(json_object_get(card, "media"), i, v)
        tm_buf_printf(out, "![%s](media/%s)\n\n", m->name, tm_basename(json_is_string(v) ? json_string_value(v) : ""));
    at_a_glance(m, &p, card, out);
    tm_buf_puts(out, "## Intended use\n\n");
    tm_buf_printf(out, "**Direct use.** %s\n\n**Out of scope.** %s\n\n",
                  tm_json_str_or(card, "intended_use", NOT_PROVIDED),
                  tm_json_str_or(card, "out_of_scope_use", NOT_PROVIDED));
    quickstart(repo_id, card, "Application startup complete", out);
    profiles(m, out);
    usage(m, card, out);
    section(out, "Expected performance", tm_json_str(card, "performance"));
    section(out, "Limitations", tm_json_str(card, "limitations"));
    section(out, "Risks", tm_json_str(card, "risks"));
    section(out, "Licensing", tm_json_str(card, "licensing"));
    section(out, "Related packages", tm_json_str(card, "related"));
    char *feedback = tm_fmt("Open a discussion at https://huggingface.co/%s/discussions.", repo_id);
    section(out, "Feedback", feedback);
    free(feedback);
    provenance(m, out);
    tm_profile_free(&p);
    return TM_OK;
}

int tm_card_set_listed(const char *readme, bool listed, tm_buf *out, tm_error *e) {
    static const char tag[] = "- tt-model-catalog\n";
    const char *tags = strstr(readme, "\ntags:\n"),
               *end = tm_starts_with(readme, "---\n") ? strstr(readme + 4, "\n---") : NULL;
    if (!tags || !end || tags > end)
        return tm_fail(e, TM_ERROR, "the repository's README.md has no tags in its front matter");
    const char *there = strstr(tags, tag);
    if (there && there > end)
        there = NULL;
    const char *cut = there ? there : tags + strlen("\ntags:\n");
    tm_buf_add(out, readme, (size_t)(cut - readme));
    if (listed)
        tm_buf_puts(out, tag);
    tm_buf_puts(out, there ? there + strlen(tag) : cut);
    return TM_OK;
}
