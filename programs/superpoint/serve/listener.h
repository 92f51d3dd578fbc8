/* The listening socket. */
#ifndef SP_SERVE_LISTENER_H
#define SP_SERVE_LISTENER_H

#include "config.h"

/*
 * Listen where the configuration says: exactly there when it names a port, else at the default port or
 * the next free one; *port says which.
 */
sp_status listener_open(const config *c, int *fd, int *port, sp_error *err);

#endif
