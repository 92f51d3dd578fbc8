#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/fail.h"
#include "gate_inside.h"
#include "listener.h"
#include "refusal.h"

enum { TICK_MS = 100, FORGET_MS = 5000, ACCEPT_AT_ONCE = 64 };

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
    sp_status status = listener_open(c, &g->listener, port, err);
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

/* How little is lost with a connection: 0 is the least, RANKS says that it stays. */
enum { RANKS = 3 };

static int rank_of(const gate_connection *c) {
    if (c->answered)
        return RANKS;
    if (c->over_since_ms > 0)
        return 0; /* its peer has ended in the middle: nothing can come of it */
    return c->phase == PHASE_IDLE ? 1 : c->phase == PHASE_HEADERS ? 2 : RANKS;
}

/* Room for one more, in place of the one with the least to lose, and of those the one nearest to its deadline. */
static bool make_room(gate *g) {
    gate_connection *victim = NULL;
    pthread_mutex_lock(&g->lock);
    if (g->handed_over && now_ms() - g->handed_over_ms > FORGET_MS)
        g->handed_over = 0; /* some did not get there, for want of memory */
    bool room = (double)(g->open + g->handed_over) < g->config->limits.max_connections;
    if (!room) {
        int least = RANKS;
        for (gate_connection *c = g->first; c; c = c->next) {
            int rank = rank_of(c);
            if (rank < least || (rank < RANKS && rank == least && c->deadline_ms < victim->deadline_ms)) {
                victim = c;
                least = rank;
            }
        }
        if (victim) {
            /* One that is idle expects no answer. */
            gate_end(victim, 503, victim->phase == PHASE_HEADERS ? "too many connections" : NULL);
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
        refusal_send(fd, NULL, 503, "out of file descriptors");
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
        refusal_send(fd, NULL, 503, "too many connections");
        close(fd);
        atomic_fetch_add(&g->stats->connections_refused, 1);
        return true;
    }
    atomic_fetch_add(&g->stats->connections, 1);
    g->calls.add(g->calls.context, fd, (struct sockaddr *)&address, size);
    return true;
}

void gate_wake(gate *g) {
    uint64_t one = 1;
    ssize_t written = write(g->wake, &one, sizeof one);
    (void)written;
}

/* ---- the thread -------------------------------------------------------------------------------- */

static void look_at_all(gate *g) {
    pthread_mutex_lock(&g->lock);
    double now = now_ms();
    for (gate_connection *c = g->first; c; c = c->next)
        gate_look_at(c, now);
    pthread_mutex_unlock(&g->lock);
}

static void wait_for_something(gate *g, double until_ms) {
    struct pollfd fds[2 + LINGER_MOST];
    nfds_t count = 0;
    fds[count++] = (struct pollfd){g->wake, POLLIN, 0};
    if (!atomic_load(&g->accepting_stopped))
        fds[count++] = (struct pollfd){g->listener, POLLIN, 0};
    pthread_mutex_lock(&g->lock);
    count += linger_poll(&g->lingering, fds + count);
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
        pthread_mutex_lock(&g->lock);
        linger_read_on(&g->lingering);
        pthread_mutex_unlock(&g->lock);
        if (now_ms() >= next_tick) {
            look_at_all(g);
            g->calls.tick(g->calls.context);
            next_tick = now_ms() + TICK_MS;
        }
    }
    return NULL;
}

sp_status gate_start(gate *g, sp_error *err) {
    if (pthread_create(&g->thread, NULL, gate_main, g) != 0)
        return fail(err, SP_ERR_MEMORY, "cannot start a thread");
    pthread_setname_np(g->thread, "gate");
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
    gate_wake(g);
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
    for (gate_connection *c = g->first; c && idle; c = c->next)
        idle = gate_is_idle(c);
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
        gate_wake(g);
        pthread_join(g->thread, NULL);
    }
    linger_close(&g->lingering);
    if (g->listener >= 0)
        close(g->listener);
    if (g->wake >= 0)
        close(g->wake);
    if (g->reserve >= 0)
        close(g->reserve);
    pthread_mutex_destroy(&g->lock);
    free(g);
}
