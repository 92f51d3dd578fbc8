#include "compose.h"

#include "base/text.h"
#include "manifest.h"
#include "runtime/docker.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static json_t *or_null(const json_t *v) {
    return v ? json_incref((json_t *)v) : json_null();
}

static json_t *or_empty(const json_t *v, bool object) {
    return v && !json_is_null(v) ? json_incref((json_t *)v) : object ? json_object() : json_array();
}

static json_t *weights(const json_t *w) {
    json_t *out = json_object();
    json_object_set_new(out, "repo_id",
                        json_is_string(w) ? json_incref((json_t *)w) : or_null(json_object_get(w, "repo")));
    json_object_set_new(out, "revision", or_null(json_object_get(w, "revision")));
    json_object_set_new(out, "allow_patterns", or_null(json_object_get(w, "allow_patterns")));
    json_object_set_new(out, "ignore_patterns", or_null(json_object_get(w, "ignore_patterns")));
    json_object_set_new(out, "repo_type", json_string("model"));
    return out;
}

static json_t *serve_settings(const json_t *s, bool named) {
    static const char *const plain[] = {"hardware",     "mesh_device", "port",          "max_model_len",
                                        "max_num_seqs", "block_size",  "server_timeout"};
    json_t *out = json_object(), *caps = json_object();
    const json_t *given = json_object_get(s, "capabilities");
    if (named) {
        json_object_set_new(out, "name", or_null(json_object_get(s, "name")));
        json_object_set_new(out, "description", or_null(json_object_get(s, "description")));
    }
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++)
        json_object_set_new(out, plain[i], or_null(json_object_get(s, plain[i])));
    json_object_set_new(caps, "tool_parser", or_null(json_object_get(given, "tool_parser")));
    json_object_set_new(caps, "reasoning_parser", or_null(json_object_get(given, "reasoning_parser")));
    json_object_set_new(out, "capabilities", caps);
    json_object_set_new(out, "additional_config", or_empty(json_object_get(s, "additional_config"), true));
    json_object_set_new(out, "args", or_empty(json_object_get(s, "args"), false));
    json_object_set_new(out, "env", or_empty(json_object_get(s, "env"), true));
    return out;
}

static json_t *all_profiles(const tm_authored *a) {
    json_t *out = json_array(), *v;
    size_t i;
    json_array_foreach(json_object_get(a->doc, "serve_profiles"), i, v)
        json_array_append_new(out, serve_settings(v, true));
    if (!json_array_size(out)) {
        json_t *only = json_pack("{s:s}", "name", "default");
        json_array_append_new(out, serve_settings(only, true));
        json_decref(only);
    }
    return out;
}

/* Chips of the default profile, as the older readers want to know it. */
static int device_count(const tm_authored *a) {
    const char *chosen = tm_json_str(a->doc, "default_profile");
    json_t *list = json_object_get(a->doc, "serve_profiles"), *v, *over = json_array_get(list, 0);
    size_t i;
    json_array_foreach(list, i, v) {
        if (chosen && !strcmp(tm_json_str_or(v, "name", ""), chosen))
            over = v;
    }
    json_t *merged = tm_merge(json_object_get(a->doc, "serve"), over);
    int chips = tm_hardware_chips(tm_json_str_or(merged, "hardware", ""));
    json_decref(merged);
    return chips ? chips : 1;
}

static json_t *built(const tm_authored *a, const tm_built *b) {
    json_t *out = json_object();
    json_object_set_new(out, "image", json_string(b->image_tag));
    json_object_set_new(out, "image_digest", json_string(b->image_digest));
    json_object_set(out, "repo", json_object_get(a->doc, "repo"));
    json_object_set_new(out, "tt_model_version", json_string(TM_VERSION));
    json_object_set_new(out, "created_at", json_string(b->created_at));
    json_object_set(out, "tt_metal", b->tt_metal);
    json_object_set(out, "source", b->source);
    json_object_set_new(out, "code_sha256", json_string(b->code_sha256));
    return out;
}

static json_t *container(const tm_authored *a, const tm_built *b) {
    const json_t *image = json_object_get(a->doc, "image");
    const char *name = tm_json_str(a->doc, "name");
    json_t *out = json_object(), *runtime = or_empty(json_object_get(a->doc, "runtime"), true);
    json_object_set_new(out, "image",
                        json_pack("{s:s, s:s, s:s, s:s}", "registry", tm_json_str_or(image, "registry", "hf"),
                                  "repository", tm_json_str_or(image, "repository", name), "tag", b->image_tag,
                                  "digest", b->image_digest));
    json_object_set_new(out, "kind", json_string(tm_json_str_or(a->doc, "kind", "vllm-plugin")));
    json_object_set_new(out, "runtime", runtime);
    json_object_set_new(out, "serve", serve_settings(json_object_get(a->doc, "serve"), false));
    json_object_set_new(out, "serve_profiles", all_profiles(a));
    json_object_set_new(out, "default_profile", or_null(json_object_get(a->doc, "default_profile")));
    json_object_set_new(out, "code_dir", json_string("code"));
    json_object_set_new(out, "verify", json_array());
    json_object_set_new(out, "built", built(a, b));
    json_object_set(out, "card", b->card);
    return out;
}

static json_t *metal_version(const tm_authored *a, const tm_built *b) {
    const char *describe = tm_json_str(b->tt_metal, "describe");
    (void)a;
    return describe ? json_string(describe) : json_string("none: this image runs without tt-metal");
}

json_t *tm_compose_manifest(const tm_authored *a, const tm_built *b) {
    json_t *doc = json_object(), *aux = json_array(), *v;
    char host[256] = "";
    gethostname(host, sizeof host - 1);
    size_t i;
    json_array_foreach(json_object_get(a->doc, "auxiliary_weights"), i, v) json_array_append_new(aux, weights(v));
    json_object_set_new(doc, "schema_version", json_string("5.1"));
    json_object_set(doc, "name", json_object_get(a->doc, "name"));
    json_object_set_new(doc, "tt_metal_version", metal_version(a, b));
    json_object_set(doc, "arch", json_object_get(a->doc, "arch"));
    json_object_set_new(doc, "device_count", json_integer(device_count(a)));
    json_object_set_new(
        doc, "producer",
        json_pack("{s:s, s:s, s:s}", "tt_kernel_version", TM_VERSION, "created_at", b->created_at, "hostname", host));
    json_object_set_new(doc, "weights", weights(json_object_get(a->doc, "weights")));
    json_object_set_new(doc, "auxiliary_weights", aux);
    static const char *const unused[] = {"mesh", "entrypoint", "resources", "capabilities"};
    for (size_t k = 0; k < 4; k++)
        json_object_set_new(doc, unused[k], json_null());
    json_object_set_new(doc, "env", json_object());
    json_object_set_new(doc, "bundled", json_null());
    json_object_set_new(doc, "deps", json_null());
    json_object_set_new(doc, "container", container(a, b));
    return doc;
}

json_t *tm_compose_labels(const tm_authored *a, const json_t *source) {
    const json_t *w = json_object_get(a->doc, "weights");
    json_t *labels = json_object(), *v;
    tm_buf profiles = {0};
    size_t i;
    json_array_foreach(json_object_get(a->doc, "serve_profiles"), i, v)
        tm_buf_printf(&profiles, "%s%s", i ? "," : "", tm_json_str_or(v, "name", ""));
    static const struct {
        const char *label, *key, *otherwise;
    } plain[] = {{TM_LABEL, "name", ""},
                 {TM_LABEL ".repo", "repo", ""},
                 {TM_LABEL ".arch", "arch", ""},
                 {TM_LABEL ".kind", "kind", "vllm-plugin"}};
    for (size_t k = 0; k < sizeof plain / sizeof *plain; k++)
        json_object_set_new(labels, plain[k].label,
                            json_string(tm_json_str_or(a->doc, plain[k].key, plain[k].otherwise)));
    json_object_set_new(labels, TM_LABEL ".weights",
                        json_string(json_is_string(w) ? json_string_value(w) : tm_json_str_or(w, "repo", "")));
    json_object_set_new(labels, TM_LABEL ".profiles", json_string(profiles.len ? profiles.data : "default"));
    json_object_set_new(labels, "org.opencontainers.image.version", json_string(TM_VERSION));
    if (tm_json_str(source, "sha"))
        json_object_set(labels, "org.opencontainers.image.revision", json_object_get(source, "sha"));
    if (tm_json_str(source, "remote"))
        json_object_set(labels, "org.opencontainers.image.source", json_object_get(source, "remote"));
    tm_buf_free(&profiles);
    return labels;
}
