#include "extract/group.h"

#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/fail.h"
#include "common/setup.h"
#include "extract/interrupt.h"
#include "mpi/transport.h"

enum { KIND_ASK = 1, KIND_GIVE = 2 };
enum { POLL_NS = 1000000 };

struct group {
    void *library;
    const sp_mpi_transport *mpi;
    int rank, size;
};

/* OpenMPI's own word for it, set by mpirun and, through PMIx, by others. */
static bool started_by_mpirun(void) {
    const char *size = getenv("OMPI_COMM_WORLD_SIZE");
    return size && atoi(size) > 1;
}

static sp_status load(group *g, sp_error *err) {
    char path[PATH_MAX];
    if (!sp_find_data(SP_PLUGIN_FOLDER "/superpoint-mpi.so", "superpoint-mpi.so", path, sizeof path))
        return fail(err, SP_ERR_UNAVAILABLE, "started by mpirun, but this build has no superpoint-mpi.so");
    /* OpenMPI loads parts of its own, which look its symbols up globally. */
    g->library = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
    void *symbol = g->library ? dlsym(g->library, SP_MPI_TRANSPORT_SYMBOL) : NULL;
    if (!symbol)
        return fail(err, SP_ERR_UNAVAILABLE, "%.200s: %.200s", path, dlerror());
    sp_mpi_transport_getter *get;
    memcpy(&get, &symbol, sizeof get); /* ISO C has no conversion between the two kinds of pointer */
    g->mpi = get();
    if (g->mpi->version != SP_MPI_TRANSPORT_VERSION)
        return fail(err, SP_ERR_UNAVAILABLE, "%.300s: is of another version", path);
    return g->mpi->start(&g->rank, &g->size) ? SP_OK : fail(err, SP_ERR_UNAVAILABLE, "MPI could not be started");
}

sp_status group_join(group **out, sp_error *err) {
    *out = NULL;
    if (!started_by_mpirun())
        return SP_OK;
    group *g = calloc(1, sizeof *g);
    if (!g)
        return fail(err, SP_ERR_MEMORY, "out of memory");
    sp_status status = load(g, err);
    if (status == SP_OK)
        *out = g;
    else
        free(g);
    return status;
}

/* The library stays loaded: MPI leaves handlers behind. */
void group_leave(group *g) {
    if (!g)
        return;
    g->mpi->stop();
    free(g);
}

uint32_t group_size(const group *g) {
    return g ? (uint32_t)g->size : 1;
}

uint32_t group_rank(const group *g) {
    return g ? (uint32_t)g->rank : 0;
}

sp_status group_share_path(group *g, sp_status status, char **path, sp_error *err) {
    char text[PATH_MAX] = "";
    if (!g)
        return status;
    if (g->rank == 0 && status == SP_OK)
        snprintf(text, sizeof text, "%s", *path);
    g->mpi->broadcast(text, sizeof text);
    if (g->rank == 0)
        return status;
    if (!text[0])
        return fail(err, SP_ERR_IO, "%s", "");
    *path = strdup(text);
    return *path ? SP_OK : fail(err, SP_ERR_MEMORY, "out of memory");
}

sp_status group_agree(group *g, sp_status status, sp_error *err) {
    if (!g)
        return status;
    uint8_t first = status != SP_OK;
    uint64_t bad = first;
    g->mpi->broadcast(&first, 1);
    g->mpi->sum(&bad, 1);
    if (status == SP_OK)
        return bad ? fail(err, SP_ERR_INTERNAL, "%s", "") : SP_OK;
    if (first && g->rank != 0)
        err->text[0] = '\0';
    return status;
}

group_range group_divide(const group *g, size_t count) {
    if (!g)
        return (group_range){0, count};
    const size_t rank = (size_t)g->rank, size = (size_t)g->size;
    return (group_range){count / size * rank + (rank < count % size ? rank : count % size),
                         count / size * (rank + 1) + (rank + 1 < count % size ? rank + 1 : count % size)};
}

group_sum group_end(group *g, group_sum mine) {
    uint64_t values[2] = {mine.failed, mine.broken};
    if (g)
        g->mpi->sum(values, 2);
    return (group_sum){values[0], values[1]};
}

/* ------------------------------------------------------------------ sharing work -------------- */

typedef struct running {
    const pipeline *p;
    atomic_bool ended;
    sp_status status;
    sp_error err;
} running;

static void *running_main(void *context) {
    running *r = context;
    r->status = pipeline_run(r->p, &r->err);
    atomic_store(&r->ended, true);
    return NULL;
}

typedef struct sharing {
    group *g;
    work *work;
    int victim;   /* whom to ask next */
    int refusals; /* in a row */
    bool asked;   /* and no answer yet */
    bool arrived; /* asks no more */
} sharing;

static void answer(sharing *s, const sp_mpi_message *m) {
    if (m->kind == KIND_ASK) {
        size_t first = 0, last = 0;
        work_give(s->work, &first, &last);
        s->g->mpi->send(&(sp_mpi_message){m->peer, KIND_GIVE, first, last});
        return;
    }
    s->asked = false;
    s->refusals++;
    if (m->first < m->last) {
        s->refusals = 0;
        work_refill(s->work, m->first, m->last);
    }
}

static void ask(sharing *s) {
    s->victim = (s->victim + 1) % s->g->size;
    if (s->victim == s->g->rank)
        s->victim = (s->victim + 1) % s->g->size;
    s->g->mpi->send(&(sp_mpi_message){s->victim, KIND_ASK, 0, 0});
    s->asked = true;
}

static void share(sharing *s, const running *r) {
    sp_mpi_message m;
    while (s->g->mpi->poll(&m))
        answer(s, &m);
    if (interrupt_asked())
        work_stop(s->work);
    if (s->arrived || s->asked)
        return;
    if (atomic_load(&r->ended) || interrupt_asked() || (work_empty(s->work) && s->refusals >= s->g->size - 1)) {
        work_end(s->work);
        s->g->mpi->arrive();
        s->arrived = true;
    } else if (work_empty(s->work)) {
        ask(s);
    }
}

sp_status group_run(group *g, work *w, const pipeline *p, sp_error *err) {
    if (!g)
        return pipeline_run(p, err);
    running r = {.p = p};
    sharing s = {.g = g, .work = w, .victim = g->rank};
    pthread_t thread;
    const bool threaded = pthread_create(&thread, NULL, running_main, &r) == 0;
    if (!threaded) {
        r.status = fail(&r.err, SP_ERR_MEMORY, "threads could not be started");
        atomic_store(&r.ended, true);
    }
    /* A process that has arrived still answers the others until all have. */
    while (!s.arrived || !g->mpi->all_arrived()) {
        share(&s, &r);
        nanosleep(&(struct timespec){.tv_nsec = POLL_NS}, NULL);
    }
    if (threaded)
        pthread_join(thread, NULL);
    if (r.status != SP_OK)
        *err = r.err;
    return r.status;
}
