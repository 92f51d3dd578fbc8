#include "listener.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/fail.h"

enum { BACKLOG = 1024 };

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

sp_status listener_open(const config *c, int *fd, int *port, sp_error *err) {
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
