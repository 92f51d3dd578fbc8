#include "model/model.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/file.h"
#include "model/hub_cache.h"
#include "model/int8_weights.h"
#include "model/safetensors.h"

struct sp_model {
    float *values; /* all tensors, one after another */
    sp_weights weights;
    struct sp_int8_weights *int8;
    sp_model_info info;
    char *path, *id, *licence;
    char revision[SP_HUB_MAX_REVISION];
    char sha256[65];
};

/* Licences of weights that say nothing of it in the file itself. */
static const struct {
    const char *id, *licence;
} known_licences[] = {
    {"magic-leap-community/superpoint", "Magic Leap: academic or non-profit, noncommercial research use only"},
};

static sp_status check_tensor(const sp_tensor *tensor, const char *file, const char *name, const sp_layer *layer,
                              bool bias, sp_error *err) {
    if (!tensor)
        return sp_fail(err, SP_ERR_WEIGHTS_NETWORK, "%s: weights of another network: tensor %s is absent", file, name);
    const uint64_t shape[4] = {layer->out, layer->in, layer->kernel, layer->kernel};
    const unsigned rank = bias ? 1 : 4;
    bool same = tensor->rank == rank;
    for (unsigned i = 0; same && i < rank; i++)
        same = tensor->shape[i] == shape[i];
    if (!same)
        return sp_fail(err, SP_ERR_WEIGHTS_NETWORK, "%s: weights of another network: tensor %s has another shape", file,
                       name);
    if (!sp_tensor_is_float(tensor))
        return sp_fail(err, SP_ERR_WEIGHTS_NETWORK, "%s: tensor %s is not float32, float16 or bfloat16", file, name);
    return SP_OK;
}

/* Copy one tensor to `out`, refusing values that no training leaves. */
static sp_status load_tensor(const sp_safetensors *st, const char *file, const sp_layer *layer, bool bias, float *out,
                             sp_error *err) {
    char name[128];
    snprintf(name, sizeof name, "%s.%s", layer->name, bias ? "bias" : "weight");
    const sp_tensor *tensor = sp_safetensors_find(st, name);
    sp_status status = check_tensor(tensor, file, name, layer, bias, err);
    if (status != SP_OK)
        return status;
    sp_tensor_to_float(tensor, out);
    for (uint64_t i = 0; i < tensor->elements; i++)
        if (!isfinite(out[i]))
            return sp_fail(err, SP_ERR_WEIGHTS_DATA, "%s: tensor %s holds a value that is not finite", file, name);
    return SP_OK;
}

static sp_status load_tensors(sp_model *model, const sp_safetensors *st, const char *file, sp_error *err) {
    float *out = model->values = malloc(SP_PARAMETERS * sizeof *out);
    if (!out)
        return sp_fail_memory(err, file, SP_PARAMETERS * sizeof *out);
    for (int i = 0; i < SP_LAYERS; i++) {
        const sp_layer *layer = &sp_network[i];
        model->weights.kernel[i] = out;
        sp_status status = load_tensor(st, file, layer, false, out, err);
        out += sp_layer_kernel_size(layer);
        model->weights.bias[i] = out;
        if (status == SP_OK)
            status = load_tensor(st, file, layer, true, out, err);
        out += layer->out;
        if (status != SP_OK)
            return status;
    }
    if (sp_safetensors_count(st) != 2 * SP_LAYERS)
        return sp_fail(err, SP_ERR_WEIGHTS_NETWORK, "%s: weights of another network: %zu tensors, %d are known", file,
                       sp_safetensors_count(st), 2 * SP_LAYERS);
    return SP_OK;
}

static sp_status fill_info(sp_model *model, const sp_safetensors *st, const char *path, const char *id,
                           const char *revision, sp_error *err) {
    const char *licence = sp_safetensors_metadata(st, "license");
    if (!licence)
        licence = sp_safetensors_metadata(st, "licence");
    for (size_t i = 0; !licence && i < sizeof known_licences / sizeof known_licences[0]; i++)
        if (strcmp(known_licences[i].id, id) == 0)
            licence = known_licences[i].licence;
    model->path = strdup(path);
    model->id = strdup(id);
    model->licence = strdup(licence ? licence : "unknown");
    if (!model->path || !model->id || !model->licence)
        return sp_fail_memory(err, path, strlen(path));
    snprintf(model->revision, sizeof model->revision, "%s", revision);
    model->info = (sp_model_info){.path = model->path,
                                  .id = model->id,
                                  .revision = model->revision,
                                  .sha256 = model->sha256,
                                  .licence = model->licence,
                                  .parameters = SP_PARAMETERS};
    return SP_OK;
}

static sp_status make_model(const void *bytes, size_t size, const char *path, const char *id, const char *revision,
                            sp_model **out, sp_error *err) {
    sp_safetensors *st = NULL;
    sp_status status = sp_safetensors_open(bytes, size, path, &st, err);
    if (status != SP_OK)
        return status;
    sp_model *model = calloc(1, sizeof *model);
    if (!model)
        status = sp_fail_memory(err, path, sizeof *model);
    else if ((status = load_tensors(model, st, path, err)) == SP_OK &&
             (status = fill_info(model, st, path, id, revision, err)) == SP_OK &&
             (status = sp_sha256_hex(bytes, size, model->sha256, err)) == SP_OK)
        *out = model;
    sp_safetensors_close(st);
    if (status != SP_OK)
        sp_model_free(model);
    return status;
}

/* "dir/name.safetensors" -> "name" */
static void stem(const char *path, char *out, size_t size) {
    const char *slash = strrchr(path, '/');
    snprintf(out, size, "%s", slash ? slash + 1 : path);
    char *dot = strrchr(out, '.');
    if (dot && dot != out)
        *dot = '\0';
}

sp_status sp_model_open(const char *weights, const sp_model_options *options, sp_model **model, sp_error *err) {
    *model = NULL;
    if (!weights || !*weights)
        return sp_fail(err, SP_ERR_ARGUMENT, "weights: neither a file nor a Hub id was given");
    sp_hub_entry entry = {.path = ""};
    char id[256];
    sp_status status = sp_hub_find(weights, options ? options->hub_cache : NULL, &entry, err);
    if (status != SP_OK)
        return status;
    if (entry.id[0])
        snprintf(id, sizeof id, "%s", entry.id);
    else
        stem(weights, id, sizeof id);
    void *bytes = NULL;
    size_t size = 0;
    status = sp_file_read(entry.path, SP_MAX_WEIGHTS_BYTES, &bytes, &size, err);
    if (status == SP_OK)
        status = make_model(bytes, size, entry.path, id, entry.revision, model, err);
    free(bytes);
    if (status == SP_OK)
        status = sp_int8_weights_load(entry.path, (*model)->sha256, &(*model)->int8, err);
    if (status != SP_OK) {
        sp_model_free(*model);
        *model = NULL;
        return status;
    }
    (*model)->weights.int8 = (*model)->int8;
    return sp_succeed(err);
}

sp_status sp_model_from_memory(const void *bytes, size_t size, const char *name, sp_model **model, sp_error *err) {
    *model = NULL;
    char id[256];
    stem(name, id, sizeof id);
    sp_status status = make_model(bytes, size, name, id, "", model, err);
    return status == SP_OK ? sp_succeed(err) : status;
}

void sp_model_free(sp_model *model) {
    if (!model)
        return;
    free(model->values);
    free(model->int8);
    free(model->path);
    free(model->id);
    free(model->licence);
    free(model);
}

const sp_model_info *sp_model_get_info(const sp_model *model) {
    return &model->info;
}

const sp_weights *sp_model_weights(const sp_model *model) {
    return &model->weights;
}
