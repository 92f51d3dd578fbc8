#include "extract/channel.h"

#include <stdlib.h>

bool channel_init(channel *c, size_t room) {
    *c = (channel){.items = calloc(room, sizeof *c->items), .room = room};
    pthread_mutex_init(&c->mutex, NULL);
    pthread_cond_init(&c->changed, NULL);
    return c->items != NULL;
}

void channel_free(channel *c) {
    pthread_cond_destroy(&c->changed);
    pthread_mutex_destroy(&c->mutex);
    free(c->items);
}

bool channel_put(channel *c, void *item) {
    pthread_mutex_lock(&c->mutex);
    while (c->count == c->room && !c->closed)
        pthread_cond_wait(&c->changed, &c->mutex);
    const bool open = !c->closed;
    if (open) {
        c->items[(c->first + c->count++) % c->room] = item;
        pthread_cond_broadcast(&c->changed);
    }
    pthread_mutex_unlock(&c->mutex);
    return open;
}

void *channel_take(channel *c) {
    void *item = NULL;
    pthread_mutex_lock(&c->mutex);
    while (c->count == 0 && !c->closed)
        pthread_cond_wait(&c->changed, &c->mutex);
    if (c->count > 0) {
        item = c->items[c->first];
        c->first = (c->first + 1) % c->room;
        c->count--;
        pthread_cond_broadcast(&c->changed);
    }
    pthread_mutex_unlock(&c->mutex);
    return item;
}

void channel_close(channel *c) {
    pthread_mutex_lock(&c->mutex);
    c->closed = true;
    pthread_cond_broadcast(&c->changed);
    pthread_mutex_unlock(&c->mutex);
}
