#include "base/pool.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/error.h"

enum {
    MAX_THREADS = 1024,
    /* Spins before sleeping: about 50 us of `pause`, longer than the serial gap between two layers. */
    SPINS = 2000,
    /* Shared work: the smallest range is this part of a thread's even share. Each range costs what the
     * first rows of a fused pair cost twice over. */
    SMALLEST_PART = 16
};

typedef struct worker {
    struct sp_pool *pool;
    uint32_t index;
    pthread_t thread;
} worker;

struct sp_pool {
    uint32_t threads;
    sp_pool_task *task;
    void *context;
    size_t items;
    bool shared;            /* ranges are taken from `next`; else each thread has its own */
    atomic_size_t next;     /* first item that nobody has taken */
    atomic_uint generation; /* rises by one at each run */
    atomic_uint pending;    /* workers that have not finished this run */
    atomic_uint sleepers;
    atomic_bool stop;
    pthread_mutex_t mutex;
    pthread_cond_t wake;
    worker *workers; /* threads - 1 */
    uint32_t started;
};

static inline void relax(void) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* Take a range of shared work: half of an even share of what is left. */
static bool take_range(sp_pool *pool, size_t *first, size_t *last) {
    const size_t least = pool->items / ((size_t)pool->threads * SMALLEST_PART) + 1;
    *first = atomic_load_explicit(&pool->next, memory_order_relaxed);
    do {
        if (*first >= pool->items)
            return false;
        const size_t left = pool->items - *first, part = left / (2 * (size_t)pool->threads);
        *last = *first + (part > least ? part : least < left ? least : left);
    } while (
        !atomic_compare_exchange_weak_explicit(&pool->next, first, *last, memory_order_relaxed, memory_order_relaxed));
    return true;
}

static void run_part(sp_pool *pool, uint32_t index) {
    if (pool->shared) {
        for (size_t first, last; take_range(pool, &first, &last);)
            pool->task(pool->context, first, last, index);
        return;
    }
    size_t first = pool->items * index / pool->threads;
    size_t last = pool->items * (index + 1) / pool->threads;
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
    atomic_store(&pool->next, 0);
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
    pool->workers = calloc(threads, sizeof *pool->workers);
    if (!pool->workers) {
        sp_pool_free(pool);
        return sp_fail_memory(err, "thread pool", threads * sizeof *pool->workers);
    }
    for (uint32_t i = 0; i + 1 < threads; i++) {
        pool->workers[i] = (worker){.pool = pool, .index = i + 1};
        if (start_worker(&pool->workers[i]) != 0) {
            sp_pool_free(pool);
            return sp_fail(err, SP_ERR_MEMORY, "threads: only %u of %u could be started", i + 1, threads);
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
    for (uint32_t i = 0; i < pool->started; i++)
        pthread_join(pool->workers[i].thread, NULL);
    pthread_cond_destroy(&pool->wake);
    pthread_mutex_destroy(&pool->mutex);
    free(pool->workers);
    free(pool);
}

uint32_t sp_pool_threads(const sp_pool *pool) {
    return pool->threads;
}
