/* Answers of the Open Inference Protocol (KServe v2). The tensors of a batch follow each other;
 * num_keypoints says how many rows belong to each picture. */
#include <stdio.h>
#include <string.h>

#include "answer.h"
#include "common/fail.h"
#include "common/jsonout.h"

typedef struct output {
    const char *name, *datatype;
    size_t item_size, columns; /* columns 0: one-dimensional */
    const void *(*rows)(const picture *p);
    bool per_picture;
} output;

static const void *keypoints_of(const picture *p) {
    return p->features.keypoints;
}

static const void *scores_of(const picture *p) {
    return p->features.scores;
}

static const void *descriptors_of(const picture *p) {
    return p->features.descriptors;
}

static output describe(const job *j, int which) {
    static const output fixed[] = {{"num_keypoints", "INT32", 4, 0, NULL, true},
                                   {"keypoints", "FP32", 4, 2, keypoints_of, false},
                                   {"scores", "FP32", 4, 0, scores_of, false}};
    if (which < KSERVE_OUTPUTS - 1)
        return fixed[which];
    sp_dtype d = j->params.descriptor_dtype;
    return (output){"descriptors",    d == SP_DTYPE_FLOAT16 ? "FP16" : d == SP_DTYPE_FLOAT32 ? "FP32" : "UINT8",
                    sp_dtype_size(d), SP_DESCRIPTOR_DIM,
                    descriptors_of,   false};
}

static size_t rows_in_all(const job *j) {
    size_t rows = 0;
    for (size_t i = 0; i < j->count; i++)
        rows += j->pictures[i].features.count;
    return rows;
}

static void put_bytes(const job *j, const output *o, buffer *out) {
    size_t row = o->item_size * (o->columns ? o->columns : 1);
    for (size_t i = 0; i < j->count; i++) {
        const picture *p = &j->pictures[i];
        int32_t count = (int32_t)p->features.count;
        if (o->per_picture)
            buffer_put(out, &count, sizeof count);
        else
            buffer_put(out, o->rows(p), row * p->features.count);
    }
}

static void put_numbers(const job *j, const output *o, buffer *out) {
    bool first = true;
    for (size_t i = 0; i < j->count; i++) {
        const picture *p = &j->pictures[i];
        if (o->per_picture) {
            buffer_format(out, "%s%zu", first ? "" : ", ", p->features.count);
            first = false;
            continue;
        }
        size_t n = p->features.count * (o->columns ? o->columns : 1);
        for (size_t k = 0; k < n; k++, first = false) {
            buffer_put(out, ", ", first ? 0 : 2);
            if (o->item_size == 1)
                buffer_format(out, "%u", ((const uint8_t *)o->rows(p))[k]);
            else
                json_put_float(out, ((const float *)o->rows(p))[k]);
        }
    }
}

sp_status answer_kserve(job *j, sp_error *err) {
    kserve_request *k = &j->kserve;
    buffer binary = {0}, *out = &j->answer;
    size_t rows = rows_in_all(j);
    bool first = true;
    buffer_text(out, "{\"model_name\": \"superpoint\", \"model_version\": \"1\"");
    if (k->has_id) {
        buffer_text(out, ", \"id\": ");
        json_put_string(out, k->id);
    }
    buffer_text(out, ", \"outputs\": [");
    for (int i = 0; i < KSERVE_OUTPUTS; i++) {
        output o = describe(j, i);
        if (!k->wanted[i])
            continue;
        buffer_format(out, "%s{\"name\": \"%s\", \"datatype\": \"%s\", \"shape\": [%zu", first ? "" : ", ", o.name,
                      o.datatype, o.per_picture ? j->count : rows);
        if (o.columns)
            buffer_format(out, ", %zu", o.columns);
        first = false;
        size_t before = binary.size;
        if (k->binary[i]) {
            put_bytes(j, &o, &binary);
            buffer_format(out, "], \"parameters\": {\"binary_data_size\": %zu}}", binary.size - before);
        } else {
            buffer_text(out, "], \"data\": [");
            put_numbers(j, &o, out);
            buffer_text(out, "]}");
        }
    }
    buffer_text(out, "]}");
    bool any_binary = false;
    for (int i = 0; i < KSERVE_OUTPUTS; i++)
        any_binary |= k->wanted[i] && k->binary[i];
    k->answer_header_bytes = any_binary ? out->size : 0;
    j->content_type = any_binary ? "application/octet-stream" : "application/json";
    buffer_put(out, binary.data, binary.size);
    bool failed = binary.failed;
    buffer_free(&binary);
    return failed ? fail(err, SP_ERR_MEMORY, "out of memory: the answer") : SP_OK;
}
