/* A clock that never goes back. */
#ifndef SP_COMMON_CLOCK_H
#define SP_COMMON_CLOCK_H

#include <time.h>

/* Milliseconds since some moment. */
static inline double now_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static inline double now_s(void) {
    return now_ms() * 1e-3;
}

#endif
