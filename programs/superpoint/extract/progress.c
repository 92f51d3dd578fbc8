#include "extract/progress.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "common/clock.h"

enum { BAR_EVERY_MS = 200, LINE_EVERY_MS = 10000, MAX_BAR = 40 };

struct progress {
    const char *program, *unit;
    size_t total, before, done, failed;
    bool quiet, bar, shown, stop;
    double began;
    pthread_mutex_t mutex;
    pthread_cond_t wake;
    pthread_t thread;
    bool threaded;
};

static void time_text(double seconds, char *text, size_t size) {
    const unsigned long s = (unsigned long)(seconds + 0.5);
    if (s >= 3600)
        snprintf(text, size, "%lu:%02lu:%02lu", s / 3600, s / 60 % 60, s % 60);
    else
        snprintf(text, size, "%lu:%02lu", s / 60, s % 60);
}

/* "812/2000 pictures, 38.2/s, 0:31 left, 2 failed" */
static void status_text(const progress *p, char *text, size_t size) {
    const size_t here = p->done + p->failed, past = p->before + here;
    const double seconds = now_s() - p->began, rate = seconds > 0 ? (double)here / seconds : 0;
    int n = snprintf(text, size, "%zu/%zu %s", past, p->total, p->unit);
    if (rate > 0) {
        char left[32];
        time_text((double)(p->total - past) / rate, left, sizeof left);
        n += snprintf(text + n, size - (size_t)n, ", %.1f/s, %s left", rate, left);
    }
    if (p->failed)
        snprintf(text + n, size - (size_t)n, ", %zu failed", p->failed);
}

static void clear_bar(progress *p) {
    if (p->bar && p->shown)
        fputs("\r\033[K", stderr);
    p->shown = false;
}

static void draw_bar(progress *p) {
    char text[160], bar[MAX_BAR + 1];
    struct winsize window = {0};
    status_text(p, text, sizeof text);
    const int columns = ioctl(STDERR_FILENO, TIOCGWINSZ, &window) == 0 && window.ws_col ? window.ws_col : 80;
    int width = columns - (int)strlen(text) - 4;
    width = width > MAX_BAR ? MAX_BAR : width;
    fputs("\r\033[K", stderr); /* also the first time: whatever stood on the line before */
    if (width >= 8) {
        const size_t past = p->before + p->done + p->failed;
        const int full = p->total ? (int)((double)past / (double)p->total * width) : width;
        memset(bar, '#', (size_t)full);
        memset(bar + full, '.', (size_t)(width - full));
        bar[width] = '\0';
        fprintf(stderr, "[%s] %s", bar, text);
    } else {
        fprintf(stderr, "%.*s", columns - 1, text);
    }
    fflush(stderr);
    p->shown = true;
}

static void *progress_main(void *context) {
    progress *p = context;
    pthread_mutex_lock(&p->mutex);
    while (!p->stop) {
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        const long ms = p->bar ? BAR_EVERY_MS : LINE_EVERY_MS;
        until.tv_sec += ms / 1000;
        until.tv_nsec += ms % 1000 * 1000000;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        if (pthread_cond_timedwait(&p->wake, &p->mutex, &until) == 0 || p->stop)
            continue;
        if (p->bar) {
            draw_bar(p);
        } else {
            char text[160];
            status_text(p, text, sizeof text);
            fprintf(stderr, "%s: %s\n", p->program, text);
        }
    }
    if (p->bar) /* short runs show one too */
        draw_bar(p);
    pthread_mutex_unlock(&p->mutex);
    return NULL;
}

progress *progress_start(const char *program, const char *unit, size_t total, size_t before, bool quiet) {
    progress *p = calloc(1, sizeof *p);
    if (!p)
        return NULL;
    p->program = program;
    p->unit = unit;
    p->total = total;
    p->before = before;
    p->quiet = quiet;
    p->bar = !quiet && isatty(STDERR_FILENO);
    p->began = now_s();
    pthread_mutex_init(&p->mutex, NULL);
    pthread_cond_init(&p->wake, NULL);
    p->threaded = !quiet && pthread_create(&p->thread, NULL, progress_main, p) == 0;
    return p;
}

void progress_add(progress *p, size_t done, size_t failed) {
    pthread_mutex_lock(&p->mutex);
    p->done += done;
    p->failed += failed;
    pthread_mutex_unlock(&p->mutex);
}

void progress_say(progress *p, const char *format, ...) {
    va_list args;
    va_start(args, format);
    pthread_mutex_lock(&p->mutex);
    clear_bar(p);
    fprintf(stderr, "%s: ", p->program);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    pthread_mutex_unlock(&p->mutex);
    va_end(args);
}

double progress_stop(progress *p) {
    pthread_mutex_lock(&p->mutex);
    p->stop = true;
    pthread_cond_broadcast(&p->wake);
    pthread_mutex_unlock(&p->mutex);
    if (p->threaded)
        pthread_join(p->thread, NULL);
    clear_bar(p);
    const double seconds = now_s() - p->began;
    pthread_cond_destroy(&p->wake);
    pthread_mutex_destroy(&p->mutex);
    free(p);
    return seconds;
}
