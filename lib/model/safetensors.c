#include "model/safetensors.h"

#include <assert.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

struct sp_safetensors {
    json_t *header;
    size_t count;
    sp_tensor *tensors; /* by their place in the file */
};

/* Bytes an element of each type of the format; the network's own three are told apart by `type`. */
static const struct {
    const char *name;
    sp_tensor_type type;
    unsigned bytes;
} types[] = {{"F32", SP_TENSOR_F32, 4},   {"F16", SP_TENSOR_F16, 2},   {"BF16", SP_TENSOR_BF16, 2},
             {"F64", SP_TENSOR_OTHER, 8}, {"I64", SP_TENSOR_OTHER, 8}, {"I32", SP_TENSOR_OTHER, 4},
             {"I16", SP_TENSOR_OTHER, 2}, {"I8", SP_TENSOR_I8, 1},     {"U64", SP_TENSOR_OTHER, 8},
             {"U32", SP_TENSOR_OTHER, 4}, {"U16", SP_TENSOR_OTHER, 2}, {"U8", SP_TENSOR_OTHER, 1},
             {"BOOL", SP_TENSOR_OTHER, 1}};

static uint64_t read_u64(const unsigned char *p) {
    uint64_t v = 0;
    for (int i = 7; i >= 0; i--)
        v = v << 8 | p[i];
    return v;
}

static sp_status parse_shape(const json_t *shape, const char *file, sp_tensor *tensor, sp_error *err) {
    size_t rank = json_array_size(shape);
    if (!json_is_array(shape) || rank > SP_SAFETENSORS_MAX_RANK)
        return sp_fail(err, SP_ERR_WEIGHTS_DATA, "%s: tensor %s: shape is not a list of at most %d numbers", file,
                       tensor->name, SP_SAFETENSORS_MAX_RANK);
    tensor->rank = (unsigned)rank;
    tensor->elements = 1;
    for (size_t i = 0; i < rank; i++) {
        const json_t *side = json_array_get(shape, i);
        if (!json_is_integer(side) || json_integer_value(side) < 0)
            return sp_fail(err, SP_ERR_WEIGHTS_DATA, "%s: tensor %s: shape[%zu] is not a whole number", file,
                           tensor->name, i);
        tensor->shape[i] = (uint64_t)json_integer_value(side);
        if (__builtin_mul_overflow(tensor->elements, tensor->shape[i], &tensor->elements))
            return sp_fail(err, SP_ERR_WEIGHTS_DATA, "%s: tensor %s: shape is too large", file, tensor->name);
    }
    return SP_OK;
}

static sp_status parse_type(const json_t *entry, const char *file, sp_tensor *tensor, unsigned *bytes, sp_error *err) {
    const char *text = json_string_value(json_object_get(entry, "dtype"));
    for (size_t i = 0; text && i < sizeof types / sizeof types[0]; i++)
        if (strcmp(types[i].name, text) == 0) {
            tensor->type = types[i].type;
            *bytes = types[i].bytes;
            return SP_OK;
        }
    return sp_fail(err, SP_ERR_WEIGHTS_DATA, "%s: tensor %s: dtype %s is not known", file, tensor->name,
                   text ? text : "(absent)");
}

static sp_status parse_tensor(const json_t *entry, const char *file, const unsigned char *data, uint64_t data_size,
                              sp_tensor *tensor, sp_error *err) {
    unsigned bytes = 0;
    sp_status status = parse_type(entry, file, tensor, &bytes, err);
    if (status == SP_OK)
        status = parse_shape(json_object_get(entry, "shape"), file, tensor, err);
    if (status != SP_OK)
        return status;
    const json_t *offsets = json_object_get(entry, "data_offsets");
    const json_t *from = json_array_get(offsets, 0), *to = json_array_get(offsets, 1);
    if (json_array_size(offsets) != 2 || !json_is_integer(from) || !json_is_integer(to))
        return sp_fail(err, SP_ERR_WEIGHTS_DATA, "%s: tensor %s: data_offsets is not a pair of whole numbers", file,
                       tensor->name);
    int64_t begin = json_integer_value(from), end = json_integer_value(to);
    if (begin < 0 || end < begin || (uint64_t)end > data_size)
        return sp_fail(err, SP_ERR_WEIGHTS_DATA,
                       "%s: tensor %s: data_offsets %" PRId64 "...%" PRId64 " lie outside the data of %" PRIu64
                       " bytes (cut short?)",
                       file, tensor->name, begin, end, data_size);
    uint64_t need;
    if (__builtin_mul_overflow(tensor->elements, (uint64_t)bytes, &need) || need != (uint64_t)(end - begin))
        return sp_fail(err, SP_ERR_WEIGHTS_DATA, "%s: tensor %s: its shape and its %" PRId64 " bytes do not agree",
                       file, tensor->name, end - begin);
    tensor->data = data + begin;
    return SP_OK;
}

static int by_place(const void *a, const void *b) {
    const sp_tensor *x = a, *y = b;
    if (x->data != y->data)
        return x->data < y->data ? -1 : 1;
    return (x->elements > y->elements) - (x->elements < y->elements); /* an empty one before its neighbour */
}

static uint64_t tensor_bytes(const sp_tensor *tensor, const json_t *header) {
    const json_t *offsets = json_object_get(json_object_get(header, tensor->name), "data_offsets");
    return (uint64_t)(json_integer_value(json_array_get(offsets, 1)) - json_integer_value(json_array_get(offsets, 0)));
}

/* The ranges must tile the data: a hole hides bytes that no digest of tensors would see. */
static sp_status check_tiling(const sp_safetensors *st, const char *file, const unsigned char *data, uint64_t data_size,
                              sp_error *err) {
    uint64_t at = 0;
    for (size_t i = 0; i < st->count; i++) {
        uint64_t begin = (uint64_t)(st->tensors[i].data - data);
        if (begin != at)
            return sp_fail(err, SP_ERR_WEIGHTS_DATA, "%s: tensor %s %s", file, st->tensors[i].name,
                           begin < at ? "overlaps the one before it" : "leaves a gap after the one before it");
        at = begin + tensor_bytes(&st->tensors[i], st->header);
    }
    if (at != data_size)
        return sp_fail(err, SP_ERR_WEIGHTS_DATA, "%s: %" PRIu64 " bytes follow the last tensor", file, data_size - at);
    return SP_OK;
}

static sp_status parse_header(sp_safetensors *st, const char *file, const unsigned char *data, uint64_t data_size,
                              sp_error *err) {
    size_t entries = json_object_size(st->header);
    if (entries > SP_SAFETENSORS_MAX_TENSORS)
        return sp_fail(err, SP_ERR_LIMIT, "%s: %zu tensors, more than the %d allowed", file, entries,
                       SP_SAFETENSORS_MAX_TENSORS);
    st->tensors = calloc(entries ? entries : 1, sizeof *st->tensors);
    if (!st->tensors)
        return sp_fail_memory(err, file, entries * sizeof *st->tensors);
    const char *key;
    json_t *entry;
    json_object_foreach(st->header, key, entry) {
        if (strcmp(key, "__metadata__") == 0)
            continue;
        sp_tensor *tensor = &st->tensors[st->count++];
        tensor->name = key;
        sp_status status = parse_tensor(entry, file, data, data_size, tensor, err);
        if (status != SP_OK)
            return status;
    }
    qsort(st->tensors, st->count, sizeof *st->tensors, by_place);
    return check_tiling(st, file, data, data_size, err);
}

sp_status sp_safetensors_open(const void *bytes, size_t size, const char *name, sp_safetensors **out, sp_error *err) {
    *out = NULL;
    const unsigned char *p = bytes;
    if (size < 8)
        return sp_fail(err, SP_ERR_WEIGHTS_DATA, "%s: %zu bytes are too few for a safetensors file", name, size);
    uint64_t length = read_u64(p);
    if (length > SP_SAFETENSORS_MAX_HEADER)
        return sp_fail(err, SP_ERR_WEIGHTS_DATA,
                       "%s: not a safetensors file: its header would have %" PRIu64 " bytes, more than the %d allowed",
                       name, length, SP_SAFETENSORS_MAX_HEADER);
    if (length > size - 8)
        return sp_fail(err, SP_ERR_WEIGHTS_DATA, "%s: cut short: its header has %" PRIu64 " bytes, %zu are there", name,
                       length, size - 8);
    sp_safetensors *st = calloc(1, sizeof *st);
    if (!st)
        return sp_fail_memory(err, name, sizeof *st);
    json_error_t where;
    st->header = json_loadb((const char *)p + 8, (size_t)length, JSON_REJECT_DUPLICATES, &where);
    sp_status status;
    if (!json_is_object(st->header))
        status = sp_fail(err, SP_ERR_WEIGHTS_DATA, "%s: header is not a JSON object: %s", name,
                         st->header ? "of another kind" : where.text);
    else
        status = parse_header(st, name, p + 8 + length, size - 8 - length, err);
    if (status != SP_OK) {
        sp_safetensors_close(st);
        return status;
    }
    *out = st;
    return SP_OK;
}

void sp_safetensors_close(sp_safetensors *st) {
    if (!st)
        return;
    free(st->tensors);
    json_decref(st->header);
    free(st);
}

size_t sp_safetensors_count(const sp_safetensors *st) {
    return st->count;
}

const sp_tensor *sp_safetensors_at(const sp_safetensors *st, size_t index) {
    assert(index < st->count);
    return &st->tensors[index];
}

const sp_tensor *sp_safetensors_find(const sp_safetensors *st, const char *name) {
    for (size_t i = 0; i < st->count; i++)
        if (strcmp(st->tensors[i].name, name) == 0)
            return &st->tensors[i];
    return NULL;
}

const char *sp_safetensors_metadata(const sp_safetensors *st, const char *key) {
    return json_string_value(json_object_get(json_object_get(st->header, "__metadata__"), key));
}

/* IEEE binary16 to binary32: exact. */
static float half_to_float(uint16_t h) {
    uint32_t sign = (uint32_t)(h >> 15) << 31, exponent = h >> 10 & 31, fraction = h & 1023, bits;
    float f;
    if (exponent == 0) { /* zero and subnormal: fraction * 2^-24 */
        f = (float)fraction * 0x1p-24f;
        return sign ? -f : f;
    }
    bits = sign | (exponent == 31 ? 0x7f800000u : (exponent + 112) << 23) | fraction << 13;
    memcpy(&f, &bits, sizeof f);
    return f;
}

bool sp_tensor_is_float(const sp_tensor *tensor) {
    return tensor->type == SP_TENSOR_F32 || tensor->type == SP_TENSOR_F16 || tensor->type == SP_TENSOR_BF16;
}

void sp_tensor_to_float(const sp_tensor *tensor, float *out) {
    const unsigned char *p = tensor->data;
    assert(sp_tensor_is_float(tensor));
    for (uint64_t i = 0; i < tensor->elements; i++) {
        uint32_t bits;
        if (tensor->type == SP_TENSOR_F32) {
            bits = (uint32_t)p[4 * i] | (uint32_t)p[4 * i + 1] << 8 | (uint32_t)p[4 * i + 2] << 16 |
                   (uint32_t)p[4 * i + 3] << 24;
            memcpy(&out[i], &bits, sizeof bits);
            continue;
        }
        uint16_t half = (uint16_t)(p[2 * i] | p[2 * i + 1] << 8);
        if (tensor->type == SP_TENSOR_F16) {
            out[i] = half_to_float(half);
            continue;
        }
        bits = (uint32_t)half << 16;
        memcpy(&out[i], &bits, sizeof bits);
    }
}
