#include "progress.h"

#include "text.h"

#include <stdio.h>
#include <stdlib.h>

#define SAMPLE_SECONDS 0.5    /* the rate shown is that between now and up to TM_RATE_SAMPLES of these ago */
#define RATE_FROM_SECONDS 1.0 /* a rate over less than this would only confuse */
enum { BAR_CELLS = 14, BAR_MIN_COLUMNS = 60, LABEL_MIN_COLUMNS = 8 };

int tm_columns(const char *s) {
    int n = 0;
    for (; *s; s++)
        n += ((unsigned char)*s & 0xc0) != 0x80;
    return n;
}

void tm_progress_measure(tm_progress *p, double now) {
    int n = p->count;
    if (n == 0 || now - p->samples[(n - 1) % TM_RATE_SAMPLES].at >= SAMPLE_SECONDS) {
        p->samples[n % TM_RATE_SAMPLES].at = now;
        p->samples[n % TM_RATE_SAMPLES].done = p->done;
        n = ++p->count;
    }
    int oldest = n > TM_RATE_SAMPLES ? n % TM_RATE_SAMPLES : 0;
    double span = now - p->samples[oldest].at;
    uint64_t before = p->samples[oldest].done;
    p->rate = span >= RATE_FROM_SECONDS && p->done > before ? (double)(p->done - before) / span : 0;
}

static void clock_text(double s, char out[32]) {
    int t = (int)s;
    if (t >= 3600)
        snprintf(out, 32, "%d:%02d:%02d", t / 3600, t / 60 % 60, t % 60);
    else
        snprintf(out, 32, "%d:%02d", t / 60, t % 60);
}

static void add_progress(tm_buf *b, const tm_progress *p, bool bar) {
    char x[32], y[32];
    if (p->total && bar) {
        int cells = (int)(p->done * BAR_CELLS / p->total);
        tm_buf_puts(b, "  ▕");
        for (int i = 0; i < BAR_CELLS; i++)
            tm_buf_puts(b, i < cells ? "█" : "░");
        tm_buf_puts(b, "▏");
    }
    if (p->bytes)
        tm_buf_printf(b, " %s", tm_human_bytes((double)p->done, x));
    else
        tm_buf_printf(b, " %llu", (unsigned long long)p->done);
    if (p->total) {
        if (p->bytes)
            tm_buf_printf(b, "/%s", tm_human_bytes((double)p->total, y));
        else
            tm_buf_printf(b, "/%llu", (unsigned long long)p->total);
        tm_buf_printf(b, " · %d%%", (int)(100.0 * (double)p->done / (double)p->total));
    }
    if (p->bytes && p->rate > 0) {
        tm_buf_printf(b, " · %s/s", tm_human_bytes(p->rate, x));
        if (p->total > p->done) {
            clock_text((double)(p->total - p->done) / p->rate, y);
            tm_buf_printf(b, " · %s left", y);
        }
    }
}

/* The bytes of the first `columns` columns of a text. */
static int prefix_of(const char *s, int columns) {
    const char *at = s;
    for (; *at; at++)
        if (((unsigned char)*at & 0xc0) != 0x80 && columns-- == 0)
            break;
    return (int)(at - s);
}

static char *row(const tm_progress *p, const char *frame, const char *label, int label_columns, bool bar,
                 const char *detail, double seconds) {
    tm_buf b = {0};
    char clock[32];
    int shown = prefix_of(label, label_columns);
    tm_buf_printf(&b, "  %s %.*s%s", frame, shown, label, label[shown] ? "…" : "");
    if (p->done || p->total)
        add_progress(&b, p, bar);
    else if (detail)
        tm_buf_printf(&b, "  %s", detail);
    clock_text(seconds, clock);
    if (!p->total)
        tm_buf_printf(&b, "  %s", clock);
    return tm_buf_take(&b);
}

char *tm_progress_row(const tm_progress *p, const char *frame, const char *label, const char *detail, double seconds,
                      int columns) {
    int full = tm_columns(label);
    for (int bar = columns >= BAR_MIN_COLUMNS;; bar = 0) {
        char *text = row(p, frame, label, full, bar, detail, seconds);
        int over = tm_columns(text) - (columns - 1);
        if (over <= 0)
            return text;
        free(text);
        int width = full - over - 1; /* and one for the mark that says it was cut */
        if (width >= LABEL_MIN_COLUMNS || !bar)
            return row(p, frame, label, width > LABEL_MIN_COLUMNS ? width : LABEL_MIN_COLUMNS, bar, detail, seconds);
    }
}
