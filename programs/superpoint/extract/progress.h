/* How far the work is, on standard error: a bar on a terminal, else a line now and then. */
#ifndef SUPERPOINT_EXTRACT_PROGRESS_H
#define SUPERPOINT_EXTRACT_PROGRESS_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct progress progress;

/* `before` of the `total` were done by an earlier run. Quiet: only what is said. NULL: no memory. */
progress *progress_start(const char *program, const char *unit, size_t total, size_t before, bool quiet);

/* Any thread. */
void progress_add(progress *p, size_t done, size_t failed);

/* Print a line of its own; the bar moves down. Any thread. */
void progress_say(progress *p, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* End the bar. The seconds that it took. */
double progress_stop(progress *p);

#endif
