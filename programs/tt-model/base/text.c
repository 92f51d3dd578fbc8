#include "text.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static void out_of_memory(void) {
    fputs("tt-model: out of memory\n", stderr);
    exit(1);
}

void *tm_alloc(size_t n) {
    void *p = calloc(1, n ? n : 1);
    if (!p)
        out_of_memory();
    return p;
}

void *tm_realloc(void *p, size_t count, size_t size) {
    if (size && count > SIZE_MAX / size)
        out_of_memory();
    size_t n = count * size;
    void *q = realloc(p, n ? n : 1);
    if (!q)
        out_of_memory();
    return q;
}

char *tm_strndup(const char *s, size_t n) {
    size_t len = strnlen(s, n);
    char *p = tm_alloc(len + 1);
    memcpy(p, s, len);
    return p;
}

char *tm_strdup(const char *s) {
    return tm_strndup(s, SIZE_MAX - 1);
}

static char *format(const char *fmt, va_list ap) {
    char *out = NULL;
    if (vasprintf(&out, fmt, ap) < 0)
        out_of_memory();
    return out;
}

char *tm_fmt(const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    char *out = format(fmt, ap);
    va_end(ap);
    return out;
}

void tm_buf_add(tm_buf *b, const void *bytes, size_t n) {
    if (n > SIZE_MAX - b->len - 1)
        out_of_memory();
    if (b->len + n + 1 > b->cap) {
        size_t cap = b->cap ? b->cap : 64;
        while (cap < b->len + n + 1)
            cap = cap > SIZE_MAX / 2 ? SIZE_MAX : cap * 2;
        b->data = tm_realloc(b->data, cap, 1);
        b->cap = cap;
    }
    if (n)
        memcpy(b->data + b->len, bytes, n);
    b->len += n;
    b->data[b->len] = '\0';
}

void tm_buf_puts(tm_buf *b, const char *s) {
    tm_buf_add(b, s, strlen(s));
}

void tm_buf_printf(tm_buf *b, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    char *s = format(fmt, ap);
    va_end(ap);
    tm_buf_puts(b, s);
    free(s);
}

void tm_buf_free(tm_buf *b) {
    free(b->data);
    *b = (tm_buf){0};
}

char *tm_buf_take(tm_buf *b) {
    char *out = b->data ? b->data : tm_strdup("");
    *b = (tm_buf){0};
    return out;
}

void tm_list_take(tm_list *l, char *s) {
    if (l->count + 2 > l->cap) {
        l->cap = l->cap ? l->cap * 2 : 8;
        l->items = tm_realloc(l->items, l->cap, sizeof *l->items);
    }
    l->items[l->count++] = s;
    l->items[l->count] = NULL;
}

void tm_list_add(tm_list *l, const char *s) {
    tm_list_take(l, tm_strdup(s));
}

void tm_list_addf(tm_list *l, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    tm_list_take(l, format(fmt, ap));
    va_end(ap);
}

bool tm_list_has(const tm_list *l, const char *s) {
    for (size_t i = 0; i < l->count; i++)
        if (!strcmp(l->items[i], s))
            return true;
    return false;
}

static int by_bytes(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

void tm_list_sort(tm_list *l) {
    if (l->count)
        qsort(l->items, l->count, sizeof *l->items, by_bytes);
}

void tm_list_free(tm_list *l) {
    for (size_t i = 0; i < l->count; i++)
        free(l->items[i]);
    free(l->items);
    *l = (tm_list){0};
}

bool tm_starts_with(const char *s, const char *prefix) {
    return !strncmp(s, prefix, strlen(prefix));
}

bool tm_ends_with(const char *s, const char *suffix) {
    size_t n = strlen(s), m = strlen(suffix);
    return n >= m && !strcmp(s + n - m, suffix);
}

void tm_buf_shell_word(tm_buf *b, const char *s) {
    static const char safe[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789@%+=:,./-_";
    if (*s && s[strspn(s, safe)] == '\0') {
        tm_buf_puts(b, s);
        return;
    }
    tm_buf_puts(b, "'");
    for (; *s; s++) {
        if (*s == '\'')
            tm_buf_puts(b, "'\"'\"'");
        else
            tm_buf_add(b, s, 1);
    }
    tm_buf_puts(b, "'");
}

const char *tm_human_bytes(double n, char out[32]) {
    static const char *const units[] = {"B", "kB", "MB", "GB", "TB", "PB"};
    size_t u = 0;
    while (n >= 999.95 && u + 1 < sizeof units / sizeof *units) {
        n /= 1000;
        u++;
    }
    snprintf(out, 32, u ? "%.1f %s" : "%.0f %s", n, units[u]);
    return out;
}

const char *tm_human_seconds(double s, char out[32]) {
    if (s < 1)
        snprintf(out, 32, "%.0fms", s * 1e3);
    else if (s < 60)
        snprintf(out, 32, "%.1fs", s);
    else if (s < 3600)
        snprintf(out, 32, "%dm %02ds", (int)s / 60, (int)s % 60);
    else
        snprintf(out, 32, "%dh %02dm", (int)(s / 3600), (int)s / 60 % 60);
    return out;
}

double tm_seconds(void) {
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

const char *tm_now_iso(char out[32]) {
    time_t now = time(NULL);
    struct tm tm;
    gmtime_r(&now, &tm);
    strftime(out, 32, "%Y-%m-%dT%H:%M:%S+00:00", &tm);
    return out;
}

double tm_parse_iso(const char *s) {
    struct tm tm = {0};
    const char *rest = strptime(s, "%Y-%m-%dT%H:%M:%S", &tm);
    if (!rest)
        return -1;
    double fraction = 0;
    if (*rest == '.') {
        char *end;
        fraction = strtod(rest, &end);
        rest = end;
    }
    long offset = 0;
    if (*rest == '+' || *rest == '-') {
        int h, m;
        if (sscanf(rest + 1, "%2d:%2d", &h, &m) != 2)
            return -1;
        offset = (h * 3600L + m * 60L) * (*rest == '+' ? 1 : -1);
    } else if (*rest && strcmp(rest, "Z") != 0) {
        return -1;
    }
    return (double)timegm(&tm) - (double)offset + fraction;
}
