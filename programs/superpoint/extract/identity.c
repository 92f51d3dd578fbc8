#include "extract/identity.h"

#include <jansson.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>

#include "common/fail.h"
#include "common/params.h"

static char *dump(json_t *object) {
    char *text = object ? json_dumps(object, JSON_SORT_KEYS | JSON_COMPACT) : NULL;
    json_decref(object);
    return text;
}

char *identity_text(const sp_model *model, const sp_engine *engine, const sp_params *params) {
    const sp_model_info *w = sp_model_get_info(model);
    const sp_engine_info *e = sp_engine_get_info(engine);
    size_t count;
    const param_spec *specs = params_specs(&count);
    json_t *parameters = json_object();
    for (size_t i = 0; i < count; i++) {
        char text[64];
        params_text(params, &specs[i], text, sizeof text);
        json_object_set_new(parameters, specs[i].name, json_string(text));
    }
    return dump(json_pack("{s:{s:s, s:s, s:s}, s:s, s:s, s:o}", "weights", "id", w->id, "revision", w->revision,
                          "sha256", w->sha256, "engine", e->engine, "precision", sp_precision_text(e->precision),
                          "parameters", parameters));
}

/* Over the names in order, each with its terminator. */
static bool digest_names(const input_list *list, char hex[65]) {
    unsigned char digest[EVP_MAX_MD_SIZE];
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    bool ok = context && EVP_DigestInit_ex(context, EVP_sha256(), NULL);
    for (size_t i = 0; ok && i < list->count; i++)
        ok = EVP_DigestUpdate(context, list->items[i].name, strlen(list->items[i].name) + 1);
    ok = ok && EVP_DigestFinal_ex(context, digest, NULL);
    EVP_MD_CTX_free(context);
    for (int i = 0; ok && i < 32; i++)
        snprintf(hex + 2 * i, 3, "%02x", digest[i]);
    return ok;
}

char *identity_with_pictures(const char *identity, const input_list *list, size_t failed) {
    char hex[65];
    json_t *object = digest_names(list, hex) ? json_loads(identity, 0, NULL) : NULL;
    if (object)
        json_object_set_new(object, "pictures",
                            json_pack("{s:I, s:I, s:s}", "count", (json_int_t)list->count, "failed", (json_int_t)failed,
                                      "names_sha256", hex));
    return dump(object);
}

static sp_status compare_objects(const char *where, const char *prefix, json_t *there, json_t *here, sp_error *err) {
    const char *key;
    json_t *value;
    json_object_foreach(here, key, value) {
        json_t *other = json_object_get(there, key);
        char name[128];
        snprintf(name, sizeof name, "%s%s%s", prefix, *prefix ? "." : "", key);
        if (json_equal(value, other) || strcmp(key, "pictures") == 0)
            continue;
        if (json_is_object(value) && json_is_object(other)) {
            sp_status status = compare_objects(where, name, other, value, err);
            if (status != SP_OK)
                return status;
            continue;
        }
        return fail(err, SP_ERR_ARGUMENT,
                    "%.200s: was made with other settings: %s is %.80s there and %.80s here; they are not mixed", where,
                    name, json_is_string(other) ? json_string_value(other) : "missing",
                    json_is_string(value) ? json_string_value(value) : "?");
    }
    return SP_OK;
}

sp_status identity_compare(const char *where, const char *there, const char *here, sp_error *err) {
    json_t *a = json_loads(there, 0, NULL), *b = json_loads(here, 0, NULL);
    sp_status status = a && b ? compare_objects(where, "", a, b, err)
                              : fail(err, SP_ERR_ARGUMENT, "%.200s: does not say what made it", where);
    json_decref(a);
    json_decref(b);
    return status;
}

bool identity_pictures(const char *text, const input_list *list, bool *same, size_t *failed) {
    char hex[65];
    json_t *object = json_loads(text, 0, NULL), *pictures = json_object_get(object, "pictures");
    const char *digest = json_string_value(json_object_get(pictures, "names_sha256"));
    const bool ok = digest && digest_names(list, hex);
    if (ok) {
        *same = strcmp(digest, hex) == 0;
        *failed = (size_t)json_integer_value(json_object_get(pictures, "failed"));
    }
    json_decref(object);
    return ok;
}

char *identity_weights(const char *text) {
    json_t *object = json_loads(text, 0, NULL);
    const char *sha = json_string_value(json_object_get(json_object_get(object, "weights"), "sha256"));
    char *copy = sha ? strdup(sha) : NULL;
    json_decref(object);
    return copy;
}
