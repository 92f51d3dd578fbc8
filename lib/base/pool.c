#include "base/pool.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

enum {
    MAX_THREADS = 1024,
    CACHE_LINE = 64,
    /* Spins before sleeping: about 50 us of `pause`, longer than the serial gap between two layers. */
    SPINS = 2000,
    /* The smallest part that is taken, of a thread's even share. Each part costs what the first rows of a
     * fused pair cost twice over. */
    SMALLEST_PART = 16
};

typedef struct worker {
    struct sp_pool *pool;
    uint32_t index;
    pthread_t thread;
    _Alignas(CACHE_LINE) atomic_uint_least64_t share; /* what nobody has taken of its items: pack_range */
} worker;

struct sp_pool {
    uint32_t threads;
    sp_pool_task *task;
    void *context;
    size_t items;
    bool shared;            /* parts of the threads' shares are taken one by one; else each is run as a whole */
    atomic_uint generation; /* rises by one at each run */
    atomic_uint pending;    /* workers that have not finished this run */
    atomic_uint sleepers;
    atomic_bool stop;
    pthread_mutex_t mutex;
    pthread_cond_t wake;
    worker *workers; /* one for each thread; the first is the caller */
    uint32_t started;
};

static inline void relax(void) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* First item of a thread's even share. */
static size_t share_start(const sp_pool *pool, uint32_t index) {
    return pool->items * index / pool->threads;
}

/* Items [first, last) in one word, so that owner and thief change both at once. */
static uint64_t pack_range(size_t first, size_t last) {
    return (uint64_t)first << 32 | (uint64_t)last;
}

/*
 * Take a part of a thread's share: three quarters of what is left of one's own, from its beginning; half of
 * another's, from its end. No less than the smallest part, as long as there is that much.
 */
static bool take_part(sp_pool *pool, worker *from, bool own, size_t *first, size_t *last) {
    const size_t least = pool->items / ((size_t)pool->threads * SMALLEST_PART) + 1;
    uint64_t seen = atomic_load_explicit(&from->share, memory_order_relaxed), rest;
    do {
        const size_t begin = (size_t)(seen >> 32), end = (size_t)(seen & UINT32_MAX), left = end - begin;
        if (left == 0)
            return false;
        size_t part = own ? left - left / 4 : left / 2;
        part = part > least ? part : least < left ? least : left;
        *first = own ? begin : end - part;
        *last = *first + part;
        rest = own ? pack_range(*last, end) : pack_range(begin, *first);
    } while (
        !atomic_compare_exchange_weak_explicit(&from->share, &seen, rest, memory_order_relaxed, memory_order_relaxed));
    return true;
}

static void run_shared(sp_pool *pool, uint32_t index) {
    size_t first, last;
    for (uint32_t i = 0; i < pool->threads; i++) {
        worker *from = &pool->workers[(index + i) % pool->threads];
        while (take_part(pool, from, i == 0, &first, &last))
            pool->task(pool->context, first, last, index);
    }
}

static void run_part(sp_pool *pool, uint32_t index) {
    if (pool->shared) {
        run_shared(pool, index);
        return;
    }
    const size_t first = share_start(pool, index), last = share_start(pool, index + 1);
    if (first < last)
        pool->task(pool->context, first, last, index);
}

static void wait_for_work(sp_pool *pool, unsigned seen) {
    for (int i = 0; i < SPINS; i++) {
        if (atomic_load_explicit(&pool->generation, memory_order_acquire) != seen)
            return;
        relax();
    }
    pthread_mutex_lock(&pool->mutex);
    atomic_fetch_add(&pool->sleepers, 1);
    while (atomic_load(&pool->generation) == seen)
        pthread_cond_wait(&pool->wake, &pool->mutex);
    atomic_fetch_sub(&pool->sleepers, 1);
    pthread_mutex_unlock(&pool->mutex);
}

static void *worker_main(void *argument) {
    worker *self = argument;
    sp_pool *pool = self->pool;
    for (unsigned seen = 0;;) {
        wait_for_work(pool, seen);
        seen++;
        if (atomic_load(&pool->stop))
            return NULL;
        run_part(pool, self->index);
        atomic_fetch_sub_explicit(&pool->pending, 1, memory_order_release);
    }
}

static void announce(sp_pool *pool) {
    atomic_fetch_add(&pool->generation, 1);
    /* A worker counts itself as asleep under the mutex and looks at the generation again before it
     * waits, so either it sees the new one or is seen here. */
    if (atomic_load(&pool->sleepers) > 0) {
        pthread_mutex_lock(&pool->mutex);
        pthread_cond_broadcast(&pool->wake);
        pthread_mutex_unlock(&pool->mutex);
    }
}

static void run(sp_pool *pool, size_t items, bool shared, sp_pool_task *task, void *context) {
    if (pool->threads == 1) {
        if (items > 0)
            task(context, 0, items, 0);
        return;
    }
    pool->task = task;
    pool->context = context;
    pool->items = items;
    pool->shared = shared;
    for (uint32_t i = 0; shared && i < pool->threads; i++)
        atomic_store_explicit(&pool->workers[i].share, pack_range(share_start(pool, i), share_start(pool, i + 1)),
                              memory_order_relaxed);
    atomic_store(&pool->pending, pool->threads - 1);
    announce(pool);
    run_part(pool, 0);
    for (unsigned spins = 0; atomic_load_explicit(&pool->pending, memory_order_acquire) != 0; spins++) {
        if (spins < SPINS)
            relax();
        else
            sched_yield(); /* more threads than CPUs: let the others run */
    }
}

void sp_pool_run(sp_pool *pool, size_t items, sp_pool_task *task, void *context) {
    run(pool, items, false, task, context);
}

void sp_pool_share(sp_pool *pool, size_t items, sp_pool_task *task, void *context) {
    run(pool, items, true, task, context);
}

/* Signals belong to the program's own threads. */
static int start_worker(worker *w) {
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &old);
    int code = pthread_create(&w->thread, NULL, worker_main, w);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return code;
}

sp_status sp_pool_create(uint32_t threads, sp_pool **out, sp_error *err) {
    *out = NULL;
    if (threads < 1 || threads > MAX_THREADS)
        return sp_fail(err, SP_ERR_ARGUMENT, "threads: %u is not within 1...%d", threads, MAX_THREADS);
    sp_pool *pool = calloc(1, sizeof *pool);
    if (!pool)
        return sp_fail_memory(err, "thread pool", sizeof *pool);
    pool->threads = threads;
    pthread_mutex_init(&pool->mutex, NULL);
    pthread_cond_init(&pool->wake, NULL);
    pool->workers = aligned_alloc(CACHE_LINE, threads * sizeof *pool->workers);
    if (!pool->workers) {
        sp_pool_free(pool);
        return sp_fail_memory(err, "thread pool", threads * sizeof *pool->workers);
    }
    memset(pool->workers, 0, threads * sizeof *pool->workers);
    for (uint32_t i = 1; i < threads; i++) {
        pool->workers[i].pool = pool;
        pool->workers[i].index = i;
        if (start_worker(&pool->workers[i]) != 0) {
            sp_pool_free(pool);
            return sp_fail(err, SP_ERR_MEMORY, "threads: only %u of %u could be started", i, threads);
        }
        pool->started++;
    }
    *out = pool;
    return SP_OK;
}

void sp_pool_free(sp_pool *pool) {
    if (!pool)
        return;
    atomic_store(&pool->stop, true);
    announce(pool);
    for (uint32_t i = 1; i <= pool->started; i++)
        pthread_join(pool->workers[i].thread, NULL);
    pthread_cond_destroy(&pool->wake);
    pthread_mutex_destroy(&pool->mutex);
    free(pool->workers);
    free(pool);
}

uint32_t sp_pool_threads(const sp_pool *pool) {
    return pool->threads;
}
