#include "boot.h"

#include "base/paths.h"
#include "base/ui.h"
#include "hub/http.h"

#include <pthread.h>
#include <regex.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    DEFAULT_TIMEOUT = 14400, /* a cold boot of a large model compiles kernels for the better part of an hour */
    EVIDENCE_LINES = 8,
    PROBE_SECONDS = 2,
    PROBE_EVERY_MS = 500,
    SETTLE_PROBES = 120, /* probes after the log line before "it says it is ready but does not answer" */
};

/* What the log tells of the way to being ready. A later phase ends the earlier ones. */
static const struct {
    const char *key, *label, *pattern;
} phases[] = {
    {"server", "starting the server", "Started server process|Waiting for application startup|Platform plugin"},
    {"device", "opening the device", "Opening user mode device driver|Starting devices in cluster"},
    {"load", "loading the weights", "Loading pipeline|Loading weights|Loading checkpoint|Fetching [0-9]+ files"},
    {"warmup", "warming up", "[Ww]arm(ing)? up|Capturing .*trace|Compiling"},
};
enum { PHASES = sizeof phases / sizeof *phases };

/* Lines that say why a boot failed. */
static const struct {
    const char *pattern, *what, *next;
    int code;
} causes[] = {
    {"Sysmem mapped at unexpected NOC address|CHIP_IN_USE|stale process holding",
     "the device is held by another process",
     "`tt-model ps` and `docker ps` show who; stop it. If nobody does, reset the card or restart the machine.",
     TM_NO_DEVICES},
    {"[Aa]ddress already in use", "its port is taken", "Leave --port out, or give one that is free.", TM_TOOL_FAILED},
    {"unrecognized arguments|error: argument|unknown option|is not an option", "the server rejected a flag",
     "Look at the words behind the package's name.", TM_USAGE},
};

typedef struct watch {
    const tm_boot *b;
    pthread_mutex_t mutex;
    tm_list tail; /* the last lines */
    regex_t phase_re[PHASES], cause_re[sizeof causes / sizeof *causes];
    int phase, cause;
    atomic_bool ready_line, ended, stop;
} watch;

static bool stopped(void *arg) {
    return atomic_load(&((watch *)arg)->stop);
}

static bool on_line(void *arg, int stream, const char *line) {
    watch *w = arg;
    (void)stream;
    pthread_mutex_lock(&w->mutex);
    if (w->tail.count >= EVIDENCE_LINES) {
        free(w->tail.items[0]);
        memmove(w->tail.items, w->tail.items + 1, w->tail.count * sizeof *w->tail.items);
        w->tail.count--;
    }
    tm_list_add(&w->tail, line);
    for (int i = 0; i < PHASES; i++)
        if (i > w->phase && regexec(&w->phase_re[i], line, 0, NULL, 0) == 0)
            w->phase = i;
    for (int i = 0; i < (int)(sizeof causes / sizeof *causes); i++)
        if (w->cause < 0 && regexec(&w->cause_re[i], line, 0, NULL, 0) == 0)
            w->cause = i;
    pthread_mutex_unlock(&w->mutex);
    if (strstr(line, w->b->marker))
        atomic_store(&w->ready_line, true);
    return !atomic_load(&w->stop);
}

static void *follow(void *arg) {
    watch *w = arg;
    tm_log_request q = {.follow = true, .tail = -1, .sink = on_line, .cancelled = stopped, .arg = w};
    w->b->follow(w->b->arg, &q, NULL);
    atomic_store(&w->ended, true);
    return NULL;
}

long tm_probe(const char *host, int port, const char *path, tm_buf *body) {
    bool any = !host || !*host || !strcmp(host, "0.0.0.0") || !strcmp(host, "::");
    char *url =
        tm_fmt(!any && strchr(host, ':') ? "http://[%s]:%d%s" : "http://%s:%d%s", any ? "127.0.0.1" : host, port, path);
    tm_http_response r;
    tm_error ignored;
    long status = 0;
    if (tm_http(NULL, &(tm_http_request){.url = url, .timeout_s = PROBE_SECONDS, .max_body = 1 << 20}, &r, &ignored) ==
        TM_OK) {
        status = r.status;
        if (body)
            tm_buf_add(body, r.body.data ? r.body.data : "", r.body.len);
        tm_http_response_free(&r);
    }
    free(url);
    return status;
}

int tm_boot_timeout(double *seconds, tm_error *e) {
    long n;
    int rc = tm_env_int("TT_MODEL_READY_TIMEOUT", 1, 7 * 86400, DEFAULT_TIMEOUT, &n, e);
    *seconds = (double)n;
    return rc;
}

static int failed(watch *w, const char *what, tm_buf *evidence, tm_error *e) {
    pthread_mutex_lock(&w->mutex);
    for (size_t i = 0; i < w->tail.count; i++)
        tm_buf_printf(evidence, "%s\n", w->tail.items[i]);
    int cause = w->cause;
    pthread_mutex_unlock(&w->mutex);
    if (cause < 0)
        return tm_fail(e, TM_TOOL_FAILED, "%s", what);
    tm_fail(e, causes[cause].code, "%s", causes[cause].what);
    tm_why(e, "In short: %s.", what);
    tm_next(e, "%s", causes[cause].next);
    return causes[cause].code;
}

static int wait_until_ready(watch *w, tm_buf *evidence, tm_error *e) {
    double start = tm_seconds(), next_probe = 0;
    int shown = -1, probes = 0;
    tm_step("boot", "waiting for the server");
    for (;;) {
        if (tm_interrupted())
            return tm_fail(e, TM_INTERRUPTED, "stopped watching; the server goes on starting");
        pthread_mutex_lock(&w->mutex);
        int phase = w->phase;
        pthread_mutex_unlock(&w->mutex);
        if (phase != shown)
            tm_step_detail("%s", phases[shown = phase].label);
        tm_step_tick();
        if (atomic_load(&w->ready_line) && tm_seconds() >= next_probe) {
            long status = tm_probe(w->b->host, w->b->port, "/health", NULL);
            if (status == 200 || status == 404 || status == 405) {
                tm_step_done("ready");
                return TM_OK;
            }
            next_probe = tm_seconds() + PROBE_EVERY_MS / 1000.0;
            if (++probes > SETTLE_PROBES)
                return failed(w, "it says that it is ready, and does not answer on its port", evidence, e);
        }
        if (atomic_load(&w->ended) && !w->b->alive(w->b->arg))
            return failed(w, "the server ended while it was starting", evidence, e);
        if (tm_seconds() - start > w->b->timeout) {
            int rc = failed(w, "the server did not become ready in time", evidence, e);
            tm_next(e,
                    "It is still running: `tt-model logs` shows what it does. TT_MODEL_READY_TIMEOUT sets the "
                    "time to wait (now %.0f s).",
                    w->b->timeout);
            return rc;
        }
        nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
    }
}

int tm_boot_watch(const tm_boot *b, tm_buf *evidence, tm_error *e) {
    watch w = {.b = b, .phase = -1, .cause = -1};
    pthread_mutex_init(&w.mutex, NULL);
    for (int i = 0; i < PHASES; i++)
        regcomp(&w.phase_re[i], phases[i].pattern, REG_EXTENDED | REG_NOSUB);
    for (size_t i = 0; i < sizeof causes / sizeof *causes; i++)
        regcomp(&w.cause_re[i], causes[i].pattern, REG_EXTENDED | REG_NOSUB);
    pthread_t thread;
    int rc;
    if (pthread_create(&thread, NULL, follow, &w) != 0) {
        rc = tm_fail(e, TM_ERROR, "cannot start a thread");
    } else {
        rc = wait_until_ready(&w, evidence, e);
        atomic_store(&w.stop, true);
        pthread_join(thread, NULL);
    }
    for (int i = 0; i < PHASES; i++)
        regfree(&w.phase_re[i]);
    for (size_t i = 0; i < sizeof causes / sizeof *causes; i++)
        regfree(&w.cause_re[i]);
    tm_list_free(&w.tail);
    pthread_mutex_destroy(&w.mutex);
    return rc;
}
