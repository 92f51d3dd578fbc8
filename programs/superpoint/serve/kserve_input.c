/*
 * Requests of the Open Inference Protocol (KServe v2): tensors as JSON, or behind the JSON as bytes
 * (the binary tensor data extension).
 *
 * One input, "image": BYTES [N], each element a picture file (base64 where it stands in JSON), or
 * UINT8 [H,W], [H,W,C] or [N,H,W,C] pixels with C = 1 or 3. Parameters are those of /predict.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/fail.h"
#include "common/json.h"
#include "common/params.h"
#include "input.h"

enum { DIMENSIONS = 4 };

typedef struct tensor {
    json_value name, datatype, shape, data, parameters;
    bool has_name, has_datatype, has_shape, has_data, has_binary;
    size_t dimension[DIMENSIONS], dimensions;
    uint64_t binary_size;
    uint8_t *binary;
} tensor;

/* A whole number of at most 15 digits. */
static bool whole_number(const json_value *value, uint64_t *number) {
    if (value->type != JSON_NUMBER || value->size > 15)
        return false;
    *number = 0;
    for (size_t i = 0; i < value->size; i++) {
        if (value->text[i] < '0' || value->text[i] > '9')
            return false;
        *number = *number * 10 + (uint64_t)(value->text[i] - '0');
    }
    return true;
}

static sp_status wrong(const char *what, sp_error *err) {
    return fail(err, SP_ERR_ARGUMENT, "inputs: %s", what);
}

static sp_status read_shape(tensor *t, sp_error *err) {
    json_walk walk;
    json_value item;
    uint64_t number;
    if (!t->has_shape || t->shape.type != JSON_ARRAY)
        return wrong("image: shape must be an array", err);
    for (walk = json_begin(&t->shape); json_next_item(&walk, &item);) {
        if (t->dimensions == DIMENSIONS || !whole_number(&item, &number))
            return wrong("image: shape must be one to four whole numbers", err);
        t->dimension[t->dimensions++] = (size_t)number;
    }
    return t->dimensions ? SP_OK : wrong("image: shape is empty", err);
}

static void read_tensor(const json_value *object, tensor *t) {
    json_walk walk = json_begin(object);
    json_value key, value, inner;
    *t = (tensor){0};
    while (json_next_member(&walk, &key, &value)) {
        if (json_is(&key, "name")) {
            t->name = value;
            t->has_name = true;
        } else if (json_is(&key, "datatype")) {
            t->datatype = value;
            t->has_datatype = true;
        } else if (json_is(&key, "shape")) {
            t->shape = value;
            t->has_shape = true;
        } else if (json_is(&key, "data")) {
            t->data = value;
            t->has_data = true;
        } else if (json_is(&key, "parameters") && value.type == JSON_OBJECT) {
            for (json_walk in = json_begin(&value); json_next_member(&in, &key, &inner);)
                if (json_is(&key, "binary_data_size"))
                    t->has_binary = whole_number(&inner, &t->binary_size);
        }
    }
}

/* ---- pictures as files ------------------------------------------------------------------------- */

static sp_status files_from_binary(job *j, const tensor *t, sp_error *err) {
    const uint8_t *end = t->binary + t->binary_size;
    uint8_t *p = t->binary;
    for (size_t i = 0; i < j->count; i++) {
        if (end - p < 4)
            return wrong("image: the bytes end before the last element", err);
        uint32_t size = (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
        p += 4;
        if ((size_t)(end - p) < size)
            return wrong("image: an element is longer than the bytes that are left", err);
        if (size == 0)
            return wrong("image: an element is empty", err);
        j->pictures[i].bytes = p;
        j->pictures[i].size = size;
        p += size;
    }
    return p == end ? SP_OK : wrong("image: bytes are left over behind the last element", err);
}

static sp_status files_from_json(job *j, const tensor *t, sp_error *err) {
    json_walk walk = json_begin(&t->data);
    json_value item;
    size_t i = 0;
    while (json_next_item(&walk, &item)) {
        char what[40];
        if (i == j->count)
            return wrong("image: more data than shape says", err);
        snprintf(what, sizeof what, "inputs: image[%zu]", i);
        if (item.type != JSON_STRING)
            return fail(err, SP_ERR_ARGUMENT, "%s: must be a base64 string", what);
        sp_status status =
            input_base64(what, (uint8_t *)item.text, item.size, &j->pictures[i].bytes, &j->pictures[i].size, err);
        if (status != SP_OK)
            return status;
        i++;
    }
    return i == j->count ? SP_OK : wrong("image: less data than shape says", err);
}

static sp_status read_files(job *j, const tensor *t, const config_limits *limits, sp_error *err) {
    size_t count = t->dimension[0];
    if (t->dimensions > 2 || (t->dimensions == 2 && t->dimension[1] != 1))
        return wrong("image: shape of BYTES must be [N] or [N, 1]", err);
    if (count == 0)
        return wrong("image: no pictures", err);
    if ((double)count > limits->max_batch)
        return fail(err, SP_ERR_LIMIT, "inputs: image: %zu pictures, max_batch is %.0f", count, limits->max_batch);
    if (!job_pictures(j, count))
        return fail(err, SP_ERR_MEMORY, "out of memory");
    return t->binary ? files_from_binary(j, t, err) : files_from_json(j, t, err);
}

/* ---- pictures as pixels ------------------------------------------------------------------------ */

/* A whole number within 0...255; -1 when it is not one. */
static int byte_of(const json_value *value) {
    int byte = 0;
    if (value->type != JSON_NUMBER || value->size > 3)
        return -1;
    for (size_t i = 0; i < value->size; i++) {
        if (value->text[i] < '0' || value->text[i] > '9')
            return -1;
        byte = byte * 10 + (value->text[i] - '0');
    }
    return byte <= 255 ? byte : -1;
}

/* Numbers, however nested, become bytes where the first stood: their text is never shorter. */
static sp_status bytes_from_json(const tensor *t, size_t expected, uint8_t **bytes, sp_error *err) {
    const json_value *value = t->data.inside, *end = value + t->data.values;
    uint8_t *out = NULL;
    size_t count = 0;
    for (; value < end; value++) {
        if (value->type == JSON_ARRAY)
            continue;
        const int byte = byte_of(value);
        if (byte < 0)
            return wrong("image: data of UINT8 must be whole numbers within 0...255", err);
        if (count == expected)
            return wrong("image: more data than shape says", err);
        if (!out)
            *bytes = out = (uint8_t *)value->text;
        out[count++] = (uint8_t)byte;
    }
    return count == expected ? SP_OK : wrong("image: less data than shape says", err);
}

static sp_status read_pixels(job *j, tensor *t, const config_limits *limits, sp_error *err) {
    size_t n = 1, channels = 1, first = 0, plane, all;
    if (t->dimensions == 4)
        n = t->dimension[first++];
    if (t->dimensions < 2)
        return wrong("image: shape of UINT8 must be [H,W], [H,W,C] or [N,H,W,C]", err);
    if (t->dimensions > 2)
        channels = t->dimension[t->dimensions - 1];
    size_t height = t->dimension[first], width = t->dimension[first + 1];
    if (channels != 1 && channels != 3)
        return wrong("image: C must be 1 or 3", err);
    if (n == 0 || height == 0 || width == 0)
        return wrong("image: no pixels", err);
    if ((double)n > limits->max_batch)
        return fail(err, SP_ERR_LIMIT, "inputs: image: %zu pictures, max_batch is %.0f", n, limits->max_batch);
    if (__builtin_mul_overflow(height, width, &plane) || (double)plane > limits->max_pixels || width > 65535 ||
        height > 65535)
        return fail(err, SP_ERR_IMAGE_TOO_LARGE, "inputs: image: %zu x %zu pixels are over max_pixels, %.0f", width,
                    height, limits->max_pixels);
    if (__builtin_mul_overflow(plane * channels, n, &all))
        return wrong("image: shape is too large", err);
    uint8_t *bytes = t->binary;
    if (bytes && t->binary_size != all)
        return wrong("image: binary_data_size is not what shape says", err);
    sp_status status = bytes ? SP_OK : bytes_from_json(t, all, &bytes, err);
    if (status != SP_OK)
        return status;
    if (!job_pictures(j, n))
        return fail(err, SP_ERR_MEMORY, "out of memory");
    for (size_t i = 0; i < n; i++)
        j->pictures[i].raw = (sp_image){.width = (uint32_t)width,
                                        .height = (uint32_t)height,
                                        .channels = (uint32_t)channels,
                                        .stride = width * channels,
                                        .pixels = bytes + i * plane * channels};
    return SP_OK;
}

/* ---- the request ------------------------------------------------------------------------------- */

static sp_status read_input(job *j, const json_value *inputs, uint8_t *binary, size_t binary_size,
                            const config_limits *limits, sp_error *err) {
    json_value item;
    tensor t;
    json_walk walk = json_begin(inputs);
    if (inputs->type != JSON_ARRAY || !json_next_item(&walk, &item) || item.type != JSON_OBJECT)
        return wrong("must be an array of one tensor, \"image\"", err);
    read_tensor(&item, &t);
    if (json_next_item(&walk, &item))
        return wrong("there is one input, \"image\"", err);
    if (!t.has_name || !json_is(&t.name, "image"))
        return wrong("there is one input, \"image\"", err);
    sp_status status = read_shape(&t, err);
    if (status != SP_OK)
        return status;
    if (t.has_binary) {
        if (t.binary_size != binary_size)
            return wrong("binary_data_size is not the number of bytes behind the JSON", err);
        t.binary = binary;
    } else if (!t.has_data || t.data.type != JSON_ARRAY) {
        return wrong("image: data must be an array", err);
    }
    if (t.has_datatype && json_is(&t.datatype, "BYTES"))
        return read_files(j, &t, limits, err);
    if (t.has_datatype && json_is(&t.datatype, "UINT8"))
        return read_pixels(j, &t, limits, err);
    return wrong("image: datatype must be BYTES or UINT8", err);
}

static const char *const output_names[KSERVE_OUTPUTS] = {"num_keypoints", "keypoints", "scores", "descriptors"};

static sp_status read_outputs(job *j, const json_value *outputs, sp_error *err) {
    json_value item, key, value, inner;
    if (outputs->type != JSON_ARRAY)
        return fail(err, SP_ERR_ARGUMENT, "outputs: must be an array");
    for (json_walk walk = json_begin(outputs); json_next_item(&walk, &item);) {
        int which = KSERVE_OUTPUTS;
        bool binary = j->kserve.binary_default;
        if (item.type != JSON_OBJECT)
            return fail(err, SP_ERR_ARGUMENT, "outputs: must hold objects");
        for (json_walk members = json_begin(&item); json_next_member(&members, &key, &value);) {
            for (int i = 0; json_is(&key, "name") && i < KSERVE_OUTPUTS; i++)
                if (json_is(&value, output_names[i]))
                    which = i;
            if (json_is(&key, "parameters") && value.type == JSON_OBJECT)
                for (json_walk in = json_begin(&value); json_next_member(&in, &key, &inner);)
                    if (json_is(&key, "binary_data") && inner.type == JSON_BOOLEAN)
                        binary = inner.text[0] == 't';
        }
        if (which == KSERVE_OUTPUTS)
            return fail(err, SP_ERR_ARGUMENT, "outputs: there are num_keypoints, keypoints, scores and descriptors");
        j->kserve.wanted[which] = true;
        j->kserve.binary[which] = binary;
    }
    return SP_OK;
}

/* A parameter of a detection; others, such as a sequence's or a priority, mean nothing here. */
static sp_status read_parameter(job *j, const json_value *key, const json_value *value, sp_error *err) {
    char copy[128], name_copy[64];
    if (key->size >= sizeof name_copy)
        return SP_OK;
    memcpy(name_copy, key->text, key->size);
    name_copy[key->size] = '\0';
    if (strcmp(name_copy, "binary_data_output") == 0 && value->type == JSON_BOOLEAN) {
        j->kserve.binary_default = value->text[0] == 't';
        return SP_OK;
    }
    if (!params_find(name_copy))
        return SP_OK;
    const char *text = value->text;
    const size_t size = value->size;
    if (size >= sizeof copy || value->type == JSON_NULL || value->type == JSON_ARRAY || value->type == JSON_OBJECT ||
        memchr(text, 0, size))
        return fail(err, SP_ERR_ARGUMENT, "parameters: %s: is not a value", name_copy);
    memcpy(copy, text, size);
    copy[size] = '\0';
    return params_set(&j->params, name_copy, copy, err);
}

static sp_status read_parameters(job *j, const json_value *parameters, sp_error *err) {
    json_value key, value;
    sp_status status = SP_OK;
    if (parameters->type != JSON_OBJECT)
        return fail(err, SP_ERR_ARGUMENT, "parameters: must be an object");
    for (json_walk walk = json_begin(parameters); status == SP_OK && json_next_member(&walk, &key, &value);)
        status = read_parameter(j, &key, &value, err);
    return status;
}

static sp_status read_id(job *j, const json_value *id, sp_error *err) {
    size_t letters = 0;
    if (id->type != JSON_STRING)
        return fail(err, SP_ERR_ARGUMENT, "id: must be a string, not %s", json_type_text(id->type));
    for (size_t i = 0; i < id->size; i++)
        letters += (id->text[i] & 0xc0) != 0x80; /* not the second or a later byte of one */
    if (letters > KSERVE_ID_LETTERS || memchr(id->text, 0, id->size))
        return fail(err, SP_ERR_ARGUMENT, "id: must be at most %d letters, none of them U+0000", KSERVE_ID_LETTERS);
    memcpy(j->kserve.id, id->text, id->size);
    j->kserve.has_id = true;
    return SP_OK;
}

/* What an output is when none are named, and the type that descriptors can have in JSON. */
static void settle_outputs(job *j, bool named) {
    kserve_request *k = &j->kserve;
    for (int i = 0; !named && i < KSERVE_OUTPUTS; i++) {
        k->wanted[i] = i < KSERVE_OUTPUTS - 1 || j->params.descriptors;
        k->binary[i] = k->binary_default;
    }
    if (named)
        j->params.descriptors = k->wanted[KSERVE_OUTPUTS - 1];
    if (!k->binary[KSERVE_OUTPUTS - 1] && j->params.descriptor_dtype == SP_DTYPE_FLOAT16)
        j->params.descriptor_dtype = SP_DTYPE_FLOAT32;
}

/* Bytes of the body that are JSON; binary tensors follow. */
static size_t json_size(const job *j) {
    return j->kserve.header_bytes ? j->kserve.header_bytes : j->body.size;
}

static sp_status take_request(job *j, const json_value *root, const config_limits *limits, sp_error *err) {
    struct {
        const char *name;
        json_value value;
        bool given;
    } members[] = {{.name = "id"}, {.name = "parameters"}, {.name = "inputs"}, {.name = "outputs"}};
    json_value key, value;
    sp_status status = SP_OK;
    for (json_walk walk = json_begin(root); json_next_member(&walk, &key, &value);)
        for (size_t i = 0; i < sizeof members / sizeof members[0]; i++)
            if (json_is(&key, members[i].name)) {
                members[i].value = value;
                members[i].given = true;
            }
    if (members[0].given)
        status = read_id(j, &members[0].value, err);
    if (status == SP_OK && members[1].given)
        status = read_parameters(j, &members[1].value, err);
    if (status == SP_OK && members[3].given)
        status = read_outputs(j, &members[3].value, err);
    if (status != SP_OK)
        return status;
    settle_outputs(j, members[3].given);
    if (!members[2].given)
        return wrong("is missing", err);
    return read_input(j, &members[2].value, j->body.data + json_size(j), j->body.size - json_size(j), limits, err);
}

sp_status input_kserve(job *j, const config_limits *limits, sp_error *err) {
    if (json_size(j) > j->body.size)
        return fail(err, SP_ERR_ARGUMENT, "Inference-Header-Content-Length is more than the body");
    return input_object(j, json_size(j), take_request, limits, err);
}
