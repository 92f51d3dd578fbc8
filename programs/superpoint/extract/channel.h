/* A queue of pointers between threads, of a fixed size. */
#ifndef SUPERPOINT_EXTRACT_CHANNEL_H
#define SUPERPOINT_EXTRACT_CHANNEL_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct channel {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    void **items;
    size_t room, first, count;
    bool closed;
} channel;

bool channel_init(channel *c, size_t room);
void channel_free(channel *c);

/* Waits for room; false when the channel was closed, and the item was not taken. */
bool channel_put(channel *c, void *item);

/* Waits for an item; NULL when the channel is closed and empty. */
void *channel_take(channel *c);

/* No more items; those inside can still be taken. */
void channel_close(channel *c);

#endif
