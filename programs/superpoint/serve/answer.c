#include "answer.h"

#include <stdio.h>
#include <string.h>

#include "common/clock.h"
#include "common/fail.h"
#include "common/jsonfeatures.h"
#include "common/jsonout.h"
#include "common/npz.h"
#include "server.h"

void answer_put_error(buffer *out, bool kserve, const char *text) {
    buffer_text(out, "{\"detail\": ");
    json_put_string(out, text);
    if (kserve) {
        buffer_text(out, ", \"error\": ");
        json_put_string(out, text);
    }
    buffer_text(out, "}\n");
}

void answer_error(job *j, int status, const char *text) {
    buffer_clear(&j->answer);
    answer_put_error(&j->answer, j->kind == BODY_KSERVE, text);
    j->status = status;
    j->content_type = "application/json";
}

/* What is told of one picture, without braces. */
static sp_status put_picture(const job *j, const picture *p, buffer *out, sp_error *err) {
    const sp_features *f = &p->features;
    const json_sizes sizes = json_sizes_of(&p->frame);
    json_put_points(out, f);
    buffer_text(out, ", ");
    json_put_sizes(out, &sizes);
    if (!j->params.descriptors)
        return SP_OK;
    buffer_text(out, ", ");
    return json_put_descriptors(out, f->descriptor_dtype, f->count, f->descriptors, err);
}

static bool device_nms(const job *j) {
    bool all = true;
    for (size_t i = 0; i < j->count; i++)
        all = all && j->pictures[i].features.device_nms;
    return all;
}

static void put_context(const job *j, buffer *out) {
    const server *s = j->server;
    const sp_engine_info *e = sp_engine_get_info(s->engine);
    const sp_model_info *m = sp_model_get_info(s->model);
    bool on_device = device_nms(j);
    buffer_format(out,
                  ", \"serving_path\": {\"traced\": %s, \"device_nms\": %s, \"engine\": ", e->traced ? "true" : "false",
                  on_device ? "true" : "false");
    json_put_string(out, e->engine);
    buffer_text(out, ", \"device\": ");
    json_put_string(out, e->device);
    buffer_format(out, ", \"level\": \"%s\", \"precision\": \"%s\"}, \"model\": {\"weights\": ", e->level,
                  sp_precision_text(e->precision));
    char id[320];
    snprintf(id, sizeof id, "%.120s%s%.64s sha256:%.64s", m->id, m->revision[0] ? "@" : "", m->revision, m->sha256);
    json_put_string(out, id);
    buffer_text(out, ", \"id\": ");
    json_put_string(out, m->id);
    buffer_format(out, ", \"sha256\": \"%.64s\"}, \"warnings\": [", m->sha256);
    buffer_put(out, j->warnings.data, j->warnings.size);
    if (e->device_nms && !on_device) {
        buffer_text(out, j->warnings.size ? ", " : "");
        buffer_format(out, "\"non-maximum suppression ran on the host: the device was prepared for radius %d\"",
                      e->nms_radius);
    }
    buffer_char(out, ']');
}

static void put_timing(const job *j, buffer *out) {
    buffer_text(out, ", \"timing_ms\": {\"preprocess\": ");
    json_put_ms(out, j->preprocess_ms);
    buffer_text(out, ", \"device_forward\": ");
    json_put_ms(out, (double)j->forward_us / 1e3);
    buffer_text(out, ", \"postprocess\": ");
    json_put_ms(out, (double)j->postprocess_us / 1e3);
    buffer_text(out, ", \"total\": ");
    json_put_ms(out, now_ms() - j->received_ms);
    buffer_text(out, ", \"queue\": ");
    json_put_ms(out, j->queue_ms);
    buffer_char(out, '}');
}

static sp_status answer_json(job *j, sp_error *err) {
    buffer *out = &j->answer;
    sp_status status = SP_OK;
    buffer_text(out, j->batch ? "{\"results\": [" : "{");
    for (size_t i = 0; i < j->count && status == SP_OK; i++) {
        if (j->batch)
            buffer_text(out, i ? ", {" : "{");
        status = put_picture(j, &j->pictures[i], out, err);
        if (j->batch)
            buffer_char(out, '}');
    }
    if (j->batch)
        buffer_char(out, ']');
    put_context(j, out);
    put_timing(j, out);
    buffer_text(out, "}\n");
    j->content_type = "application/json";
    return status;
}

/* One archive: keypoints, scores, descriptors; of a batch keypoints_0, scores_0, … for each picture. */
static sp_status answer_npz(job *j, sp_error *err) {
    enum { MOST = 32 };
    static const char *const kinds[3] = {"keypoints", "scores", "descriptors"};
    char names[MOST][3][24];
    npz_array arrays[MOST * 3];
    size_t count = 0;
    for (size_t i = 0; i < j->count && i < MOST; i++) {
        const char *pointers[3];
        for (int k = 0; k < 3; k++) {
            if (j->batch)
                snprintf(names[i][k], sizeof names[i][k], "%s_%zu", kinds[k], i);
            else
                snprintf(names[i][k], sizeof names[i][k], "%s", kinds[k]);
            pointers[k] = names[i][k];
        }
        count += npz_features(&j->pictures[i].features, j->params.descriptors, pointers, arrays + count);
    }
    j->content_type = "application/x-npz";
    return npz_write(&j->answer, arrays, count, err);
}

sp_status answer_features(job *j, sp_error *err) {
    buffer_clear(&j->answer);
    j->status = 200;
    sp_status status = j->kind == BODY_KSERVE ? answer_kserve(j, err)
                       : j->want_npz          ? answer_npz(j, err)
                                              : answer_json(j, err);
    if (status == SP_OK && (j->answer.failed || j->warnings.failed))
        status = fail(err, SP_ERR_MEMORY, "out of memory: the answer");
    return status;
}
