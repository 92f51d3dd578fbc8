/*
 * What happens to connections outside of a request: they are let in, held to their deadlines, and let
 * go in such a way that the last answer arrives. One thread does it; the HTTP library reads, parses
 * and writes. It tells the gate of each connection when it begins, changes its phase and ends.
 */
#ifndef SP_SERVE_GATE_H
#define SP_SERVE_GATE_H

#include <netinet/in.h>

#include "config.h"
#include "stats.h"

typedef struct gate gate;

typedef enum gate_phase {
    PHASE_HEADERS, /* connected, or sending headers */
    PHASE_BODY,
    PHASE_WORK, /* no deadline: the pipeline has its own */
    PHASE_WRITE,
    PHASE_IDLE /* between requests */
} gate_phase;

typedef struct gate_connection {
    struct gate_connection *next, *previous;
    gate *owner;
    int fd;
    void *tls_session; /* NULL without TLS */
    bool has_target;   /* the line of the present request is there */
    bool answered;     /* the last thing that was received has had its answer, or has been dealt with */
    bool unread;       /* something was refused: read on before closing */
    bool last;         /* the answer says that it ends the connection */
    int status;        /* of an answer that the gate gave itself; 0: none */
    gate_phase phase;
    double deadline_ms;
    double over_since_ms;              /* when the peer was found to have ended in the middle; 0: it has not */
    uint64_t received_mark, sent_mark; /* bytes at the end of the last request */
    uint64_t consumed;                 /* at most as many of the bytes received were part of requests */
    char peer[INET6_ADDRSTRLEN];
} gate_connection;

/* `add` hands a new socket to the HTTP library, which closes it; `tick` is called several times a second. */
typedef struct gate_calls {
    void (*add)(void *context, int fd, const struct sockaddr *address, socklen_t size);
    void (*tick)(void *context);
    void (*malformed)(void *context, const char *peer, int status);
    void *context;
} gate_calls;

/*
 * Listen where the configuration says: exactly there when it names a port, else at the default port
 * or the next free one. Nothing is accepted before gate_start.
 */
sp_status gate_create(const config *c, stats *s, const gate_calls *calls, gate **out, int *port, sp_error *err);
sp_status gate_start(gate *g, sp_error *err);

/*
 * A connection has begun (NULL when memory fails: close it), changes its phase, ends (before its socket
 * is closed). A request has its first line; is over, `bytes` long (0: not known); has an answer that
 * ends the connection.
 */
gate_connection *gate_opened(gate *g, int fd, void *tls_session);
void gate_set_phase(gate_connection *c, gate_phase phase);
void gate_request_begun(gate_connection *c);
void gate_request_done(gate_connection *c, uint64_t bytes);
void gate_set_last(gate_connection *c);
void gate_closed(gate_connection *c);

/* The last thing that was received has been dealt with without an answer. */
void gate_set_answered(gate_connection *c);

/* Status of the answer that the gate gave in place of the HTTP library, or 0. */
int gate_status(gate_connection *c);

/*
 * Send an answer at once, from the thread of the HTTP library, where it cannot queue one: in the
 * middle of a body. The connection must be closed then.
 */
void gate_answer_now(gate_connection *c, int status, const char *text);

/* Send an answer whole, or say that it cannot be done now (or with TLS). The connection must be closed then. */
bool gate_send(gate_connection *c, const char *head, const void *body, size_t size);

/*
 * The HTTP library is about to refuse a request with a page of its own, and does not say whose. Called from
 * its thread; answers in its place where it is certain whose: one whose head is too long, or the only
 * connection that has anything to be answered.
 */
void gate_refuse_for_library(gate *g, int status);

size_t gate_open_connections(gate *g);

/* Take what has been connected already, and listen no more. */
void gate_stop_accepting(gate *g);

/* Whether every connection is between requests, and none has sent anything since `quiet_ms`. */
bool gate_all_idle(gate *g, double quiet_ms);

/* Close idle connections. */
void gate_close_idle(gate *g);
void gate_free(gate *g);

#endif
