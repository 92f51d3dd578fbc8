/* The inside of the gate, for gate.c (letting in, the thread) and gate_connection.c (a connection's life). */
#ifndef SP_SERVE_GATE_INSIDE_H
#define SP_SERVE_GATE_INSIDE_H

#include <pthread.h>
#include <stdatomic.h>

#include "gate.h"
#include "linger.h"

struct gate {
    const config *config;
    stats *stats;
    gate_calls calls;
    pthread_t thread;
    bool started;
    int listener, wake, reserve;
    atomic_bool stopping, stop_accepting, accepting_stopped;
    pthread_mutex_t lock; /* guards what follows, and every gate_connection */
    gate_connection *first;
    size_t open, handed_over; /* in the list, and given to the HTTP library but not yet there */
    double handed_over_ms;    /* when the last was given */
    linger_set lingering;
    double last_bytes_ms; /* when anything was last received */
};

/* Let the thread look around now. */
void gate_wake(gate *g);

/* What follows is called with the lock held. */

/* End a connection, with an answer unless `text` is NULL. */
void gate_end(gate_connection *c, int status, const char *text);

/* Look whether its time is over, or its peer gone. */
void gate_look_at(gate_connection *c, double now);

/* Whether nothing has come since the last answer, or since it was opened. */
bool gate_is_idle(gate_connection *c);

#endif
