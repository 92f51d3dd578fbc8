/* port.h - a free TCP port. */
#ifndef TM_PORT_H
#define TM_PORT_H

#include "base/error.h"
#include "base/fs.h"

enum { TM_FIRST_PORT = 20000, TM_PORT_TRIES = 100 };

/* Whether the port can be bound on all addresses. */
bool tm_port_free(int port);
/* The first free port from TM_FIRST_PORT up; says aloud when it is not the first. */
int tm_port_choose(int *port, tm_error *e);
/* The port that was asked for, which must be free; the one that tm_port_choose finds when `asked` is 0. */
int tm_port_take(int asked, int *port, tm_error *e);

/* Ports and chips are chosen under this lock, which is held until they are taken. */
int tm_choice_lock(tm_lock *lock, tm_error *e);

#endif
