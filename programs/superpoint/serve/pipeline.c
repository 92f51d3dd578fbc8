#include "pipeline.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "answer.h"
#include "common/clock.h"
#include "common/fail.h"
#include "input.h"

/* Dense maps between the engine and the workers: one is filled while two are read. */
enum { SLOTS = 3 };

typedef struct slot {
    struct slot *next;
    sp_maps maps;
    job *owner;
    size_t index; /* of the picture */
} slot;

typedef struct job_queue {
    job *first, *last;
} job_queue;

struct pipeline {
    const config *config;
    sp_engine *engine;
    stats *stats;
    pthread_mutex_t lock;
    pthread_cond_t for_workers, for_engine;
    job_queue arrived, decoded;
    slot slots[SLOTS], *free_slots, *filled_first, *filled_last;
    job *all; /* every job inside */
    size_t depth;
    bool stopping, engine_broken;
    char engine_why[256];
    double running_since;   /* of the engine, 0 when idle */
    double smoothed_job_ms; /* engine time of one job, for the promise of a time */
    pthread_t *threads;     /* workers, then the engine's */
    unsigned workers, started;
    atomic_uint ended;
};

static void push(job_queue *q, job *j) {
    j->next = NULL;
    if (q->last)
        q->last->next = j;
    else
        q->first = j;
    q->last = j;
}

static job *pop(job_queue *q) {
    job *j = q->first;
    if (j) {
        q->first = j->next;
        if (!q->first)
            q->last = NULL;
    }
    return j;
}

/* The job's outcome, once. True for the caller who brings it about. */
static bool conclude(job *j, job_outcome outcome) {
    int pending = JOB_PENDING;
    if (!atomic_compare_exchange_strong(&j->outcome, &pending, (int)outcome))
        return false;
    j->done(j->context);
    return true;
}

/* The pipeline lets go of a job. */
static void leave(pipeline *p, job *j) {
    pthread_mutex_lock(&p->lock);
    if (j->all_next)
        j->all_next->all_previous = j->all_previous;
    if (j->all_previous)
        j->all_previous->all_next = j->all_next;
    else
        p->all = j->all_next;
    p->depth--;
    if (p->stopping && p->depth == 0) {
        pthread_cond_broadcast(&p->for_workers);
        pthread_cond_broadcast(&p->for_engine);
    }
    pthread_mutex_unlock(&p->lock);
    job_release(j);
}

/*
 * A client that has closed its side may have left, or only have said that it sends no more. It is
 * dropped only where others wait for the time that this saves.
 */
static bool client_left(pipeline *p, const job *j) {
    if (j->fd < 0)
        return false;
    struct pollfd look = {j->fd, POLLRDHUP, 0};
    if (poll(&look, 1, 0) <= 0 || !(look.revents & (POLLRDHUP | POLLHUP | POLLERR)))
        return false;
    if (look.revents & (POLLHUP | POLLERR))
        return true;
    pthread_mutex_lock(&p->lock);
    bool others_wait = p->arrived.first || p->decoded.first;
    pthread_mutex_unlock(&p->lock);
    return others_wait;
}

/* Whether a job is still worth the next stage; concludes it when not. The socket is open while the
 * outcome is pending, since the connection is suspended until then. */
static bool goes_on(pipeline *p, job *j) {
    if (atomic_load(&j->outcome) != JOB_PENDING)
        return false;
    if (now_ms() > j->deadline_ms) {
        if (conclude(j, JOB_EXPIRED))
            atomic_fetch_add(&p->stats->expired, 1);
        return false;
    }
    if (client_left(p, j)) {
        if (conclude(j, JOB_GONE))
            atomic_fetch_add(&p->stats->clients_gone, 1);
        return false;
    }
    return true;
}

static void count_stages(pipeline *p, const job *j) {
    stats_stage(p->stats, STAGE_QUEUE, j->queue_ms);
    stats_stage(p->stats, STAGE_PREPROCESS, j->preprocess_ms);
    stats_stage(p->stats, STAGE_FORWARD, (double)j->forward_us / 1e3);
    stats_stage(p->stats, STAGE_POSTPROCESS, (double)j->postprocess_us / 1e3);
    stats_stage(p->stats, STAGE_TOTAL, now_ms() - j->received_ms);
    for (size_t i = 0; i < j->count; i++)
        atomic_fetch_add(&p->stats->keypoints, j->pictures[i].features.count);
    atomic_fetch_add(&p->stats->pictures, j->count);
}

static void finish_with_error(pipeline *p, job *j, const sp_error *error) {
    if (!atomic_exchange(&j->failed, true) && atomic_load(&j->outcome) == JOB_PENDING) {
        answer_error(j, j->status ? j->status : sp_status_http(error->status), error->text);
        conclude(j, JOB_ANSWERED);
    }
    (void)p;
}

static void finish(pipeline *p, job *j) {
    double start = now_ms();
    if (goes_on(p, j)) {
        sp_error error;
        if (answer_features(j, &error) != SP_OK) {
            finish_with_error(p, j, &error);
        } else {
            stats_stage(p->stats, STAGE_ENCODE, now_ms() - start);
            count_stages(p, j);
            conclude(j, JOB_ANSWERED);
        }
    }
    leave(p, j);
}

/* ---- workers: before the engine ---------------------------------------------------------------- */

static void prepare(pipeline *p, job *j) {
    sp_error error;
    double start = now_ms();
    j->queue_ms += start - j->queued_ms;
    if (!goes_on(p, j)) {
        leave(p, j);
        return;
    }
    if (input_read(j, &p->config->limits, &error) != SP_OK || input_decode(j, &p->config->limits, &error) != SP_OK) {
        finish_with_error(p, j, &error);
        leave(p, j);
        return;
    }
    atomic_store(&j->remaining, (int)j->count);
    j->queued_ms = now_ms();
    j->preprocess_ms = j->queued_ms - start;
    pthread_mutex_lock(&p->lock);
    push(&p->decoded, j);
    pthread_cond_signal(&p->for_engine);
    pthread_mutex_unlock(&p->lock);
}

/* ---- the engine's thread ----------------------------------------------------------------------- */

/* `count` pictures of a job are done with; the one who brings it to 0 finishes the job. */
static void done_with(pipeline *p, job *j, int count) {
    if (atomic_fetch_sub(&j->remaining, count) != count)
        return;
    if (atomic_load(&j->failed))
        leave(p, j);
    else
        finish(p, j);
}

static slot *take_slot(pipeline *p) {
    pthread_mutex_lock(&p->lock);
    while (!p->free_slots)
        pthread_cond_wait(&p->for_engine, &p->lock);
    slot *s = p->free_slots;
    p->free_slots = s->next;
    p->running_since = now_ms();
    pthread_mutex_unlock(&p->lock);
    return s;
}

static void give_slot(pipeline *p, slot *s) {
    pthread_mutex_lock(&p->lock);
    s->next = p->free_slots;
    p->free_slots = s;
    pthread_cond_signal(&p->for_engine);
    pthread_mutex_unlock(&p->lock);
}

static void note_engine(pipeline *p, sp_status status, const sp_error *error) {
    pthread_mutex_lock(&p->lock);
    p->running_since = 0;
    p->engine_broken = status == SP_ERR_ENGINE_HUNG;
    if (p->engine_broken)
        snprintf(p->engine_why, sizeof p->engine_why, "%.250s", error->text);
    pthread_mutex_unlock(&p->lock);
}

/* False when the rest of the job need not be run. */
static bool run_picture(pipeline *p, job *j, size_t index) {
    picture *pic = &j->pictures[index];
    const sp_frame *frame = &pic->frame;
    sp_error error;
    slot *s = take_slot(p);
    sp_status status = sp_engine_run(p->engine, &frame, 1, &s->maps, &error);
    note_engine(p, status, &error);
    if (status != SP_OK) {
        give_slot(p, s);
        finish_with_error(p, j, &error);
        return false;
    }
    pic->forward_ms = s->maps.forward_ms;
    atomic_fetch_add(&j->forward_us, (uint64_t)(s->maps.forward_ms * 1e3));
    s->owner = j;
    s->index = index;
    s->next = NULL;
    pthread_mutex_lock(&p->lock);
    if (p->filled_last)
        p->filled_last->next = s;
    else
        p->filled_first = s;
    p->filled_last = s;
    pthread_cond_signal(&p->for_workers);
    pthread_mutex_unlock(&p->lock);
    return true;
}

static void run_job(pipeline *p, job *j) {
    size_t index = 0, count = j->count;
    double start = now_ms();
    j->queue_ms += start - j->queued_ms;
    while (index < count && goes_on(p, j) && run_picture(p, j, index))
        index++;
    if (index < count) {
        atomic_store(&j->failed, true);
        done_with(p, j, (int)(count - index));
        return;
    }
    double took = now_ms() - start;
    pthread_mutex_lock(&p->lock);
    p->smoothed_job_ms = p->smoothed_job_ms > 0 ? 0.9 * p->smoothed_job_ms + 0.1 * took : took;
    pthread_mutex_unlock(&p->lock);
}

static void *engine_main(void *context) {
    pipeline *p = context;
    for (;;) {
        pthread_mutex_lock(&p->lock);
        while (!p->decoded.first && !(p->stopping && p->depth == 0))
            pthread_cond_wait(&p->for_engine, &p->lock);
        job *j = pop(&p->decoded);
        pthread_mutex_unlock(&p->lock);
        if (!j)
            break;
        run_job(p, j);
    }
    atomic_fetch_add(&p->ended, 1);
    return NULL;
}

/* ---- workers: behind the engine ---------------------------------------------------------------- */

static void extract(pipeline *p, slot *s) {
    job *j = s->owner;
    picture *pic = &j->pictures[s->index];
    sp_error error;
    sp_status status = SP_OK;
    double start = now_ms();
    if (atomic_load(&j->outcome) == JOB_PENDING)
        status = sp_features_extract(&s->maps, &pic->frame, &j->params, &pic->features, &error);
    atomic_fetch_add(&j->postprocess_us, (uint64_t)((now_ms() - start) * 1e3));
    give_slot(p, s);
    if (status != SP_OK)
        finish_with_error(p, j, &error);
    done_with(p, j, 1);
}

/* What is nearest to its end goes first. */
static void *worker_main(void *context) {
    pipeline *p = context;
    pthread_mutex_lock(&p->lock);
    for (;;) {
        slot *s = p->filled_first;
        job *j = NULL;
        if (s) {
            p->filled_first = s->next;
            if (!p->filled_first)
                p->filled_last = NULL;
        } else {
            j = pop(&p->arrived);
        }
        if (!s && !j) {
            if (p->stopping && !p->depth)
                break;
            pthread_cond_wait(&p->for_workers, &p->lock);
            continue;
        }
        pthread_mutex_unlock(&p->lock);
        if (s)
            extract(p, s);
        else
            prepare(p, j);
        pthread_mutex_lock(&p->lock);
    }
    pthread_mutex_unlock(&p->lock);
    atomic_fetch_add(&p->ended, 1);
    return NULL;
}

/* ---- from outside ------------------------------------------------------------------------------ */

static bool stuck_locked(pipeline *p) {
    return p->engine_broken ||
           (p->running_since > 0 && now_ms() - p->running_since > p->config->limits.engine_timeout * 1e3);
}

static admission admit_locked(pipeline *p, const job *j, unsigned *retry_s) {
    double wait = p->smoothed_job_ms * (double)p->depth;
    *retry_s = wait > 1000 ? (unsigned)(wait / 1000 + 0.5) : 1;
    if (stuck_locked(p)) {
        *retry_s = 10;
        return REFUSED_STUCK;
    }
    if ((double)p->depth >= p->config->limits.max_queue)
        return REFUSED_FULL;
    return wait > j->deadline_ms - j->received_ms ? REFUSED_LATE : ADMITTED;
}

admission pipeline_submit(pipeline *p, job *j, unsigned *retry_s) {
    j->deadline_ms = j->received_ms + p->config->limits.request_timeout * 1e3;
    pthread_mutex_lock(&p->lock);
    admission result = admit_locked(p, j, retry_s);
    if (result == ADMITTED) {
        atomic_fetch_add(&j->references, 1);
        j->all_previous = NULL;
        j->all_next = p->all;
        if (p->all)
            p->all->all_previous = j;
        p->all = j;
        p->depth++;
        j->queued_ms = now_ms();
        push(&p->arrived, j);
        pthread_cond_signal(&p->for_workers);
    }
    pthread_mutex_unlock(&p->lock);
    return result;
}

bool pipeline_full(pipeline *p) {
    return (double)pipeline_depth(p) >= p->config->limits.max_queue;
}

size_t pipeline_depth(pipeline *p) {
    pthread_mutex_lock(&p->lock);
    size_t depth = p->depth;
    pthread_mutex_unlock(&p->lock);
    return depth;
}

double pipeline_running_ms(pipeline *p) {
    pthread_mutex_lock(&p->lock);
    double ms = p->running_since > 0 ? now_ms() - p->running_since : 0;
    pthread_mutex_unlock(&p->lock);
    return ms;
}

bool pipeline_stuck(pipeline *p, char *why, size_t size) {
    pthread_mutex_lock(&p->lock);
    bool stuck = stuck_locked(p);
    if (stuck && p->engine_broken)
        snprintf(why, size, "%s", p->engine_why);
    else if (stuck)
        snprintf(why, size, "the engine has not come back from a frame for %.1f s",
                 (now_ms() - p->running_since) / 1e3);
    pthread_mutex_unlock(&p->lock);
    return stuck;
}

void pipeline_tick(pipeline *p) {
    pthread_mutex_lock(&p->lock);
    double now = now_ms();
    bool stuck = stuck_locked(p);
    for (job *j = p->all; j; j = j->all_next)
        if ((now > j->deadline_ms || stuck) && conclude(j, JOB_EXPIRED))
            atomic_fetch_add(&p->stats->expired, 1);
    pthread_mutex_unlock(&p->lock);
}

sp_status pipeline_create(const config *c, sp_engine *engine, stats *s, pipeline **out, sp_error *err) {
    long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    unsigned workers = c->workers ? c->workers : cpus > 2 ? (unsigned)cpus : 2;
    pipeline *p = calloc(1, sizeof *p);
    *out = p;
    if (!p || !(p->threads = calloc(workers + 1, sizeof *p->threads))) {
        free(p);
        *out = NULL;
        return fail(err, SP_ERR_MEMORY, "out of memory");
    }
    p->config = c;
    p->engine = engine;
    p->stats = s;
    p->workers = workers;
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->for_workers, NULL);
    pthread_cond_init(&p->for_engine, NULL);
    sp_status status = SP_OK;
    for (int i = 0; i < SLOTS && status == SP_OK; i++) {
        p->slots[i].next = p->free_slots;
        p->free_slots = &p->slots[i];
        status = sp_maps_alloc(640, 480, &p->slots[i].maps, err);
    }
    for (unsigned i = 0; i <= workers && status == SP_OK; i++) {
        if (pthread_create(&p->threads[i], NULL, i < workers ? worker_main : engine_main, p) != 0)
            status = fail(err, SP_ERR_MEMORY, "cannot start threads");
        else
            pthread_setname_np(p->threads[p->started++], i < workers ? "worker" : "engine");
    }
    if (status != SP_OK) {
        pipeline_free(p, 1000);
        *out = NULL;
    }
    return status;
}

bool pipeline_free(pipeline *p, double timeout_ms) {
    if (!p)
        return true;
    pthread_mutex_lock(&p->lock);
    p->stopping = true;
    pthread_cond_broadcast(&p->for_workers);
    pthread_cond_broadcast(&p->for_engine);
    pthread_mutex_unlock(&p->lock);
    for (double until = now_ms() + timeout_ms; atomic_load(&p->ended) < p->started;) {
        if (now_ms() > until)
            return false;
        usleep(1000);
    }
    for (unsigned i = 0; i < p->started; i++)
        pthread_join(p->threads[i], NULL);
    for (int i = 0; i < SLOTS; i++)
        sp_maps_free(&p->slots[i].maps);
    pthread_mutex_destroy(&p->lock);
    pthread_cond_destroy(&p->for_workers);
    pthread_cond_destroy(&p->for_engine);
    free(p->threads);
    free(p);
    return true;
}
