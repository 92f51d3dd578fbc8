/*
 * startup.h - servers that come back after a restart of the machine (`serve --restart`).
 *
 * Docker does it for its containers. For native servers a systemd unit of the user runs `tt-model resume`
 * when the machine starts: <XDG_CONFIG_HOME or ~/.config>/systemd/user/tt-model-resume.service. It is there
 * as long as a native server is recorded that wants it.
 */
#ifndef TM_STARTUP_H
#define TM_STARTUP_H

#include "base/error.h"

#include <stdbool.h>

/* Write the unit, or remove it, as the records say. *wanted: some server wants it. */
int tm_startup_update(bool *wanted, tm_error *e);

char *tm_startup_unit(void); /* the unit's path; fresh */

/* What the user still has to do, or NULL when the unit will run. Fresh. */
char *tm_startup_advice(void);

#endif
