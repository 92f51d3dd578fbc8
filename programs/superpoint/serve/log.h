/*
 * Lines for a file, written by a thread of their own: a full disk or a reader that sleeps never
 * holds up a request. Lines that find no room are counted and dropped.
 */
#ifndef SP_SERVE_LOG_H
#define SP_SERVE_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "superpoint.h"

typedef struct line_log line_log;

/* "-" is standard output, "off" nothing at all (*log is then NULL, which all calls take). */
sp_status log_open(const char *path, line_log **log, sp_error *err);

/* Append one line, its newline included. */
void log_write(line_log *log, const char *line, size_t size);

/* Lines dropped so far, for want of room or since writing failed. */
uint64_t log_dropped(line_log *log);

/* Write what is there, waiting no longer than a second for a reader that sleeps. */
void log_close(line_log *log);

/* A line of news for people on standard error: "INFO:     …". */
void log_news(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
