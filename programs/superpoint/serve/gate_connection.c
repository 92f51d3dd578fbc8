#include <arpa/inet.h>
#include <linux/tcp.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "common/clock.h"
#include "gate_inside.h"
#include "refusal.h"

/* The kernel's numbers of connection states, which <linux/tcp.h> leaves to <netinet/tcp.h>. */
enum { TCP_ESTABLISHED = 1, TCP_FIN_WAIT1 = 4, TCP_FIN_WAIT2 = 5, TCP_CLOSE_WAIT = 8 };

/* How long the HTTP library has to notice that a peer has ended in the middle. */
enum { OVER_MS = 2000 };

/* Connections looked at to find one that the library speaks of: each costs a system call, and a flood pays nothing. */
enum { LOOKED_AT = 256 };

/* Empty lines between requests, which are skipped: as many bytes of them are not taken for a request. */
enum { EMPTY_LINES = 4 };

/* Where bytes on the wire cannot be told from those of requests: with TLS, and behind a chunked body. */
#define UNKNOWN UINT64_MAX

/* What the kernel tells of a connection: bytes that the peer has sent and been sent so far, and its state. */
typedef struct traffic {
    uint64_t received, sent;
    unsigned state;
} traffic;

/* All zero where the kernel does not tell. It counts the peer's closing as one byte. */
static traffic traffic_of(const gate_connection *c) {
    struct tcp_info info;
    socklen_t size = sizeof info;
    memset(&info, 0, sizeof info);
    if (getsockopt(c->fd, IPPROTO_TCP, TCP_INFO, &info, &size) != 0)
        return (traffic){0};
    bool closing = info.tcpi_state != TCP_ESTABLISHED && info.tcpi_state != TCP_FIN_WAIT1 &&
                   info.tcpi_state != TCP_FIN_WAIT2 && info.tcpi_bytes_received > 0;
    return (traffic){info.tcpi_bytes_received - closing, info.tcpi_bytes_sent, info.tcpi_state};
}

/* Bytes that have arrived and have not been read. */
static int unread_bytes(const gate_connection *c) {
    int unread = 0;
    return ioctl(c->fd, FIONREAD, &unread) == 0 ? unread : 0;
}

/* ---- beginning, phases ------------------------------------------------------------------------- */

gate_connection *gate_opened(gate *g, int fd, void *tls_session) {
    gate_connection *c = calloc(1, sizeof *c);
    if (!c)
        return NULL;
    struct sockaddr_storage address;
    socklen_t size = sizeof address;
    if (getpeername(fd, (struct sockaddr *)&address, &size) == 0) {
        const void *raw = address.ss_family == AF_INET6 ? (void *)&((struct sockaddr_in6 *)&address)->sin6_addr
                                                        : (void *)&((struct sockaddr_in *)&address)->sin_addr;
        inet_ntop(address.ss_family, raw, c->peer, sizeof c->peer);
    }
    c->owner = g;
    c->fd = fd;
    c->tls_session = tls_session;
    c->consumed = tls_session ? UNKNOWN : 0;
    c->deadline_ms = now_ms() + g->config->limits.header_timeout * 1e3;
    pthread_mutex_lock(&g->lock);
    c->next = g->first;
    if (g->first)
        g->first->previous = c;
    g->first = c;
    g->open++;
    g->handed_over -= g->handed_over > 0;
    g->last_bytes_ms = now_ms();
    pthread_mutex_unlock(&g->lock);
    return c;
}

static double timeout_of(const gate *g, gate_phase phase) {
    const config_limits *l = &g->config->limits;
    switch (phase) {
    case PHASE_HEADERS:
        return l->header_timeout;
    case PHASE_BODY:
        return l->body_timeout;
    case PHASE_WRITE:
        return l->write_timeout;
    case PHASE_IDLE:
        return l->keep_alive_timeout;
    default:
        return HUGE_VAL;
    }
}

static void set_phase_locked(gate_connection *c, gate_phase phase) {
    c->phase = phase;
    c->over_since_ms = 0;
    c->deadline_ms = now_ms() + timeout_of(c->owner, phase) * 1e3;
}

void gate_set_phase(gate_connection *c, gate_phase phase) {
    pthread_mutex_lock(&c->owner->lock);
    set_phase_locked(c, phase);
    pthread_mutex_unlock(&c->owner->lock);
}

void gate_request_begun(gate_connection *c) {
    pthread_mutex_lock(&c->owner->lock);
    c->has_target = true;
    c->last = false;
    pthread_mutex_unlock(&c->owner->lock);
}

void gate_request_done(gate_connection *c, uint64_t bytes) {
    pthread_mutex_lock(&c->owner->lock);
    set_phase_locked(c, PHASE_IDLE);
    traffic now = traffic_of(c);
    c->received_mark = now.received;
    c->sent_mark = now.sent;
    c->consumed = bytes && c->consumed != UNKNOWN ? c->consumed + bytes + EMPTY_LINES : UNKNOWN;
    c->has_target = false;
    c->owner->last_bytes_ms = now_ms();
    pthread_mutex_unlock(&c->owner->lock);
}

void gate_set_last(gate_connection *c) {
    pthread_mutex_lock(&c->owner->lock);
    c->last = true;
    pthread_mutex_unlock(&c->owner->lock);
}

void gate_set_answered(gate_connection *c) {
    pthread_mutex_lock(&c->owner->lock);
    c->answered = true;
    pthread_mutex_unlock(&c->owner->lock);
}

int gate_status(gate_connection *c) {
    pthread_mutex_lock(&c->owner->lock);
    int status = c->status;
    pthread_mutex_unlock(&c->owner->lock);
    return status;
}

/* ---- refusals ---------------------------------------------------------------------------------- */

/*
 * The last word on a connection, where there can be one: the handshake of TLS is over once there is a request. The
 * HTTP library's thread may be reading from the session meanwhile, which GnuTLS allows; it does not write, since
 * it has no answer yet, or is the caller.
 */
static void refuse(gate_connection *c, int status, const char *text) {
    if (!c->answered && (!c->tls_session || c->has_target)) {
        refusal_send(c->fd, c->tls_session, status, text);
        c->status = status;
    }
    c->answered = true;
    c->unread = true;
}

void gate_end(gate_connection *c, int status, const char *text) {
    if (text)
        refuse(c, status, text);
    c->answered = true;
    c->phase = PHASE_WORK;
    c->deadline_ms = HUGE_VAL;
    shutdown(c->fd, SHUT_RDWR); /* wakes the HTTP library, which closes it */
}

void gate_answer_now(gate_connection *c, int status, const char *text) {
    pthread_mutex_lock(&c->owner->lock);
    refuse(c, status, text);
    pthread_mutex_unlock(&c->owner->lock);
}

bool gate_send(gate_connection *c, const char *head, const void *body, size_t size) {
    struct iovec parts[] = {{(void *)(uintptr_t)head, strlen(head)}, {(void *)(uintptr_t)body, size}};
    const struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
    pthread_mutex_lock(&c->owner->lock);
    bool sent = !c->tls_session && !c->answered &&
                sendmsg(c->fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)(parts[0].iov_len + size);
    c->answered = true;
    pthread_mutex_unlock(&c->owner->lock);
    return sent;
}

/* Bytes behind the requests so far, which came together with them. */
static bool has_leftover(const gate_connection *c, uint64_t received) {
    return c->consumed != UNKNOWN && received > c->consumed;
}

/* Whether the HTTP library may be in the middle of a request of this connection. */
static bool may_be_asking(const gate_connection *c) {
    if (c->answered || (c->phase != PHASE_HEADERS && c->phase != PHASE_IDLE && c->phase != PHASE_BODY))
        return false;
    if (c->phase == PHASE_BODY || c->consumed == UNKNOWN)
        return true;
    uint64_t received = traffic_of(c).received;
    return received > c->received_mark || has_leftover(c, received);
}

/* Whether the library has read more than a head may have, and still has none. */
static bool head_is_too_long(const gate_connection *c) {
    double arrived = (double)traffic_of(c).received - (double)c->received_mark;
    return !c->tls_session && (c->phase == PHASE_HEADERS || c->phase == PHASE_IDLE) &&
           arrived - unread_bytes(c) > c->owner->config->limits.max_header_bytes;
}

/* False where the library's own page goes out. */
static bool refuse_for_library(gate_connection *c, int status) {
    if (status == 414 || status == 431)
        status = c->has_target ? 431 : 414;
    const char *text = status == 400   ? "not a well-formed HTTP request"
                       : status == 413 ? "the body is larger than max_body_bytes"
                       : status == 414 ? "the request target is longer than max_target_bytes"
                       : status == 431 ? "the headers are longer than max_header_bytes"
                       : status == 505 ? "the version of HTTP is neither 1.0 nor 1.1"
                                       : NULL;
    if (!text)
        return false;
    refuse(c, status, text);
    shutdown(c->fd, SHUT_WR); /* the library's own page does not follow */
    return true;
}

/* The only connection that may be asking, or NULL when there are several, or too many to look at. */
static gate_connection *only_one_asking(gate *g) {
    gate_connection *only = NULL;
    if (g->open > LOOKED_AT)
        return NULL;
    for (gate_connection *c = g->first; c; c = c->next)
        if (may_be_asking(c)) {
            if (only)
                return NULL;
            only = c;
        }
    return only;
}

/* The newest with too long a head. If it is not the one that the library speaks of, that one's turn comes too. */
static gate_connection *one_too_long(gate *g) {
    unsigned looked_at = 0;
    for (gate_connection *c = g->first; c && looked_at < LOOKED_AT; c = c->next, looked_at++)
        if (may_be_asking(c) && head_is_too_long(c))
            return c;
    return NULL;
}

/* The library is about to write to one of those that may be asking, and a TLS session takes one writer. */
static void keep_off_sessions(gate *g) {
    for (gate_connection *c = g->first; c; c = c->next)
        if (c->tls_session && may_be_asking(c))
            c->has_target = false;
}

void gate_refuse_for_library(gate *g, int status) {
    gate_connection *c = NULL;
    pthread_mutex_lock(&g->lock);
    if (status == 414 || status == 431)
        c = one_too_long(g);
    if (!c)
        c = only_one_asking(g);
    if (!c || !refuse_for_library(c, status))
        keep_off_sessions(g);
    pthread_mutex_unlock(&g->lock);
}

/* ---- deadlines --------------------------------------------------------------------------------- */

static void expire(gate_connection *c) {
    bool begun = c->tls_session ? c->has_target : traffic_of(c).received > c->received_mark;
    const char *text = c->phase == PHASE_BODY               ? "the body did not arrive in time"
                       : c->phase == PHASE_HEADERS && begun ? "the headers did not arrive in time"
                                                            : NULL;
    if (text || c->phase == PHASE_WRITE)
        atomic_fetch_add(&c->owner->stats->timeouts, 1);
    gate_end(c, 408, text);
}

/* An idle connection on which bytes arrive is at its next request's headers. */
static void look_at_idle(gate_connection *c) {
    if (traffic_of(c).received > c->received_mark) {
        set_phase_locked(c, PHASE_HEADERS);
        c->owner->last_bytes_ms = now_ms();
    }
}

/*
 * The peer has closed its side in the middle of a request, and all that it sent has been read. The HTTP
 * library does not always hear of it: when data and end arrive together it takes the data, and waits for
 * an event that has been. The wait here lets it finish with what it has just read.
 */
static void look_at_unfinished(gate_connection *c, double now) {
    if (traffic_of(c).state != TCP_CLOSE_WAIT || unread_bytes(c) > 0)
        c->over_since_ms = 0;
    else if (c->over_since_ms == 0)
        c->over_since_ms = now;
    else if (now - c->over_since_ms > OVER_MS)
        shutdown(c->fd, SHUT_RDWR);
}

void gate_look_at(gate_connection *c, double now) {
    if (c->phase == PHASE_IDLE)
        look_at_idle(c);
    else if ((c->phase == PHASE_HEADERS || c->phase == PHASE_BODY) && !c->answered)
        look_at_unfinished(c, now);
    if (now > c->deadline_ms)
        expire(c);
}

bool gate_is_idle(gate_connection *c) {
    if (c->phase == PHASE_IDLE)
        look_at_idle(c);
    return c->phase == PHASE_IDLE || c->answered ||
           (c->phase == PHASE_HEADERS && traffic_of(c).received == c->received_mark);
}

/* ---- letting go -------------------------------------------------------------------------------- */

static void keep_lingering(const gate_connection *c) {
    gate *g = c->owner;
    double seconds = g->config->limits.linger_timeout;
    if ((c->unread || unread_bytes(c) > 0) && seconds > 0 && linger_add(&g->lingering, c->fd, now_ms() + seconds * 1e3))
        gate_wake(g);
}

/* Whether the HTTP library closes a connection because what came was nothing that it could take for a request. */
static bool ends_malformed(const gate_connection *c) {
    traffic now = traffic_of(c);
    if (c->answered || c->last || now.sent != c->sent_mark)
        return false;
    /* A peer that ended it behind an answer is not waiting for anything. */
    return now.received > c->received_mark || (now.state == TCP_ESTABLISHED && has_leftover(c, now.received));
}

void gate_closed(gate_connection *c) {
    gate *g = c->owner;
    pthread_mutex_lock(&g->lock);
    /* Not over TLS: the library has freed the session by now. */
    if (!c->tls_session && ends_malformed(c)) {
        refuse(c, 400, "not an HTTP request");
        c->status = 400;
    }
    /* Of a request that got as far as its target the log tells anyway. */
    int malformed = c->has_target || c->status == 408 || c->status == 503 ? 0 : c->status;
    keep_lingering(c);
    if (c->next)
        c->next->previous = c->previous;
    if (c->previous)
        c->previous->next = c->next;
    else
        g->first = c->next;
    g->open--;
    pthread_mutex_unlock(&g->lock);
    if (malformed) {
        atomic_fetch_add(&g->stats->malformed, 1);
        g->calls.malformed(g->calls.context, c->peer, malformed);
    }
    free(c);
}
