/*
 * text.h - strings that grow.
 *
 * The program stops with a message when memory runs out: there is nothing useful it could do then,
 * and what it had on disk is safe at every moment.
 */
#ifndef TM_TEXT_H
#define TM_TEXT_H

#include <stdbool.h>
#include <stddef.h>

void *tm_alloc(size_t n); /* zeroed */
void *tm_realloc(void *p, size_t count, size_t size);
char *tm_strdup(const char *s);
char *tm_strndup(const char *s, size_t n);
char *tm_fmt(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Bytes with their length; `data` is always terminated by a zero that is not counted. */
typedef struct tm_buf {
    char *data;
    size_t len, cap;
} tm_buf;

void tm_buf_add(tm_buf *b, const void *bytes, size_t n);
void tm_buf_puts(tm_buf *b, const char *s);
void tm_buf_printf(tm_buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void tm_buf_free(tm_buf *b);
/* The text, which the caller frees; never NULL. Leaves the buffer empty. */
char *tm_buf_take(tm_buf *b);

/* A list of strings that it owns. `items[count]` is NULL, so that it can be an argv. */
typedef struct tm_list {
    char **items;
    size_t count, cap;
} tm_list;

void tm_list_add(tm_list *l, const char *s);
void tm_list_take(tm_list *l, char *s); /* takes ownership of s */
void tm_list_addf(tm_list *l, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
bool tm_list_has(const tm_list *l, const char *s);
void tm_list_sort(tm_list *l); /* byte order */
void tm_list_free(tm_list *l);

bool tm_starts_with(const char *s, const char *prefix);
bool tm_ends_with(const char *s, const char *suffix);

/* `s` as a word for a POSIX shell: as it is when that is safe, else in single quotes. */
void tm_buf_shell_word(tm_buf *b, const char *s);

/* 2.1 GB, 412.0 MB, 3.0 kB, 12 B: decimal units, as the tool has always printed them. */
const char *tm_human_bytes(double n, char out[32]);
/* 420ms, 5.0s, 3m 34s, 1h 02m */
const char *tm_human_seconds(double s, char out[32]);
/* A clock that never goes back. */
double tm_seconds(void);
/* Now in UTC: 2026-09-13T15:21:44+00:00. */
const char *tm_now_iso(char out[32]);
/* A moment as the above; -1 when the text is not one (2026-09-13T15:21:44[.frac](Z|+00:00)). */
double tm_parse_iso(const char *s);

#endif
