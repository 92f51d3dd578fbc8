#include "gate.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/tcp.h>
#include <math.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "clock.h"
#include "common/fail.h"

/* The kernel's numbers of connection states, which <linux/tcp.h> leaves to <netinet/tcp.h>. */
enum { TCP_ESTABLISHED = 1, TCP_FIN_WAIT1 = 4, TCP_FIN_WAIT2 = 5, TCP_CLOSE_WAIT = 8 };

/* Sockets read on and thrown away at a time; more are closed at once. */
enum { LINGERING = 256, TICK_MS = 100, OVER_MS = 2000, FORGET_MS = 5000, ACCEPT_AT_ONCE = 64, BACKLOG = 1024 };

typedef struct lingering {
    int fd;
    double until_ms;
} lingering;

struct gate {
    const config *config;
    stats *stats;
    gate_calls calls;
    pthread_t thread;
    bool started;
    int listener, wake, reserve;
    atomic_bool stopping, stop_accepting, accepting_stopped;
    pthread_mutex_t lock; /* guards what follows, and every gate_connection's deadline */
    gate_connection *first;
    size_t open, handed_over; /* in the list, and given to the HTTP library but not yet there */
    double handed_over_ms;    /* when the last was given */
    lingering linger[LINGERING];
    unsigned lingering;
    double last_bytes_ms; /* when anything was last received */
};

const char *gate_reason(int status) {
    switch (status) {
    case 400:
        return "Bad Request";
    case 408:
        return "Request Timeout";
    case 413:
        return "Content Too Large";
    case 503:
        return "Service Unavailable";
    default:
        return "Error";
    }
}

static void send_answer(int fd, int status, const char *text) {
    char body[256], answer[640];
    int length = snprintf(body, sizeof body, "{\"detail\": \"%.200s\"}\n", text);
    int size = snprintf(answer, sizeof answer,
                        "HTTP/1.1 %d %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n%s"
                        "Connection: close\r\n\r\n%s",
                        status, gate_reason(status), length, status == 503 ? "Retry-After: 1\r\n" : "", body);
    /* Best effort: the socket is new or idle, so its buffer has room for this. */
    ssize_t sent = send(fd, answer, (size_t)size, MSG_NOSIGNAL | MSG_DONTWAIT);
    (void)sent;
}

/* Bytes that the peer has sent and been sent so far. The kernel counts the peer's closing as one byte. */
static bool traffic(int fd, uint64_t *received, uint64_t *sent) {
    struct tcp_info info;
    socklen_t size = sizeof info;
    memset(&info, 0, sizeof info);
    if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) != 0)
        return false;
    bool closing = info.tcpi_state != TCP_ESTABLISHED && info.tcpi_state != TCP_FIN_WAIT1 &&
                   info.tcpi_state != TCP_FIN_WAIT2 && info.tcpi_bytes_received > 0;
    *received = info.tcpi_bytes_received - closing;
    *sent = info.tcpi_bytes_sent;
    return true;
}

/* ---- listening --------------------------------------------------------------------------------- */

static int listen_at(const struct addrinfo *a, int port) {
    struct sockaddr_storage address;
    memcpy(&address, a->ai_addr, a->ai_addrlen);
    if (a->ai_family == AF_INET6)
        ((struct sockaddr_in6 *)&address)->sin6_port = htons((uint16_t)port);
    else
        ((struct sockaddr_in *)&address)->sin_port = htons((uint16_t)port);
    int fd = socket(a->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), one = 1;
    if (fd < 0)
        return -1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (bind(fd, (struct sockaddr *)&address, a->ai_addrlen) != 0 || listen(fd, BACKLOG) != 0) {
        int reason = errno;
        close(fd);
        errno = reason;
        return -1;
    }
    return fd;
}

static int bound_port(int fd) {
    struct sockaddr_storage address;
    socklen_t size = sizeof address;
    if (getsockname(fd, (struct sockaddr *)&address, &size) != 0)
        return 0;
    return ntohs(address.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&address)->sin6_port
                                               : ((struct sockaddr_in *)&address)->sin_port);
}

static sp_status open_listener(const config *c, int *fd, int *port, sp_error *err) {
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE}, *found;
    int rc = getaddrinfo(c->host, NULL, &hints, &found);
    if (rc != 0)
        return fail(err, SP_ERR_ARGUMENT, "host: %s: %s", c->host, gai_strerror(rc));
    int first = c->port >= 0 ? c->port : CONFIG_DEFAULT_PORT, tries = c->port >= 0 ? 1 : CONFIG_PORTS_TRIED;
    *fd = -1;
    for (int i = 0; i < tries && *fd < 0; i++) {
        *fd = listen_at(found, first + i);
        if (*fd < 0 && errno != EADDRINUSE)
            break;
    }
    int reason = errno;
    freeaddrinfo(found);
    if (*fd < 0)
        return fail(err, SP_ERR_IO, "port: %s port %d%s: %s", c->host, first, tries > 1 ? " and the 100 behind it" : "",
                    strerror(reason));
    *port = bound_port(*fd);
    return SP_OK;
}

sp_status gate_create(const config *c, stats *s, const gate_calls *calls, gate **out, int *port, sp_error *err) {
    gate *g = calloc(1, sizeof *g);
    *out = NULL;
    if (!g)
        return fail(err, SP_ERR_MEMORY, "out of memory");
    g->config = c;
    g->stats = s;
    g->calls = *calls;
    g->listener = g->wake = g->reserve = -1;
    pthread_mutex_init(&g->lock, NULL);
    sp_status status = open_listener(c, &g->listener, port, err);
    if (status == SP_OK) {
        g->wake = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
        g->reserve = open("/dev/null", O_RDONLY | O_CLOEXEC);
        if (g->wake < 0)
            status = fail(err, SP_ERR_IO, "eventfd: %s", strerror(errno));
    }
    if (status != SP_OK) {
        gate_free(g);
        return status;
    }
    *out = g;
    return SP_OK;
}

/* ---- letting in -------------------------------------------------------------------------------- */

/* Room for one more: an idle connection goes, else the one that has been at its headers longest. */
static bool make_room(gate *g) {
    gate_connection *victim = NULL;
    pthread_mutex_lock(&g->lock);
    if (g->handed_over && now_ms() - g->handed_over_ms > FORGET_MS)
        g->handed_over = 0; /* some did not get there, for want of memory */
    bool room = (double)(g->open + g->handed_over) < g->config->limits.max_connections;
    if (!room) {
        for (gate_connection *c = g->first; c; c = c->next) {
            bool candidate = !c->answered && (c->phase == PHASE_IDLE || c->phase == PHASE_HEADERS);
            bool better = !victim || (c->phase == PHASE_IDLE && victim->phase != PHASE_IDLE) ||
                          (c->phase == victim->phase && c->deadline_ms < victim->deadline_ms);
            if (candidate && better)
                victim = c;
        }
        if (victim) {
            if (victim->phase == PHASE_HEADERS && !victim->tls)
                send_answer(victim->fd, 503, "too many connections");
            victim->answered = true;
            victim->phase = PHASE_WORK; /* not to be chosen again */
            shutdown(victim->fd, SHUT_RDWR);
            room = true;
        }
    }
    if (room) {
        g->handed_over++;
        g->handed_over_ms = now_ms();
    }
    pthread_mutex_unlock(&g->lock);
    return room;
}

/* Out of file descriptors: the reserved one lets the client in to be told so. False when none waits. */
static bool refuse_for_descriptors(gate *g) {
    if (g->reserve >= 0)
        close(g->reserve);
    int fd = accept4(g->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd >= 0) {
        send_answer(fd, 503, "out of file descriptors");
        shutdown(fd, SHUT_WR);
        close(fd);
        atomic_fetch_add(&g->stats->connections_refused, 1);
    }
    g->reserve = open("/dev/null", O_RDONLY | O_CLOEXEC);
    return fd >= 0;
}

/* False when no client waits. */
static bool accept_one(gate *g) {
    struct sockaddr_storage address;
    socklen_t size = sizeof address;
    int fd = accept4(g->listener, (struct sockaddr *)&address, &size, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0) {
        if (errno == EMFILE || errno == ENFILE)
            return refuse_for_descriptors(g);
        return errno == ECONNABORTED || errno == EINTR;
    }
    if (!make_room(g)) {
        send_answer(fd, 503, "too many connections");
        close(fd);
        atomic_fetch_add(&g->stats->connections_refused, 1);
        return true;
    }
    atomic_fetch_add(&g->stats->connections, 1);
    g->calls.add(g->calls.context, fd, (struct sockaddr *)&address, size);
    return true;
}

gate_connection *gate_opened(gate *g, int fd, bool tls) {
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
    c->tls = tls;
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

/* ---- deadlines --------------------------------------------------------------------------------- */

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

void gate_request_done(gate_connection *c) {
    pthread_mutex_lock(&c->owner->lock);
    set_phase_locked(c, PHASE_IDLE);
    traffic(c->fd, &c->received_mark, &c->sent_mark);
    c->owner->last_bytes_ms = now_ms();
    pthread_mutex_unlock(&c->owner->lock);
}

bool gate_is_answered(gate_connection *c) {
    pthread_mutex_lock(&c->owner->lock);
    bool answered = c->answered;
    pthread_mutex_unlock(&c->owner->lock);
    return answered;
}

void gate_set_answered(gate_connection *c) {
    pthread_mutex_lock(&c->owner->lock);
    c->answered = true;
    pthread_mutex_unlock(&c->owner->lock);
}

void gate_answer_now(gate_connection *c, int status, const char *text) {
    pthread_mutex_lock(&c->owner->lock);
    if (!c->tls && !c->answered)
        send_answer(c->fd, status, text);
    c->answered = true;
    c->unread = true;
    pthread_mutex_unlock(&c->owner->lock);
}

static void expire(gate *g, gate_connection *c) {
    uint64_t received = 0, sent = 0;
    traffic(c->fd, &received, &sent);
    bool asking = c->phase == PHASE_BODY || (c->phase == PHASE_HEADERS && received > c->received_mark);
    if (asking && !c->tls && !c->answered)
        send_answer(c->fd, 408,
                    c->phase == PHASE_BODY ? "the body did not arrive in time" : "the headers did not arrive in time");
    if (asking || c->phase == PHASE_WRITE)
        atomic_fetch_add(&g->stats->timeouts, 1);
    c->answered = true;
    c->phase = PHASE_WORK;
    c->deadline_ms = HUGE_VAL;
    shutdown(c->fd, SHUT_RDWR); /* wakes the HTTP library, which closes it */
}

/* An idle connection on which bytes arrive is at its next request's headers. */
static void look_at_idle(gate_connection *c) {
    uint64_t received, sent;
    if (traffic(c->fd, &received, &sent) && received > c->received_mark) {
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
    struct tcp_info info;
    socklen_t size = sizeof info;
    int unread = 0;
    bool over = getsockopt(c->fd, IPPROTO_TCP, TCP_INFO, &info, &size) == 0 && info.tcpi_state == TCP_CLOSE_WAIT &&
                ioctl(c->fd, FIONREAD, &unread) == 0 && unread == 0;
    if (!over)
        c->over_since_ms = 0;
    else if (c->over_since_ms == 0)
        c->over_since_ms = now;
    else if (now - c->over_since_ms > OVER_MS)
        shutdown(c->fd, SHUT_RDWR);
}

static void check_deadlines(gate *g) {
    pthread_mutex_lock(&g->lock);
    double now = now_ms();
    for (gate_connection *c = g->first; c; c = c->next) {
        if (c->phase == PHASE_IDLE)
            look_at_idle(c);
        else if ((c->phase == PHASE_HEADERS || c->phase == PHASE_BODY) && !c->answered)
            look_at_unfinished(c, now);
        if (now > c->deadline_ms)
            expire(g, c);
    }
    pthread_mutex_unlock(&g->lock);
}

/* ---- letting go -------------------------------------------------------------------------------- */

/*
 * A socket that is closed while bytes lie unread in it is reset, and the peer may lose the answer on
 * its way. A duplicate of the descriptor keeps the socket open for a while, to read them.
 */
static void linger(gate *g, gate_connection *c) {
    int unread = 0;
    bool needed = c->unread || (ioctl(c->fd, FIONREAD, &unread) == 0 && unread > 0);
    if (!needed || c->tls || g->config->limits.linger_timeout <= 0 || g->lingering == LINGERING)
        return;
    int fd = fcntl(c->fd, F_DUPFD_CLOEXEC, 0);
    if (fd < 0)
        return;
    shutdown(fd, SHUT_WR);
    g->linger[g->lingering++] = (lingering){fd, now_ms() + g->config->limits.linger_timeout * 1e3};
    uint64_t one = 1;
    ssize_t written = write(g->wake, &one, sizeof one);
    (void)written;
}

void gate_closed(gate_connection *c) {
    gate *g = c->owner;
    uint64_t received = 0, sent = 0;
    bool malformed = false;
    pthread_mutex_lock(&g->lock);
    /* Bytes came and nothing went back: it was nothing that the HTTP library could take for a request. */
    if (!c->answered && traffic(c->fd, &received, &sent) && received > c->received_mark && sent == c->sent_mark) {
        malformed = true;
        atomic_fetch_add(&g->stats->malformed, 1);
        if (!c->tls)
            send_answer(c->fd, 400, "not an HTTP request");
        c->unread = true;
    }
    linger(g, c);
    if (c->next)
        c->next->previous = c->previous;
    if (c->previous)
        c->previous->next = c->next;
    else
        g->first = c->next;
    g->open--;
    pthread_mutex_unlock(&g->lock);
    if (malformed)
        g->calls.malformed(g->calls.context, c->peer);
    free(c);
}

/* Read on; true when this one is over. */
static bool linger_on(const lingering *l, double now) {
    char waste[16384];
    for (int i = 0; i < 16; i++) {
        ssize_t n = recv(l->fd, waste, sizeof waste, MSG_DONTWAIT);
        if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
            return true;
        if (n < 0)
            break;
    }
    return now > l->until_ms;
}

static void read_on(gate *g) {
    pthread_mutex_lock(&g->lock);
    double now = now_ms();
    for (unsigned i = 0; i < g->lingering;) {
        if (linger_on(&g->linger[i], now)) {
            close(g->linger[i].fd);
            g->linger[i] = g->linger[--g->lingering];
        } else {
            i++;
        }
    }
    pthread_mutex_unlock(&g->lock);
}

/* ---- the thread -------------------------------------------------------------------------------- */

static void wait_for_something(gate *g, double until_ms) {
    struct pollfd fds[2 + LINGERING];
    nfds_t count = 0;
    fds[count++] = (struct pollfd){g->wake, POLLIN, 0};
    if (!atomic_load(&g->accepting_stopped))
        fds[count++] = (struct pollfd){g->listener, POLLIN, 0};
    pthread_mutex_lock(&g->lock);
    for (unsigned i = 0; i < g->lingering; i++)
        fds[count++] = (struct pollfd){g->linger[i].fd, POLLIN, 0};
    pthread_mutex_unlock(&g->lock);
    double left = until_ms - now_ms();
    poll(fds, count, left > 0 ? (int)left + 1 : 0);
    uint64_t ignored;
    if (fds[0].revents && read(g->wake, &ignored, sizeof ignored) < 0)
        return;
}

static void *gate_main(void *context) {
    gate *g = context;
    double next_tick = now_ms();
    while (!atomic_load(&g->stopping)) {
        wait_for_something(g, next_tick);
        if (!atomic_load(&g->accepting_stopped)) {
            int n = 0;
            bool last = atomic_load(&g->stop_accepting);
            while ((last || n++ < ACCEPT_AT_ONCE) && accept_one(g))
                ;
            if (last)
                atomic_store(&g->accepting_stopped, true);
        }
        read_on(g);
        if (now_ms() >= next_tick) {
            check_deadlines(g);
            g->calls.tick(g->calls.context);
            next_tick = now_ms() + TICK_MS;
        }
    }
    return NULL;
}

static void wake_up(gate *g) {
    uint64_t one = 1;
    ssize_t written = write(g->wake, &one, sizeof one);
    (void)written;
}

sp_status gate_start(gate *g, sp_error *err) {
    if (pthread_create(&g->thread, NULL, gate_main, g) != 0)
        return fail(err, SP_ERR_MEMORY, "cannot start a thread");
    g->started = true;
    return SP_OK;
}

size_t gate_open_connections(gate *g) {
    pthread_mutex_lock(&g->lock);
    size_t open = g->open;
    pthread_mutex_unlock(&g->lock);
    return open;
}

void gate_stop_accepting(gate *g) {
    atomic_store(&g->stop_accepting, true);
    wake_up(g);
    while (g->started && !atomic_load(&g->accepting_stopped))
        usleep(500);
    if (g->listener >= 0)
        close(g->listener);
    g->listener = -1;
}

bool gate_all_idle(gate *g, double quiet_ms) {
    pthread_mutex_lock(&g->lock);
    bool idle =
        now_ms() - g->last_bytes_ms > quiet_ms && (g->handed_over == 0 || now_ms() - g->handed_over_ms > FORGET_MS);
    for (gate_connection *c = g->first; c && idle; c = c->next) {
        uint64_t received = 0, sent;
        if (c->phase == PHASE_IDLE)
            look_at_idle(c);
        traffic(c->fd, &received, &sent);
        /* One that is connected and has not said anything is idle too. */
        idle = c->phase == PHASE_IDLE || c->answered || (c->phase == PHASE_HEADERS && received == c->received_mark);
    }
    pthread_mutex_unlock(&g->lock);
    return idle;
}

void gate_close_idle(gate *g) {
    pthread_mutex_lock(&g->lock);
    for (gate_connection *c = g->first; c; c = c->next)
        if (c->phase == PHASE_IDLE || c->phase == PHASE_HEADERS) {
            c->answered = true;
            shutdown(c->fd, SHUT_RDWR);
        }
    pthread_mutex_unlock(&g->lock);
}

void gate_free(gate *g) {
    if (!g)
        return;
    if (g->started) {
        atomic_store(&g->stopping, true);
        wake_up(g);
        pthread_join(g->thread, NULL);
    }
    for (unsigned i = 0; i < g->lingering; i++)
        close(g->linger[i].fd);
    if (g->listener >= 0)
        close(g->listener);
    if (g->wake >= 0)
        close(g->wake);
    if (g->reserve >= 0)
        close(g->reserve);
    pthread_mutex_destroy(&g->lock);
    free(g);
}
