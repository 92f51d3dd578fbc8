#include "port.h"

#include "base/paths.h"
#include "base/ui.h"

#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static bool can_bind(int family, int port) {
    int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;
    if (fd < 0)
        return true; /* a machine without that family */
    /* A port whose last connections are still fading away is free; one that is listened on is not. */
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
    } sa;
    memset(&sa, 0, sizeof sa);
    socklen_t len = sizeof sa.v4;
    if (family == AF_INET6) {
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof one);
        sa.v6.sin6_family = AF_INET6;
        sa.v6.sin6_port = htons((uint16_t)port);
        len = sizeof sa.v6;
    } else {
        sa.v4.sin_family = AF_INET;
        sa.v4.sin_port = htons((uint16_t)port);
    }
    bool ok = bind(fd, &sa.any, len) == 0 && listen(fd, 1) == 0;
    close(fd);
    return ok;
}

bool tm_port_free(int port) {
    return can_bind(AF_INET, port) && can_bind(AF_INET6, port);
}

int tm_port_choose(int *port, tm_error *e) {
    for (int p = TM_FIRST_PORT; p < TM_FIRST_PORT + TM_PORT_TRIES; p++) {
        if (!tm_port_free(p))
            continue;
        if (p != TM_FIRST_PORT)
            tm_note("•", "port %d is in use; serving on %d instead", TM_FIRST_PORT, p);
        *port = p;
        return TM_OK;
    }
    tm_fail(e, TM_ERROR, "no port of %d to %d is free", TM_FIRST_PORT, TM_FIRST_PORT + TM_PORT_TRIES - 1);
    tm_next(e, "Give one that is: --port N");
    return TM_ERROR;
}

int tm_port_take(int asked, int *port, tm_error *e) {
    if (!asked)
        return tm_port_choose(port, e);
    *port = asked;
    if (tm_port_free(asked))
        return TM_OK;
    tm_fail(e, TM_ERROR, "port %d is taken", asked);
    tm_next(e, "Leave --port out, or give one that is free.");
    return TM_ERROR;
}

int tm_choice_lock(tm_lock *lock, tm_error *e) {
    char *path = tm_root_file("locks/serve.lock");
    int rc = tm_lock_file(path, tm_interrupt_asked, NULL, NULL, lock, e);
    free(path);
    return rc;
}
