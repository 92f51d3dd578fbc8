/* libmicrohttpd: started with our callbacks, and told of new connections by the gate. */
#ifndef SP_SERVE_DAEMON_H
#define SP_SERVE_DAEMON_H

#include "server.h"

sp_status daemon_start(server *s, sp_error *err);

/* Hand over a socket, which the library closes. */
void daemon_add(server *s, int fd, const struct sockaddr *address, socklen_t size);

/* No request comes in from here on. */
void daemon_stop(server *s);

#endif
