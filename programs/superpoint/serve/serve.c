/* `superpoint serve`: start, serve, drain, end. */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../command.h"
#include "access_log.h"
#include "common/clock.h"
#include "common/fail.h"
#include "daemon.h"
#include "http.h"
#include "notify.h"

static sp_status take_option(void *context, const cli_option *option, const char *value, sp_error *err) {
    server *s = context;
    return config_set(&s->config, &s->setup, option->name, value, err);
}

static void add_connection(void *context, int fd, const struct sockaddr *address, socklen_t size) {
    daemon_add(context, fd, address, size);
}

static void on_tick(void *context) {
    server *s = context;
    if (atomic_load(&s->ready))
        pipeline_tick(s->pipeline);
}

static void on_malformed(void *context, const char *peer, int status) {
    server *s = context;
    stats_request(&s->stats, route_index(route_find("")), status);
    access_log(s, peer, "-", "-", status, NULL);
}

static sp_status start(server *s, sp_error *err) {
    gate_calls calls = {add_connection, on_tick, on_malformed, s};
    sp_status status = config_check(&s->config, err);
    if (status == SP_OK)
        status = sp_params_check(&s->defaults, err);
    if (status == SP_OK && s->config.token_file)
        status = tokens_read(&s->tokens, s->config.token_file, err);
    if (status == SP_OK)
        status = log_open(s->config.access_log, &s->log, err);
    if (status == SP_OK)
        status = gate_create(&s->config, &s->stats, &calls, &s->gate, &s->port, err);
    if (status == SP_OK)
        status = daemon_start(s, err);
    if (status == SP_OK) /* from here on /health tells that the service is starting */
        status = gate_start(s->gate, err);
    if (status == SP_OK)
        status = sp_setup_open(&s->setup, &s->model, &s->engine, err);
    if (status == SP_OK)
        status = pipeline_create(&s->config, s->engine, &s->stats, &s->pipeline, err);
    return status;
}

static void say_started(const server *s) {
    const sp_engine_info *e = sp_engine_get_info(s->engine);
    const sp_model_info *m = sp_model_get_info(s->model);
    bool v6 = strchr(s->config.host, ':') != NULL;
    log_news("Weights %s, sha256 %.12s, licence %s", m->id, m->sha256, m->licence);
    log_news("Engine %s on %s, level %s, precision %s, %u threads", e->engine, e->device, e->level,
             sp_precision_text(e->precision), e->threads);
    log_news("Application startup complete.");
    log_news("Listening on %s://%s%s%s:%d (press CTRL+C to quit)", s->config.tls_certificate ? "https" : "http",
             v6 ? "[" : "", s->config.host, v6 ? "]" : "", s->port);
}

/* Let in no more, and finish what has been begun: false when that takes too long. */
static bool drain(server *s) {
    enum { QUIET_MS = 100 }; /* a client may have sent its request just now */
    double until = now_ms() + s->config.limits.drain_timeout * 1e3;
    atomic_store(&s->draining, true);
    gate_stop_accepting(s->gate);
    while (atomic_load(&s->active) > 0 || pipeline_depth(s->pipeline) > 0 || !gate_all_idle(s->gate, QUIET_MS)) {
        if (now_ms() > until)
            return false;
        usleep(5000);
    }
    return true;
}

/* No request comes in, and no tick, from here on: only then may the pipeline go. */
static void stop_http(server *s) {
    daemon_stop(s);
    gate_free(s->gate);
    s->gate = NULL;
}

static void release(server *s) {
    stop_http(s);
    sp_engine_free(s->engine);
    sp_model_free(s->model);
    log_close(s->log);
    tokens_free(&s->tokens);
}

/* Signals that end the service are waited for; the others of its kind stay as they are. */
static void block_signals(sigset_t *set) {
    sigemptyset(set);
    sigaddset(set, SIGTERM);
    sigaddset(set, SIGINT);
    pthread_sigmask(SIG_BLOCK, set, NULL);
    signal(SIGPIPE, SIG_IGN);
}

static int run(server *s, const cli *c) {
    sigset_t set;
    sp_error error = {0};
    int number;
    block_signals(&set);
    s->started_ms = now_ms();
    if (start(s, &error) != SP_OK) {
        release(s);
        return cli_fail(c, &error);
    }
    atomic_store(&s->ready, true);
    say_started(s);
    notify_manager("READY=1");
    while (sigwait(&set, &number) != 0)
        ;
    log_news("Shutting down on %s", number == SIGINT ? "SIGINT" : "SIGTERM");
    notify_manager("STOPPING=1");
    bool drained = drain(s);
    if (!drained)
        log_news("Gave up on %zu requests after drain_timeout, %g s", atomic_load(&s->active),
                 s->config.limits.drain_timeout);
    /* Requests that were given up keep threads and memory busy: the process ends with them. */
    if (drained)
        stop_http(s);
    if (!drained || !pipeline_free(s->pipeline, 1000)) {
        log_news("Application shutdown complete.");
        log_close(s->log);
        _exit(EXIT_FAILED);
    }
    release(s);
    log_news("Application shutdown complete.");
    return EXIT_OK;
}

int sp_command_serve(int argc, char **argv) {
    server *s = calloc(1, sizeof *s);
    if (!s) {
        fprintf(stderr, "superpoint serve: out of memory\n");
        return EXIT_FAILED;
    }
    config_default(&s->config);
    sp_setup_default(&s->setup);
    sp_params_default(&s->defaults);
    const cli c = {
        .program = "superpoint serve",
        .usage = "superpoint serve [OPTION...]",
        .about = "Serves keypoints over HTTP: POST /predict, GET /health, /info, /metrics, /openapi.json.\n",
        .epilogue = "Examples:\n"
                    "  superpoint serve\n"
                    "  superpoint serve --host 0.0.0.0 --port 8080 --token-file tokens.txt\n"
                    "  curl --data-binary @photo.jpg -H 'Content-Type: image/jpeg' "
                    "'http://localhost:20000/predict?max_keypoints=10'\n"
                    "\nThe parameters of a detection set the defaults of requests. TT_FUSED=0 runs stage by stage.\n"
                    "SIGTERM and SIGINT let in no more requests, finish those that run, and exit with 0.\n",
        .options = config_options(),
        .setup = &s->setup,
        .params = &s->defaults,
        .take = take_option,
        .context = s,
    };
    int code = cli_parse(&c, argc, argv);
    if (code == CLI_GO_ON)
        code = run(s, &c);
    config_free(&s->config);
    free(s);
    return code;
}
