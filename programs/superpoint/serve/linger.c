#include "linger.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/clock.h"

/* Reads of 16 KiB on one socket before it is another's turn. */
enum { READS_AT_ONCE = 16 };

bool linger_add(linger_set *set, int fd, double until_ms) {
    int copy = set->count < LINGER_MOST ? fcntl(fd, F_DUPFD_CLOEXEC, 0) : -1;
    if (copy < 0)
        return false;
    shutdown(copy, SHUT_WR);
    set->sockets[set->count++] = (lingering){copy, until_ms};
    return true;
}

unsigned linger_poll(const linger_set *set, struct pollfd *out) {
    for (unsigned i = 0; i < set->count; i++)
        out[i] = (struct pollfd){set->sockets[i].fd, POLLIN, 0};
    return set->count;
}

/* True when this one is over. */
static bool read_on(const lingering *l, double now) {
    char waste[16384];
    for (int i = 0; i < READS_AT_ONCE; i++) {
        ssize_t n = recv(l->fd, waste, sizeof waste, MSG_DONTWAIT);
        if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
            return true;
        if (n < 0)
            break;
    }
    return now > l->until_ms;
}

void linger_read_on(linger_set *set) {
    double now = now_ms();
    for (unsigned i = 0; i < set->count;) {
        if (read_on(&set->sockets[i], now)) {
            close(set->sockets[i].fd);
            set->sockets[i] = set->sockets[--set->count];
        } else {
            i++;
        }
    }
}

void linger_close(linger_set *set) {
    for (unsigned i = 0; i < set->count; i++)
        close(set->sockets[i].fd);
    set->count = 0;
}
