#include "ui.h"

#include "json.h"
#include "progress.h"
#include "text.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define FRAME_SECONDS 0.1      /* between two drawings of the running row */
#define EVENT_SECONDS 0.5      /* between two progress events */
#define TIMED_FROM_SECONDS 0.8 /* steps that took less say nothing about time */
enum { CARD_COLUMNS = 78 };

static struct {
    tm_ui_options opt;
    bool tty, events, color_out, color_err;
    int columns;
    /* the running step */
    char *key, *label, *detail;
    double started, drawn, told;
    tm_progress progress;
    bool row_shown;
    int frame;
} ui;

static volatile sig_atomic_t interrupts;

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

static void draw(bool force) {
    static const char *const frames[] = {"⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"};
    double t = tm_seconds();
    if (!ui.key)
        return;
    tm_progress_measure(&ui.progress, t);
    if (ui.events) {
        if (ui.progress.total && (force || t - ui.told >= EVENT_SECONDS)) {
            ui.told = t;
            event(json_pack("{s:s, s:I, s:I, s:s, s:s}", "event", "progress", "done", (json_int_t)ui.progress.done,
                            "total", (json_int_t)ui.progress.total, "unit", ui.progress.bytes ? "bytes" : "count",
                            "key", ui.key));
        }
        return;
    }
    if (!ui.tty || (!force && t - ui.drawn < FRAME_SECONDS))
        return;
    ui.drawn = t;
    char *text =
        tm_progress_row(&ui.progress, frames[ui.frame++ % 10], ui.label, ui.detail, t - ui.started, ui.columns);
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
    ui.progress = (tm_progress){0};
}

static void end_step(const char *glyph, const char *state, const char *detail) {
    if (!ui.key)
        return;
    double took = tm_seconds() - ui.started;
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
    ui.started = tm_seconds();
    if (ui.events)
        event(json_pack("{s:s, s:s, s:s, s:s}", "event", "step", "key", key, "state", "start", "label", ui.label));
    else if (ui.opt.verbose)
        fprintf(stderr, "  %s…\n", ui.label);
    else
        draw(true);
}

void tm_step_progress(uint64_t done, uint64_t total, bool bytes) {
    ui.progress.done = done;
    ui.progress.total = total;
    ui.progress.bytes = bytes;
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
    if (ui.key && ui.progress.total && ui.events)
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
    fprintf(stderr, "%s✗ %s%s%s%s\n", paint("\x1b[31m"), title ? title : "", title ? " — " : "", e->what,
            paint("\x1b[0m"));
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

void tm_ui_card(const char *title, const char *rows[][2], int count) {
    if (ui.events)
        return;
    erase_row();
    int width = CARD_COLUMNS;
    for (int i = 0; i < count; i++)
        if (tm_columns(rows[i][1]) + 14 > width)
            width = tm_columns(rows[i][1]) + 14;
    fprintf(stderr, "╭─ %s%s%s ", paint("\x1b[1m"), title, paint("\x1b[0m"));
    for (int i = tm_columns(title) + 5; i < width; i++)
        fputs("─", stderr);
    fputs("╮\n", stderr);
    for (int i = 0; i < count; i++) {
        int pad = width - 14 - tm_columns(rows[i][1]);
        fprintf(stderr, "│ %s%-9s%s %s%*s │\n", paint("\x1b[2m"), rows[i][0], paint("\x1b[0m"), rows[i][1], pad, "");
    }
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
