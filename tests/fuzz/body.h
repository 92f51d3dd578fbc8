/* What the targets for request bodies share: a job whose body is the input, and what must hold for its pictures. */
#ifndef SP_FUZZ_BODY_H
#define SP_FUZZ_BODY_H

#include <stdint.h>
#include <stdlib.h>

#include "config.h"
#include "input.h"
#include "job.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Small enough that the fuzzer's time goes into the parsers. */
static inline config_limits fuzz_limits(void) {
    config c;
    config_default(&c);
    c.limits.max_pixels = 1 << 16;
    c.limits.max_frame_pixels = 1 << 16;
    return c.limits;
}

static inline job *fuzz_job(const uint8_t *data, size_t size, body_kind kind) {
    job *j = job_new();
    if (!j)
        abort();
    j->kind = kind;
    j->params.width = j->params.height = 64;
    buffer_put(&j->body, data, size);
    if (j->body.failed)
        abort();
    return j;
}

static inline int fuzz_inside(const job *j, const uint8_t *bytes, size_t size) {
    return bytes >= j->body.data && size <= j->body.size && bytes + size <= j->body.data + j->body.size;
}

/* Whatever was taken lies inside the body; then the pictures are decoded. */
static inline void fuzz_pictures(job *j, sp_status status, const config_limits *limits) {
    sp_error err;
    if (status == SP_OK && j->count == 0)
        abort();
    for (size_t i = 0; status == SP_OK && i < j->count; i++) {
        const picture *p = &j->pictures[i];
        size_t raw = p->raw.stride * p->raw.height;
        if (p->raw.pixels ? !fuzz_inside(j, p->raw.pixels, raw) : !fuzz_inside(j, p->bytes, p->size))
            abort();
    }
    if (status == SP_OK)
        input_decode(j, limits, &err);
    job_release(j);
}

#endif
