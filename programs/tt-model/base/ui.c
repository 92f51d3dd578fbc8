#include "ui.h"

#include "json.h"
#include "text.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#define FRAME_SECONDS 0.1      /* between two drawings of the running row */
#define EVENT_SECONDS 0.5      /* between two progress events */
#define TIMED_FROM_SECONDS 0.8 /* steps that took less say nothing about time */
#define SAMPLE_SECONDS 0.5     /* the rate shown is that between now and up to RATE_SAMPLES of these ago */
#define RATE_FROM_SECONDS 1.0  /* a rate over less than this would only confuse */
enum { RATE_SAMPLES = 10, BAR_CELLS = 14, BAR_MIN_COLUMNS = 60, CARD_COLUMNS = 78 };

static struct {
    tm_ui_options opt;
    bool tty, events, color_out, color_err;
    int columns;
    /* the running step */
    char *key, *label, *detail;
    double started, drawn, told;
    uint64_t done, total;
    bool bytes, row_shown;
    int frame;
    /* for the rate: a ring of moments */
    struct {
        double at;
        uint64_t done;
    } samples[RATE_SAMPLES];
    int sample_count;
    double rate;
} ui;

static volatile sig_atomic_t interrupts;

static double now(void) {
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

static void on_signal(int sig) {
    if (interrupts++ && sig == SIGINT)
        _exit(TM_INTERRUPTED);
}

bool tm_interrupted(void) {
    return interrupts != 0;
}

bool tm_interrupt_asked(void *unused) {
    (void)unused;
    return interrupts != 0;
}

void tm_ui_init(const tm_ui_options *options) {
    ui.opt = *options;
    const char *progress = getenv("TT_MODEL_PROGRESS"), *columns = getenv("COLUMNS"), *term = getenv("TERM");
    const char *no_color = getenv("NO_COLOR");
    ui.events = progress && !strcmp(progress, "ndjson");
    ui.tty = isatty(2) && !ui.opt.verbose && !ui.events && !(term && !strcmp(term, "dumb"));
    bool color = !ui.opt.no_color && !(no_color && *no_color) && !(term && !strcmp(term, "dumb"));
    ui.color_err = color && isatty(2);
    ui.color_out = color && isatty(1);
    if (ui.opt.no_color)
        setenv("NO_COLOR", "1", 1);
    struct winsize ws;
    ui.columns = columns ? atoi(columns) : ioctl(2, TIOCGWINSZ, &ws) == 0 ? ws.ws_col : 0;
    if (ui.columns <= 0)
        ui.columns = 80;
    struct sigaction sa = {.sa_handler = on_signal};
    sigaction(SIGINT, &sa, NULL);
    sigaction(SIGTERM, &sa, NULL);
    signal(SIGPIPE, SIG_IGN);
}

void tm_ui_set_json(bool json) {
    ui.opt.json = json;
}

bool tm_ui_json(void) {
    return ui.opt.json;
}

bool tm_ui_events(void) {
    return ui.events;
}

bool tm_ui_color(int fd) {
    return fd == 1 ? ui.color_out : ui.color_err;
}

static const char *paint(const char *code) {
    return ui.color_err ? code : "";
}

static const char *glyph_color(const char *glyph) {
    if (!strcmp(glyph, "✓"))
        return paint("\x1b[32m");
    if (!strcmp(glyph, "✗"))
        return paint("\x1b[31m");
    if (!strcmp(glyph, "!"))
        return paint("\x1b[33m");
    return paint("\x1b[2m");
}

static void event(json_t *object) {
    char *text = json_dumps(object, JSON_COMPACT);
    if (text) {
        puts(text);
        fflush(stdout);
    }
    free(text);
    json_decref(object);
}

static void erase_row(void) {
    if (ui.row_shown)
        fputs("\r\x1b[2K", stderr);
    ui.row_shown = false;
}

/* Columns that text takes: code points, since all that is drawn here is one column wide. */
static int columns_of(const char *s) {
    int n = 0;
    for (; *s; s++)
        n += ((unsigned char)*s & 0xc0) != 0x80;
    return n;
}

static void clock_text(double s, char out[32]) {
    int t = (int)s;
    if (t >= 3600)
        snprintf(out, 32, "%d:%02d:%02d", t / 3600, t / 60 % 60, t % 60);
    else
        snprintf(out, 32, "%d:%02d", t / 60, t % 60);
}

static void measure_rate(double t) {
    int n = ui.sample_count;
    if (n == 0 || t - ui.samples[(n - 1) % RATE_SAMPLES].at >= SAMPLE_SECONDS) {
        ui.samples[n % RATE_SAMPLES].at = t;
        ui.samples[n % RATE_SAMPLES].done = ui.done;
        n = ++ui.sample_count;
    }
    int oldest = n > RATE_SAMPLES ? n % RATE_SAMPLES : 0;
    double span = t - ui.samples[oldest].at;
    uint64_t before = ui.samples[oldest].done;
    ui.rate = span >= RATE_FROM_SECONDS && ui.done > before ? (double)(ui.done - before) / span : 0;
}

static void draw_progress(tm_buf *b, bool bar) {
    char x[32], y[32];
    if (ui.total && bar) {
        int cells = (int)(ui.done * BAR_CELLS / ui.total);
        tm_buf_puts(b, "  ▕");
        for (int i = 0; i < BAR_CELLS; i++)
            tm_buf_puts(b, i < cells ? "█" : "░");
        tm_buf_puts(b, "▏");
    }
    if (ui.bytes)
        tm_buf_printf(b, " %s", tm_human_bytes((double)ui.done, x));
    else
        tm_buf_printf(b, " %llu", (unsigned long long)ui.done);
    if (ui.total) {
        if (ui.bytes)
            tm_buf_printf(b, "/%s", tm_human_bytes((double)ui.total, y));
        else
            tm_buf_printf(b, "/%llu", (unsigned long long)ui.total);
        tm_buf_printf(b, " · %d%%", (int)(100.0 * (double)ui.done / (double)ui.total));
    }
    if (ui.bytes && ui.rate > 0) {
        tm_buf_printf(b, " · %s/s", tm_human_bytes(ui.rate, x));
        if (ui.total > ui.done) {
            clock_text((double)(ui.total - ui.done) / ui.rate, y);
            tm_buf_printf(b, " · %s left", y);
        }
    }
}

/* The first `columns` columns of a text. */
static int prefix_of(const char *s, int columns) {
    const char *at = s;
    for (; *at; at++)
        if (((unsigned char)*at & 0xc0) != 0x80 && columns-- == 0)
            break;
    return (int)(at - s);
}

/* The running step in one row of the terminal: without the bar, then with a shorter label, when it is long. */
static char *make_row(const char *frame, double seconds) {
    char clock[32];
    for (int bar = ui.columns >= BAR_MIN_COLUMNS, label = columns_of(ui.label);;) {
        tm_buf b = {0};
        int shown = prefix_of(ui.label, label);
        tm_buf_printf(&b, "  %s %.*s%s", frame, shown, ui.label, ui.label[shown] ? "…" : "");
        if (ui.done || ui.total)
            draw_progress(&b, bar);
        else if (ui.detail)
            tm_buf_printf(&b, "  %s", ui.detail);
        clock_text(seconds, clock);
        if (!ui.total)
            tm_buf_printf(&b, "  %s", clock);
        int over = columns_of(b.data) - (ui.columns - 1);
        if (over <= 0 || (!bar && label <= 8))
            return tm_buf_take(&b);
        if (bar)
            bar = 0;
        else
            label = label - over - 1 > 8 ? label - over - 1 : 8;
        tm_buf_free(&b);
    }
}

static void draw(bool force) {
    static const char *const frames[] = {"⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"};
    double t = now();
    if (!ui.key)
        return;
    measure_rate(t);
    if (ui.events) {
        if (ui.total && (force || t - ui.told >= EVENT_SECONDS)) {
            ui.told = t;
            event(json_pack("{s:s, s:I, s:I, s:s, s:s}", "event", "progress", "done", (json_int_t)ui.done, "total",
                            (json_int_t)ui.total, "unit", ui.bytes ? "bytes" : "count", "key", ui.key));
        }
        return;
    }
    if (!ui.tty || (!force && t - ui.drawn < FRAME_SECONDS))
        return;
    ui.drawn = t;
    char *text = make_row(frames[ui.frame++ % 10], t - ui.started);
    fprintf(stderr, "\r\x1b[2K%s", text);
    fflush(stderr);
    ui.row_shown = true;
    free(text);
}

static void forget_step(void) {
    free(ui.key);
    free(ui.label);
    free(ui.detail);
    ui.key = ui.label = ui.detail = NULL;
    ui.done = ui.total = 0;
    ui.rate = 0;
    ui.sample_count = 0;
}

static void end_step(const char *glyph, const char *state, const char *detail) {
    if (!ui.key)
        return;
    double took = now() - ui.started;
    erase_row();
    if (ui.events) {
        json_t *ev =
            json_pack("{s:s, s:s, s:s, s:s}", "event", "step", "key", ui.key, "state", state, "label", ui.label);
        if (detail && *detail)
            json_object_set_new(ev, "detail", json_string(detail));
        event(ev);
    } else {
        char t[32];
        fprintf(stderr, "  %s%s%s %s", glyph_color(glyph), glyph, paint("\x1b[0m"), ui.label);
        if (detail && *detail)
            fprintf(stderr, "  %s", detail);
        if (took >= TIMED_FROM_SECONDS)
            fprintf(stderr, "  %s%s%s", paint("\x1b[2m"), tm_human_seconds(took, t), paint("\x1b[0m"));
        fputc('\n', stderr);
    }
    forget_step();
}

#define FORMAT(text)                                                                                                   \
    char *text = NULL;                                                                                                 \
    if (fmt) {                                                                                                         \
        va_list ap;                                                                                                    \
        va_start(ap, fmt);                                                                                             \
        if (vasprintf(&text, fmt, ap) < 0)                                                                             \
            text = NULL;                                                                                               \
        va_end(ap);                                                                                                    \
    }

void tm_step(const char *key, const char *fmt, ...) {
    FORMAT(label)
    end_step("✓", "done", NULL);
    ui.key = tm_strdup(key);
    ui.label = label ? label : tm_strdup(key);
    ui.started = now();
    if (ui.events)
        event(json_pack("{s:s, s:s, s:s, s:s}", "event", "step", "key", key, "state", "start", "label", ui.label));
    else if (ui.opt.verbose)
        fprintf(stderr, "  %s…\n", ui.label);
    else
        draw(true);
}

void tm_step_progress(uint64_t done, uint64_t total, bool bytes) {
    ui.done = done;
    ui.total = total;
    ui.bytes = bytes;
    draw(false);
}

void tm_step_detail(const char *fmt, ...) {
    FORMAT(text)
    free(ui.detail);
    ui.detail = text;
    draw(false);
}

void tm_step_tick(void) {
    draw(false);
}

void tm_step_done(const char *fmt, ...) {
    FORMAT(text)
    if (ui.key && ui.total && ui.events)
        draw(true);
    end_step("✓", "done", text);
    free(text);
}

void tm_step_skip(const char *fmt, ...) {
    FORMAT(text)
    end_step("○", "done", text);
    free(text);
}

void tm_step_fail(void) {
    end_step("✗", "fail", NULL);
}

void tm_note(const char *glyph, const char *fmt, ...) {
    FORMAT(text)
    erase_row();
    fprintf(stderr, "%s%s%s %s\n", glyph_color(glyph), glyph, paint("\x1b[0m"), text ? text : "");
    free(text);
}

void tm_say(const char *fmt, ...) {
    FORMAT(text)
    erase_row();
    fprintf(stderr, "%s\n", text ? text : "");
    free(text);
}

void tm_event_container(const char *id, const char *endpoint) {
    if (ui.events)
        event(json_pack("{s:s, s:s, s:s}", "event", "container", "id", id, "endpoint", endpoint));
}

static json_t *lines_of(const char *text) {
    json_t *list = json_array();
    for (const char *s = text; s && *s;) {
        size_t n = strcspn(s, "\n");
        if (n)
            json_array_append_new(list, json_stringn_nocheck(s, n));
        s += n + (s[n] == '\n');
    }
    return list;
}

static void error_text(const char *title, const tm_error *e, const char *evidence) {
    fprintf(stderr, "%s✗ %s%s%s\n", paint("\x1b[31m"), title ? title : "", title ? " — " : "", e->what);
    fputs(paint("\x1b[0m"), stderr);
    if (*e->why)
        fprintf(stderr, "  %s\n", e->why);
    if (evidence && *evidence) {
        fprintf(stderr, "  Log:\n");
        for (const char *s = evidence; *s;) {
            int n = (int)strcspn(s, "\n");
            fprintf(stderr, "    %.*s\n", n, s);
            s += n + (s[n] == '\n');
        }
    }
    for (const char *s = e->next; *s;) {
        int n = (int)strcspn(s, "\n");
        fprintf(stderr, "%s %.*s\n", s == e->next ? "  Try:" : "      ", n, s);
        s += n + (s[n] == '\n');
    }
}

void tm_ui_error(const char *title, const tm_error *e, const char *evidence) {
    if (ui.key)
        tm_step_fail();
    erase_row();
    if (ui.events)
        event(json_pack("{s:s, s:s, s:s, s:o, s:o, s:i}", "event", "error", "cause", e->what, "detail", e->why,
                        "evidence", lines_of(evidence), "actions", lines_of(e->next), "exit_code", e->code));
    if (ui.opt.json && !ui.events) {
        json_t *doc = json_pack("{s:{s:s, s:s, s:s, s:i, s:s}}", "error", "what", e->what, "why", e->why, "next_step",
                                e->next, "exit_code", e->code, "code", tm_code_name(e->code));
        if (evidence && *evidence)
            json_object_set_new(json_object_get(doc, "error"), "evidence", lines_of(evidence));
        tm_json_print(doc);
        json_decref(doc);
        return;
    }
    error_text(title, e, evidence);
}

static void card_line(const char *text, const char *style, int width) {
    int pad = width - 4 - columns_of(text);
    fprintf(stderr, "│ %s%s%s%*s │\n", style, text, *style ? "\x1b[0m" : "", pad > 0 ? pad : 0, "");
}

void tm_ui_card(const char *title, const char *rows[][2], int count, const char *footer) {
    if (ui.events)
        return;
    erase_row();
    int width = CARD_COLUMNS;
    for (int i = 0; i < count; i++)
        if (columns_of(rows[i][1]) + 14 > width)
            width = columns_of(rows[i][1]) + 14;
    if (footer && columns_of(footer) + 4 > width)
        width = columns_of(footer) + 4;
    fprintf(stderr, "╭─ %s%s%s ", paint("\x1b[1m"), title, paint("\x1b[0m"));
    for (int i = columns_of(title) + 5; i < width; i++)
        fputs("─", stderr);
    fputs("╮\n", stderr);
    for (int i = 0; i < count; i++) {
        char *text = tm_fmt("%-9s %s", rows[i][0], rows[i][1]);
        card_line(text, "", width);
        free(text);
    }
    if (footer)
        card_line(footer, paint("\x1b[2m"), width);
    fputs("╰", stderr);
    for (int i = 2; i < width; i++)
        fputs("─", stderr);
    fputs("╯\n", stderr);
}

bool tm_ui_confirm(const char *fmt, ...) {
    if (!isatty(0) || !isatty(2))
        return false;
    FORMAT(text)
    erase_row();
    fprintf(stderr, "%s [y/N] ", text ? text : "");
    fflush(stderr);
    free(text);
    char line[16];
    return fgets(line, sizeof line, stdin) && (line[0] == 'y' || line[0] == 'Y');
}
