#include "extract/pipeline.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/fail.h"
#include "common/input.h"
#include "extract/channel.h"

enum {
    MAX_DECODERS = 256,
    SPARE = 3, /* pictures beyond one for each decoder: waiting for, in, and behind the engine */
    MAPS = 2   /* so that the engine runs while the last picture's points are selected */
};

typedef struct slot {
    size_t index;
    uint64_t file_size;
    int64_t file_time;
    sp_frame frame;
    sp_maps *maps;
} slot;

typedef struct run {
    const pipeline *p;
    channel empty, decoded, maps, mapped; /* slots, slots, sp_maps, slots */
    slot slots[MAX_DECODERS + SPARE];
    sp_maps memory[MAPS];
    atomic_uint decoding; /* decoders that have not ended */
    pthread_mutex_t mutex;
    sp_status status; /* the first failure */
    sp_error err;
} run;

static void stop(run *r, sp_status status, const sp_error *err) {
    pthread_mutex_lock(&r->mutex);
    if (r->status == SP_OK) {
        r->status = status;
        r->err = *err;
    }
    pthread_mutex_unlock(&r->mutex);
    channel_close(&r->empty);
    channel_close(&r->decoded);
    channel_close(&r->maps);
    channel_close(&r->mapped);
}

static sp_status decode(const pipeline *p, slot *s, sp_error *err) {
    const char *path = p->inputs->items[s->index].path;
    struct stat st;
    void *bytes = NULL;
    size_t size;
    if (stat(path, &st) != 0)
        return fail(err, SP_ERR_NOT_FOUND, "%s", strerror(errno));
    s->file_size = (uint64_t)st.st_size;
    s->file_time = (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec;
    if (!S_ISREG(st.st_mode))
        return fail(err, SP_ERR_IO, "is not a file");
    sp_status status = sp_input_read(path, SP_MAX_INPUT_BYTES, &bytes, &size, err);
    if (status == SP_OK)
        status = sp_frame_decode(bytes, size, p->params, &s->frame, NULL, err);
    free(bytes);
    return status;
}

static void *decoder_main(void *context) {
    run *r = context;
    for (slot *s; (s = channel_take(&r->empty)) != NULL;) {
        sp_error err = {0};
        if (!r->p->next(r->p->context, &s->index)) {
            channel_put(&r->empty, s); /* for the others to see that there is nothing to do */
            break;
        }
        if (decode(r->p, s, &err) == SP_OK)
            channel_put(&r->decoded, s);
        else {
            r->p->bad(r->p->context, s->index, &err);
            channel_put(&r->empty, s);
        }
    }
    if (atomic_fetch_sub(&r->decoding, 1) == 1)
        channel_close(&r->decoded);
    return NULL;
}

static sp_status finish(run *r, slot *s, sp_error *err) {
    sp_features found = {0};
    sp_status status = sp_features_extract(s->maps, &s->frame, r->p->params, &found, err);
    if (status == SP_OK) {
        const record rec = {.name = r->p->inputs->items[s->index].name,
                            .width = s->frame.original_width,
                            .height = s->frame.original_height,
                            .frame_width = s->frame.content_width,
                            .frame_height = s->frame.content_height,
                            .scale_x = s->frame.scale_x,
                            .scale_y = s->frame.scale_y,
                            .file_size = s->file_size,
                            .file_time = s->file_time,
                            .count = found.count,
                            .dtype = r->p->params->descriptor_dtype,
                            .keypoints = found.keypoints,
                            .scores = found.scores,
                            .described = r->p->params->descriptors,
                            .descriptors = found.descriptors};
        channel_put(&r->maps, s->maps);
        status = r->p->done(r->p->context, s->index, &rec, err);
    }
    sp_features_free(&found);
    sp_frame_free(&s->frame);
    channel_put(&r->empty, s);
    return status;
}

static void *finisher_main(void *context) {
    run *r = context;
    sp_error err;
    for (slot *s; (s = channel_take(&r->mapped)) != NULL;) {
        sp_status status = finish(r, s, &err);
        if (status != SP_OK)
            stop(r, status, &err);
    }
    return NULL;
}

static void run_engine(run *r) {
    for (slot *s; (s = channel_take(&r->decoded)) != NULL;) {
        const sp_frame *frame = &s->frame;
        sp_error err;
        s->maps = channel_take(&r->maps);
        if (!s->maps)
            break;
        sp_status status = sp_engine_run(r->p->engine, &frame, 1, s->maps, &err);
        if (status != SP_OK) {
            stop(r, status, &err);
            break;
        }
        channel_put(&r->mapped, s);
    }
    channel_close(&r->mapped);
}

static sp_status start(run *r, sp_error *err) {
    const uint32_t decoders = r->p->decoders, slots = decoders + SPARE;
    pthread_t threads[MAX_DECODERS], finisher;
    uint32_t started = 0;
    for (uint32_t i = 0; i < slots; i++)
        channel_put(&r->empty, &r->slots[i]);
    for (int i = 0; i < MAPS; i++)
        channel_put(&r->maps, &r->memory[i]);
    if (pthread_create(&finisher, NULL, finisher_main, r) != 0)
        return fail(err, SP_ERR_MEMORY, "threads could not be started");
    atomic_store(&r->decoding, decoders);
    while (started < decoders && pthread_create(&threads[started], NULL, decoder_main, r) == 0)
        started++;
    if (started < decoders) {
        fail(&r->err, SP_ERR_MEMORY, "threads could not be started");
        const sp_error why = r->err;
        stop(r, SP_ERR_MEMORY, &why);
    }
    run_engine(r);
    for (uint32_t i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
    pthread_join(finisher, NULL);
    if (r->status != SP_OK && err)
        *err = r->err;
    return r->status;
}

sp_status pipeline_run(const pipeline *p, sp_error *err) {
    if (p->decoders < 1 || p->decoders > MAX_DECODERS)
        return fail(err, SP_ERR_ARGUMENT, "decoders: %u is not within 1...%d", p->decoders, MAX_DECODERS);
    run *r = calloc(1, sizeof *r);
    if (!r)
        return fail(err, SP_ERR_MEMORY, "out of memory");
    r->p = p;
    pthread_mutex_init(&r->mutex, NULL);
    const size_t slots = p->decoders + SPARE;
    bool ok = channel_init(&r->empty, slots);
    ok = channel_init(&r->decoded, slots) && ok;
    ok = channel_init(&r->maps, MAPS) && ok;
    ok = channel_init(&r->mapped, slots) && ok;
    sp_status status = ok ? start(r, err) : fail(err, SP_ERR_MEMORY, "out of memory");
    for (size_t i = 0; i < slots; i++)
        sp_frame_free(&r->slots[i].frame);
    for (int i = 0; i < MAPS; i++)
        sp_maps_free(&r->memory[i]);
    channel_free(&r->empty);
    channel_free(&r->decoded);
    channel_free(&r->maps);
    channel_free(&r->mapped);
    pthread_mutex_destroy(&r->mutex);
    free(r);
    return status;
}
