/*
 * The pictures that are still to be done, as a range of a list that threads take from the front of
 * and other processes from the back of.
 */
#ifndef SUPERPOINT_EXTRACT_WORK_H
#define SUPERPOINT_EXTRACT_WORK_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct work {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    size_t first, last; /* what is left */
    bool more;          /* others may still give some: wait when there is nothing */
    bool stopped;
    size_t taken, finished, failed; /* of all that were in the range, now and before */
} work;

void work_init(work *w, size_t first, size_t last, bool more);
void work_free(work *w);

/* One from the front; false when there is nothing left or work was stopped. */
bool work_take(work *w, size_t *item);

/* What was taken is finished, well or not. */
void work_finish(work *w, bool well);

/* Half of what is left, rounded up, from the back; false when there is nothing. */
bool work_give(work *w, size_t *first, size_t *last);

/* New work for an empty range, of which there may be more again; and: there will be no more. */
void work_refill(work *w, size_t first, size_t last);
void work_end(work *w);

/* Take nothing any more. */
void work_stop(work *w);

bool work_empty(work *w);

/* How much is finished and how much of that failed; whether something is taken and not finished. */
typedef struct work_count {
    size_t finished, failed;
    bool busy, stopped;
} work_count;
work_count work_counts(work *w);

#endif
