#include "log.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/fail.h"
#include "common/output.h"

enum { ROOM = 1 << 20 };

struct line_log {
    int fd;
    bool own_fd, closing, done;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed, finished;
    char *lines, *writing; /* one is filled while the other is written */
    size_t size;
    unsigned pending; /* lines in `lines` */
    uint64_t dropped;
};

static void *writer(void *context) {
    line_log *log = context;
    pthread_mutex_lock(&log->lock);
    while (!log->closing || log->size) {
        if (log->size == 0) {
            pthread_cond_wait(&log->changed, &log->lock);
            continue;
        }
        char *block = log->lines;
        size_t size = log->size;
        unsigned lines = log->pending;
        log->lines = log->writing;
        log->writing = block;
        log->size = 0;
        log->pending = 0;
        pthread_mutex_unlock(&log->lock);
        /* A full disk loses the rest of this block, not the log. */
        bool written = sp_output_all(log->fd, block, size);
        pthread_mutex_lock(&log->lock);
        if (!written)
            log->dropped += lines;
    }
    log->done = true;
    pthread_cond_signal(&log->finished);
    pthread_mutex_unlock(&log->lock);
    return NULL;
}

static void log_free(line_log *log) {
    if (log->own_fd)
        close(log->fd);
    free(log->lines);
    free(log->writing);
    free(log);
}

sp_status log_open(const char *path, line_log **out, sp_error *err) {
    *out = NULL;
    if (strcmp(path, "off") == 0)
        return SP_OK;
    line_log *log = calloc(1, sizeof *log);
    if (!log)
        return fail(err, SP_ERR_MEMORY, "access-log: out of memory");
    log->own_fd = strcmp(path, "-") != 0;
    log->fd = log->own_fd ? open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0640) : STDOUT_FILENO;
    log->lines = malloc(ROOM);
    log->writing = malloc(ROOM);
    if (log->fd < 0 || !log->lines || !log->writing) {
        sp_status status = log->fd < 0 ? SP_ERR_IO : SP_ERR_MEMORY;
        fail(err, status, "access-log: %s: %s", path, log->fd < 0 ? strerror(errno) : "out of memory");
        log->own_fd = log->own_fd && log->fd >= 0;
        log_free(log);
        return status;
    }
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_mutex_init(&log->lock, NULL);
    pthread_cond_init(&log->changed, NULL);
    pthread_cond_init(&log->finished, &attributes);
    pthread_condattr_destroy(&attributes);
    if (pthread_create(&log->thread, NULL, writer, log) != 0) {
        log_free(log);
        return fail(err, SP_ERR_MEMORY, "access-log: cannot start a thread");
    }
    *out = log;
    return SP_OK;
}

void log_write(line_log *log, const char *line, size_t size) {
    if (!log)
        return;
    pthread_mutex_lock(&log->lock);
    if (size > ROOM - log->size) {
        log->dropped++;
    } else {
        memcpy(log->lines + log->size, line, size);
        log->size += size;
        log->pending++;
        pthread_cond_signal(&log->changed);
    }
    pthread_mutex_unlock(&log->lock);
}

uint64_t log_dropped(line_log *log) {
    if (!log)
        return 0;
    pthread_mutex_lock(&log->lock);
    uint64_t dropped = log->dropped;
    pthread_mutex_unlock(&log->lock);
    return dropped;
}

void log_close(line_log *log) {
    if (!log)
        return;
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec++;
    pthread_mutex_lock(&log->lock);
    log->closing = true;
    pthread_cond_signal(&log->changed);
    int rc = 0;
    while (!log->done && rc == 0)
        rc = pthread_cond_timedwait(&log->finished, &log->lock, &until);
    bool done = log->done;
    pthread_mutex_unlock(&log->lock);
    if (!done) { /* it sleeps in write(); it and its memory go with the process */
        pthread_detach(log->thread);
        return;
    }
    pthread_join(log->thread, NULL);
    log_free(log);
}

void log_news(const char *format, ...) {
    char line[1024] = "INFO:     ";
    size_t length = strlen(line);
    va_list args;
    va_start(args, format);
    int more = vsnprintf(line + length, sizeof line - length - 1, format, args);
    va_end(args);
    length += more < 0 ? 0 : (size_t)more < sizeof line - length - 1 ? (size_t)more : sizeof line - length - 2;
    line[length++] = '\n';
    sp_output_all(STDERR_FILENO, line, length);
}
