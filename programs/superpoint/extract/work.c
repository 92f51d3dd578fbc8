#include "extract/work.h"

void work_init(work *w, size_t first, size_t last, bool more) {
    *w = (work){.first = first, .last = last, .more = more};
    pthread_mutex_init(&w->mutex, NULL);
    pthread_cond_init(&w->changed, NULL);
}

void work_free(work *w) {
    pthread_cond_destroy(&w->changed);
    pthread_mutex_destroy(&w->mutex);
}

bool work_take(work *w, size_t *item) {
    pthread_mutex_lock(&w->mutex);
    while (w->first == w->last && w->more && !w->stopped)
        pthread_cond_wait(&w->changed, &w->mutex);
    const bool some = w->first < w->last && !w->stopped;
    if (some) {
        *item = w->first++;
        w->taken++;
    }
    pthread_mutex_unlock(&w->mutex);
    return some;
}

void work_finish(work *w, bool well) {
    pthread_mutex_lock(&w->mutex);
    w->finished++;
    w->failed += !well;
    pthread_mutex_unlock(&w->mutex);
}

bool work_give(work *w, size_t *first, size_t *last) {
    pthread_mutex_lock(&w->mutex);
    const size_t half = (w->last - w->first + 1) / 2;
    const bool some = half > 0 && !w->stopped;
    if (some) {
        *last = w->last;
        *first = w->last -= half;
    }
    pthread_mutex_unlock(&w->mutex);
    return some;
}

void work_refill(work *w, size_t first, size_t last) {
    pthread_mutex_lock(&w->mutex);
    w->first = first;
    w->last = last;
    w->more = true;
    pthread_cond_broadcast(&w->changed);
    pthread_mutex_unlock(&w->mutex);
}

void work_end(work *w) {
    pthread_mutex_lock(&w->mutex);
    w->more = false;
    pthread_cond_broadcast(&w->changed);
    pthread_mutex_unlock(&w->mutex);
}

void work_stop(work *w) {
    pthread_mutex_lock(&w->mutex);
    w->stopped = true;
    pthread_cond_broadcast(&w->changed);
    pthread_mutex_unlock(&w->mutex);
}

bool work_empty(work *w) {
    pthread_mutex_lock(&w->mutex);
    const bool empty = w->first == w->last;
    pthread_mutex_unlock(&w->mutex);
    return empty;
}

work_count work_counts(work *w) {
    pthread_mutex_lock(&w->mutex);
    const work_count counts = {w->finished, w->failed, w->taken != w->finished, w->stopped};
    pthread_mutex_unlock(&w->mutex);
    return counts;
}
