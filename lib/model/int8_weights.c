#include "model/int8_weights.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "model/safetensors.h"

static const char suffix[] = ".safetensors", format[] = "superpoint int8 1";

enum { TENSORS = 4 * (SP_INT8_LAST + 1) - 4 }; /* layer 0 has steps alone, the last one has none */

/* Scales and steps lie between, so that neither they nor their quotients leave the range of float32. */
static const float least = 1e-15f, most = 1e15f;

static bool int8_path(const char *weights_path, char *out, size_t size) {
    const size_t length = strlen(weights_path), end = sizeof suffix - 1;
    if (length <= end || strcmp(weights_path + length - end, suffix) != 0)
        return false;
    const int n = snprintf(out, size, "%.*s.int8", (int)(length - end), weights_path);
    return n > 0 && (size_t)n < size;
}

/* The tensor LAYER.WHAT, of this type and rank and with the layer's shape. */
static sp_status find(const sp_safetensors *st, const char *file, const sp_layer *layer, const char *what,
                      sp_tensor_type type, const sp_tensor **out, sp_error *err) {
    char name[128];
    snprintf(name, sizeof name, "%s.%s", layer->name, what);
    const sp_tensor *t = *out = sp_safetensors_find(st, name);
    if (!t)
        return sp_fail(err, SP_ERR_WEIGHTS_DATA, "%s: tensor %s is absent", file, name);
    const uint64_t shape[4] = {layer->out, layer->in, layer->kernel, layer->kernel};
    const unsigned rank = type == SP_TENSOR_I8 ? 4 : 1;
    if (t->type != type || t->rank != rank || memcmp(t->shape, shape, rank * sizeof *shape) != 0)
        return sp_fail(err, SP_ERR_WEIGHTS_DATA, "%s: tensor %s has another type or shape", file, name);
    return SP_OK;
}

static sp_status load_floats(const sp_safetensors *st, const char *file, const sp_layer *layer, const char *what,
                             bool positive, float *out, sp_error *err) {
    const sp_tensor *tensor;
    sp_status status = find(st, file, layer, what, SP_TENSOR_F32, &tensor, err);
    if (status != SP_OK)
        return status;
    sp_tensor_to_float(tensor, out);
    for (uint32_t i = 0; i < layer->out; i++)
        if (!(fabsf(out[i]) <= most) || (positive && !(out[i] >= least)))
            return sp_fail(err, SP_ERR_WEIGHTS_DATA, "%s: tensor %s.%s: value %u is %g", file, layer->name, what, i,
                           (double)out[i]);
    return SP_OK;
}

static sp_status load_layer(const sp_safetensors *st, const char *file, int index, int8_t *weights, sp_int8_layer *out,
                            sp_error *err) {
    const sp_layer *layer = &sp_network[index];
    sp_status status = SP_OK;
    if (index < SP_INT8_LAST)
        status = load_floats(st, file, layer, "step", true, out->step, err);
    if (status != SP_OK || index < SP_INT8_FIRST)
        return status;
    const sp_tensor *tensor;
    if ((status = find(st, file, layer, "weight", SP_TENSOR_I8, &tensor, err)) != SP_OK ||
        (status = load_floats(st, file, layer, "scale", true, out->scale, err)) != SP_OK ||
        (status = load_floats(st, file, layer, "bias", false, out->bias, err)) != SP_OK)
        return status;
    memcpy(weights, tensor->data, tensor->elements);
    out->weight = weights;
    return SP_OK;
}

static sp_status load_layers(const sp_safetensors *st, const char *file, struct sp_int8_weights **out, sp_error *err) {
    if (sp_safetensors_count(st) != TENSORS)
        return sp_fail(err, SP_ERR_WEIGHTS_DATA, "%s: %zu tensors in place of %d", file, sp_safetensors_count(st),
                       TENSORS);
    struct sp_int8_weights *w = calloc(1, sizeof *w);
    if (!w)
        return sp_fail_memory(err, file, sizeof *w);
    int8_t *next = w->weights;
    for (int i = 0; i <= SP_INT8_LAST; i++) {
        sp_status status = load_layer(st, file, i, next, &w->layer[i], err);
        if (status != SP_OK) {
            free(w);
            return status;
        }
        next += i < SP_INT8_FIRST ? 0 : sp_layer_kernel_size(&sp_network[i]);
    }
    *out = w;
    return SP_OK;
}

static sp_status parse(const void *bytes, size_t size, const char *file, const char *sha256,
                       struct sp_int8_weights **out, sp_error *err) {
    sp_safetensors *st = NULL;
    sp_status status = sp_safetensors_open(bytes, size, file, &st, err);
    if (status != SP_OK)
        return status;
    const char *made_as = sp_safetensors_metadata(st, "format"), *made_from = sp_safetensors_metadata(st, "weights");
    if (!made_as || strcmp(made_as, format) != 0 || !made_from)
        status =
            sp_fail(err, SP_ERR_WEIGHTS_DATA, "%s: its metadata do not say `%s` and of which weights", file, format);
    else if (strcmp(made_from, sha256) == 0)
        status = load_layers(st, file, out, err);
    sp_safetensors_close(st);
    return status;
}

sp_status sp_int8_weights_load(const char *weights_path, const char *sha256, struct sp_int8_weights **out,
                               sp_error *err) {
    char path[4096];
    void *bytes = NULL;
    size_t size = 0;
    *out = NULL;
    if (!int8_path(weights_path, path, sizeof path) || access(path, R_OK) != 0)
        return SP_OK;
    sp_status status = sp_file_read(path, SP_MAX_INT8_BYTES, &bytes, &size, err);
    if (status == SP_OK)
        status = parse(bytes, size, path, sha256, out, err);
    free(bytes);
    return status;
}
