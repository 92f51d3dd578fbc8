#include "job.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/jsonout.h"

job *job_new(void) {
    job *j = calloc(1, sizeof *j);
    if (!j)
        return NULL;
    atomic_init(&j->references, 1);
    atomic_init(&j->outcome, JOB_PENDING);
    sp_params_default(&j->params);
    j->fd = -1;
    return j;
}

void job_release(job *j) {
    if (!j || atomic_fetch_sub(&j->references, 1) != 1)
        return;
    for (size_t i = 0; i < j->count; i++) {
        sp_frame_free(&j->pictures[i].frame);
        sp_features_free(&j->pictures[i].features);
    }
    free(j->pictures);
    sp_image_free(&j->mask);
    buffer_free(&j->body);
    buffer_free(&j->warnings);
    buffer_free(&j->answer);
    free(j);
}

void job_warn(job *j, const char *format, ...) {
    char text[300];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (j->warnings.size)
        buffer_text(&j->warnings, ", ");
    json_put_string(&j->warnings, text);
}

bool job_pictures(job *j, size_t count) {
    j->pictures = calloc(count, sizeof *j->pictures);
    j->count = j->pictures ? count : 0;
    return j->pictures != NULL;
}
