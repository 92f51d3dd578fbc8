/*
 * ui.h - what the person at the terminal, or the program that started us, is told while we work.
 *
 * Data goes to stdout by the commands themselves. All that is said here goes to stderr, except the
 * progress events (TT_MODEL_PROGRESS=ndjson): those are JSON lines on stdout, and replace the rows.
 *
 * Steps do not nest: starting one ends the one before it. On a terminal the running step is one row
 * that is redrawn in place; elsewhere a row is printed when the step ends.
 */
#ifndef TM_UI_H
#define TM_UI_H

#include "error.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct tm_ui_options {
    bool verbose;  /* print every row as it happens, without redrawing */
    bool no_color; /* no colour, no bold */
    bool json;     /* the command prints one JSON document: errors are JSON on stdout, notes stay on stderr */
} tm_ui_options;

/* Looks at the terminal and the environment (NO_COLOR, COLUMNS, TT_MODEL_PROGRESS), and takes over
 * SIGINT and SIGTERM so that tm_interrupted() tells of them. */
void tm_ui_init(const tm_ui_options *options);
void tm_ui_set_json(bool json);
bool tm_ui_json(void);
bool tm_ui_events(void); /* TT_MODEL_PROGRESS=ndjson */
bool tm_ui_color(int fd);

/* True once Ctrl-C was pressed; a second one ends the program. */
bool tm_interrupted(void);
bool tm_interrupt_asked(void *unused); /* the same as a callback */

/* `key` names the step for programs ("host", "image", "weights", "container" are known to `tt`). */
void tm_step(const char *key, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* How far it is. total 0: unknown. Cheap enough to call often. */
void tm_step_progress(uint64_t done, uint64_t total, bool bytes);
void tm_step_detail(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* Let the spinner turn while waiting. */
void tm_step_tick(void);
/* End it. `fmt` NULL: without a detail. */
void tm_step_done(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void tm_step_skip(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void tm_step_fail(void);

/* One line: glyph ("✓", "!", "→", "•", "○", "↻") and text. */
void tm_note(const char *glyph, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Text as it is, on stderr. */
void tm_say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* {"event":"container"} for the program that watches us. */
void tm_event_container(const char *id, const char *endpoint);

/* The error, as text on stderr, as an event, or as a JSON document. `title` says what was being done
 * ("serve owner/name"). `evidence` (may be NULL) is the tail of a log. */
void tm_ui_error(const char *title, const tm_error *e, const char *evidence);

/* A box of `rows` pairs (label, text) with a title, on stderr. */
void tm_ui_card(const char *title, const char *rows[][2], int count);

/* Ask a yes/no question on the terminal; false when there is none. */
bool tm_ui_confirm(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#endif
