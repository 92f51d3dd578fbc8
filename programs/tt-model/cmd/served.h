/* served.h - what is served on this machine, for ps and for whoever asks such a server. */
#ifndef TM_SERVED_H
#define TM_SERVED_H

#include "base/error.h"
#include "base/json.h"

typedef struct tm_served {
    json_t *rows; /* as `tt model ps --json` has them; the caller's, whatever is returned */
    int rebooted; /* native servers that ended with the machine, among the rows or not */
} tm_served;

/* `all`: those that have ended too. `probe`: ask each for its model and health. */
int tm_served_list(bool all, bool probe, tm_served *out, tm_error *e);

#endif
