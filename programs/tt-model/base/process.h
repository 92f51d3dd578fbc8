/* process.h - running another program. */
#ifndef TM_PROCESS_H
#define TM_PROCESS_H

#include "error.h"
#include "text.h"

/* Run argv (looked up on PATH) in `dir` (NULL: here), with what it prints on stdout put into `out` and
 * on stderr into `err` (each may be NULL: thrown away). `*status` is its exit code, 128 + n when
 * signal n ended it. TM_TOOL_MISSING when there is no such program. */
int tm_run(char *const argv[], const char *dir, tm_buf *out, tm_buf *err, int *status, tm_error *e);

/* The path of a program on PATH, or NULL. */
char *tm_find_program(const char *name);

#endif
