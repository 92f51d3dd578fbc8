#include "extract/group.h"

#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/clock.h"
#include "common/fail.h"
#include "common/setup.h"
#include "extract/interrupt.h"
#include "mpi/transport.h"

/* What processes tell each other while they work: */
enum {
    KIND_ASK = 1, /* give me some of what you have left */
    KIND_GIVE,    /* items first...last; none when both are the same */
    KIND_ALIVE,   /* I get on */
    KIND_END,     /* I have ended this round: `first` items failed, `last` says how */
    KIND_LOST     /* process `first` is given up */
};
enum { END_BROKEN = 1, END_STOPPED = 2 };
enum { POLL_NS = 1000000 };

typedef struct peer {
    bool lost;
    uint64_t round; /* the last one that it has ended */
    group_sum sum;  /* and with what */
    double heard;   /* when it last said that it gets on */
} peer;

struct group {
    void *library;
    const sp_mpi_transport *mpi;
    int rank, size;
    peer *peers; /* this one's own entry: what it has said to the others */
    uint64_t round;
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
    if (!g->mpi->start(&g->rank, &g->size))
        return fail(err, SP_ERR_UNAVAILABLE, "MPI could not be started");
    g->peers = calloc((size_t)g->size, sizeof *g->peers);
    return g->peers ? SP_OK : fail(err, SP_ERR_MEMORY, "out of memory");
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
void group_leave(group *g, int code) {
    if (!g)
        return;
    if (group_lost_count(g) > 0 && group_leads(g))
        g->mpi->abort(code); /* those that were given up would never come to the common end */
    g->mpi->stop();
    free(g->peers);
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

uint32_t group_lost_count(const group *g) {
    uint32_t lost = 0;
    for (int i = 0; g && i < g->size; i++)
        lost += g->peers[i].lost;
    return lost;
}

bool group_is_lost(const group *g, uint32_t rank) {
    return g && g->peers[rank].lost;
}

bool group_leads(const group *g) {
    for (int i = 0; g && i < g->rank; i++)
        if (!g->peers[i].lost)
            return false;
    return !g || !g->peers[g->rank].lost;
}

group_range group_divide(const group *g, size_t count) {
    if (!g)
        return (group_range){0, count};
    const size_t size = (size_t)g->size - group_lost_count(g);
    size_t place = 0; /* among those that are left */
    if (g->peers[g->rank].lost)
        return (group_range){0, 0};
    for (int i = 0; i < g->rank; i++)
        place += !g->peers[i].lost;
    return (group_range){count / size * place + (place < count % size ? place : count % size),
                         count / size * (place + 1) + (place + 1 < count % size ? place + 1 : count % size)};
}

group_sum group_total(const group *g) {
    group_sum total = {0};
    for (int i = 0; i < g->size; i++)
        if (!g->peers[i].lost) {
            total.failed += g->peers[i].sum.failed;
            total.broken += g->peers[i].sum.broken;
            total.stopped += g->peers[i].sum.stopped;
        }
    return total;
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
    const running *running;
    double patience; /* seconds */
    double looked;   /* when this process last looked for messages */
    double said;     /* when it last said that it gets on */
    size_t finished; /* and how much it had finished then */
    int victim;      /* whom to ask next */
    int refusals;    /* in a row */
    bool asked;      /* and no answer yet */
} sharing;

static void tell(const group *g, int to, int kind, uint64_t first, uint64_t last) {
    g->mpi->send(&(sp_mpi_message){.peer = to, .kind = kind, .round = g->round, .first = first, .last = last});
}

static void tell_all(const group *g, int kind, uint64_t first, uint64_t last) {
    for (int i = 0; i < g->size; i++)
        if (i != g->rank && !g->peers[i].lost)
            tell(g, i, kind, first, last);
}

static bool has_ended(const group *g, int rank) {
    return g->peers[rank].lost || g->peers[rank].round >= g->round;
}

static void lose(sharing *s, int rank) {
    s->g->peers[rank].lost = true;
    if (rank == s->g->rank)
        work_stop(s->work); /* the others do its part */
    else if (s->asked && s->victim == rank)
        s->asked = false;
}

static void take_gift(sharing *s, const sp_mpi_message *m) {
    s->asked = false;
    s->refusals++;
    if (m->first < m->last && m->round == s->g->round) {
        s->refusals = 0;
        work_refill(s->work, m->first, m->last);
    }
}

static void answer(sharing *s, const sp_mpi_message *m) {
    peer *p = &s->g->peers[m->peer];
    size_t first = 0, last = 0;
    if (p->lost)
        return;
    switch (m->kind) {
    case KIND_ASK: /* one that is a round ahead gets nothing; there is nothing left */
        if (m->round == s->g->round)
            work_give(s->work, &first, &last);
        s->g->mpi->send(&(sp_mpi_message){m->peer, KIND_GIVE, m->round, first, last});
        break;
    case KIND_GIVE:
        take_gift(s, m);
        break;
    case KIND_ALIVE:
        p->heard = now_s();
        break;
    case KIND_END:
        p->round = m->round;
        p->sum = (group_sum){m->first, (m->last & END_BROKEN) != 0, (m->last & END_STOPPED) != 0};
        break;
    case KIND_LOST:
        if (m->first < (uint64_t)s->g->size)
            lose(s, (int)m->first);
        break;
    default: /* of a later version of the program: the ranks are not alike */
        break;
    }
}

static void ask(sharing *s) {
    do
        s->victim = (s->victim + 1) % s->g->size;
    while (s->victim == s->g->rank || s->g->peers[s->victim].lost);
    tell(s->g, s->victim, KIND_ASK, 0, 0);
    s->asked = true;
}

/* Say that this process gets on: it has finished something, or has nothing to do. */
static void say_alive(sharing *s, double time) {
    const work_count counts = work_counts(s->work);
    const double interval = s->patience / 8 < 1 ? s->patience / 8 : 1;
    if (time - s->said < interval || (counts.busy && counts.finished == s->finished))
        return;
    s->said = time;
    s->finished = counts.finished;
    tell_all(s->g, KIND_ALIVE, 0, 0);
}

/* Give up those that have said nothing for too long. */
static void look_for_silence(sharing *s, double time) {
    group *g = s->g;
    const bool stopped_myself = time - s->looked > s->patience / 2; /* the machine slept: all may have */
    s->looked = time;
    for (int i = 0; i < g->size; i++) {
        if (stopped_myself)
            g->peers[i].heard = time;
        if (i == g->rank || has_ended(g, i) || time - g->peers[i].heard < s->patience)
            continue;
        tell_all(g, KIND_LOST, (uint64_t)i, 0); /* to itself too, should it wake up */
        lose(s, i);
    }
}

static void end_round(sharing *s) {
    group *g = s->g;
    const work_count counts = work_counts(s->work);
    peer *own = &g->peers[g->rank];
    own->sum = (group_sum){counts.failed, s->running->status != SP_OK, counts.stopped};
    own->round = g->round;
    tell_all(g, KIND_END, own->sum.failed, (own->sum.broken ? END_BROKEN : 0) | (own->sum.stopped ? END_STOPPED : 0));
}

static void share(sharing *s) {
    group *g = s->g;
    sp_mpi_message m;
    while (g->mpi->poll(&m))
        answer(s, &m);
    const double time = now_s();
    if (!g->peers[g->rank].lost)
        look_for_silence(s, time);
    if (interrupt_asked())
        work_stop(s->work);
    if (has_ended(g, g->rank))
        return;
    say_alive(s, time); /* also while waiting for an answer: the one that was asked may hang */
    if (s->asked)
        return;
    if (atomic_load(&s->running->ended))
        end_round(s);
    else if (work_empty(s->work) && s->refusals >= g->size - 1 - (int)group_lost_count(g))
        work_end(s->work);
    else if (work_empty(s->work) && !interrupt_asked())
        ask(s);
}

static bool all_have_ended(const group *g) {
    for (int i = 0; i < g->size; i++)
        if (!has_ended(g, i))
            return false;
    return true;
}

static void begin_round(group *g) {
    g->round++;
    for (int i = 0; i < g->size; i++)
        g->peers[i].heard = now_s();
}

sp_status group_run(group *g, work *w, const pipeline *p, double patience, sp_error *err) {
    if (!g)
        return pipeline_run(p, err);
    running r = {.p = p};
    pthread_t thread;
    begin_round(g);
    sharing s = {.g = g, .work = w, .running = &r, .patience = patience, .looked = now_s(), .victim = g->rank};
    const bool threaded = pthread_create(&thread, NULL, running_main, &r) == 0;
    if (!threaded) {
        r.status = fail(&r.err, SP_ERR_MEMORY, "threads could not be started");
        atomic_store(&r.ended, true);
    }
    /* A process that has ended still answers the others until all have. */
    while (!all_have_ended(g)) {
        share(&s);
        nanosleep(&(struct timespec){.tv_nsec = POLL_NS}, NULL);
    }
    if (threaded)
        pthread_join(thread, NULL);
    if (r.status != SP_OK)
        *err = r.err;
    return r.status;
}
