/*
 * Sockets that are read on for a while after their last answer. One that is closed while bytes lie
 * unread in it is reset, and the peer may lose the answer on its way. A duplicate of the descriptor
 * keeps the socket open meanwhile.
 */
#ifndef SP_SERVE_LINGER_H
#define SP_SERVE_LINGER_H

#include <poll.h>
#include <stdbool.h>

/* As many at a time; more are closed at once. */
enum { LINGER_MOST = 256 };

typedef struct lingering {
    int fd;
    double until_ms;
} lingering;

typedef struct linger_set {
    lingering sockets[LINGER_MOST];
    unsigned count;
} linger_set;

/* End the sending side of `fd`, and keep a duplicate of it. False when there is no room for one. */
bool linger_add(linger_set *set, int fd, double until_ms);

/* Fill `out`, which has room for LINGER_MOST, with what to poll for; returns how many. */
unsigned linger_poll(const linger_set *set, struct pollfd *out);

/* Throw away what has arrived, and close those whose peer has ended or whose time is over. */
void linger_read_on(linger_set *set);

void linger_close(linger_set *set);

#endif
