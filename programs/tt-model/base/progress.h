/* progress.h - how far a step is, how fast, and the one row of a terminal that shows it. */
#ifndef TM_PROGRESS_H
#define TM_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

enum { TM_RATE_SAMPLES = 10 };

typedef struct tm_progress {
    uint64_t done, total; /* total 0: unknown */
    bool bytes;
    double rate; /* a second, over the last seconds; 0: not known yet */
    struct {
        double at;
        uint64_t done;
    } samples[TM_RATE_SAMPLES]; /* a ring */
    int count;
} tm_progress;

void tm_progress_measure(tm_progress *p, double now);

/* Columns that text takes: code points, since all that is drawn here is one column wide. */
int tm_columns(const char *s);

/* The row: with a shorter label, then without its bar, when it is wider than `columns`. Fresh. */
char *tm_progress_row(const tm_progress *p, const char *frame, const char *label, const char *detail, double seconds,
                      int columns);

#endif
