/*
 * A pool of threads that run one function over a range of items. No result may depend on which thread runs
 * which items. Workers spin for a short while after each call, since the next layer follows in microseconds, and
 * then sleep.
 */
#ifndef SP_BASE_POOL_H
#define SP_BASE_POOL_H

#include "superpoint.h"

typedef struct sp_pool sp_pool;

/* Run items [first, last) as thread `thread` of the pool. */
typedef void sp_pool_task(void *context, size_t first, size_t last, uint32_t thread);

/* `threads` in all, the caller's included; 1 makes a pool without threads. */
sp_status sp_pool_create(uint32_t threads, sp_pool **pool, sp_error *err);
void sp_pool_free(sp_pool *pool);
uint32_t sp_pool_threads(const sp_pool *pool);

/* Divide [0, items) evenly, one range a thread, and return when all have been done. One caller at a time. */
void sp_pool_run(sp_pool *pool, size_t items, sp_pool_task *task, void *context);

/*
 * The same for fewer than 2^32 items, but a thread that has finished its share takes from the others' ends: one that is
 * slow, or that something else keeps from its processor, holds up the others by little. Otherwise each does what it
 * did before, and finds it in its own cache.
 */
void sp_pool_share(sp_pool *pool, size_t items, sp_pool_task *task, void *context);

#endif
