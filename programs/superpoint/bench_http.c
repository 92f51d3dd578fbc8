/* End to end: the service as a process of its own, a JPEG in and a JSON answer out, over one connection. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"
#include "common/clock.h"
#include "common/fail.h"

enum { MAX_ANSWER = 8 << 20, LINE = 512 };

typedef struct service {
    pid_t pid;
    FILE *output; /* what it prints */
    int port;
} service;

static void run_child(const bench_options *o, int out) {
    char threads[16];
    snprintf(threads, sizeof threads, "%u", o->setup.engine.threads);
    const char *args[20] = {"superpoint", "serve", "--port", "0", "--access-log", "off"};
    int n = 6;
    const struct {
        const char *name, *value;
    } passed[] = {{"--weights", o->setup.weights},
                  {"--engine", o->setup.engine.engine},
                  {"--level", o->setup.engine.level},
                  {"--threads", o->setup.engine.threads ? threads : NULL},
                  {"--precision", o->setup.engine.precision ? sp_precision_text(o->setup.engine.precision) : NULL}};
    for (size_t i = 0; i < sizeof passed / sizeof passed[0]; i++)
        if (passed[i].value) {
            args[n++] = passed[i].name;
            args[n++] = passed[i].value;
        }
    args[n] = NULL;
    dup2(out, STDOUT_FILENO);
    dup2(out, STDERR_FILENO);
    execv("/proc/self/exe", (char *const *)args);
    _exit(127);
}

/* Start it, and wait for the line that says where it listens. */
static sp_status start_service(const bench_options *o, service *s, sp_error *err) {
    int ends[2];
    if (pipe(ends) != 0)
        return fail(err, SP_ERR_IO, "bench: pipe: %s", strerror(errno));
    s->pid = fork();
    if (s->pid == 0) {
        close(ends[0]);
        run_child(o, ends[1]);
    }
    close(ends[1]);
    s->output = s->pid > 0 ? fdopen(ends[0], "r") : NULL;
    if (!s->output) {
        close(ends[0]);
        return fail(err, SP_ERR_IO, "bench: the service cannot be started: %s", strerror(errno));
    }
    char line[LINE], last[LINE] = "";
    while (fgets(line, sizeof line, s->output)) {
        const char *at = strstr(line, "http://127.0.0.1:");
        if (at && (s->port = atoi(at + strlen("http://127.0.0.1:"))) > 0)
            return SP_OK;
        snprintf(last, sizeof last, "%s", line);
    }
    last[strcspn(last, "\n")] = '\0';
    return fail(err, SP_ERR_ENGINE, "bench: the service did not start: %s", last);
}

static void stop_service(service *s) {
    if (s->pid > 0) {
        kill(s->pid, SIGTERM);
        char line[LINE];
        while (s->output && fgets(line, sizeof line, s->output)) /* until it has ended */
            ;
        waitpid(s->pid, NULL, 0);
    }
    if (s->output)
        fclose(s->output);
}

static int connect_to(int port) {
    const struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const int fd = socket(AF_INET, SOCK_STREAM, 0), on = 1;
    if (fd < 0)
        return -1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (connect(fd, (const struct sockaddr *)&address, sizeof address) != 0) {
        close(fd);
        return -1;
    }
    return fd;
}

static bool send_all(int fd, const void *bytes, size_t size) {
    for (size_t sent = 0; sent < size;) {
        const ssize_t n = send(fd, (const char *)bytes + sent, size - sent, MSG_NOSIGNAL);
        if (n <= 0)
            return false;
        sent += (size_t)n;
    }
    return true;
}

/* Read one answer with a Content-Length into `room`; its whole size, or 0. */
static size_t read_answer(int fd, char *room, int *status) {
    size_t have = 0, want = 0;
    while (have < MAX_ANSWER && (want == 0 || have < want)) {
        const ssize_t n = recv(fd, room + have, MAX_ANSWER - have, 0);
        if (n <= 0)
            return 0;
        have += (size_t)n;
        room[have] = '\0';
        const char *end = want ? NULL : strstr(room, "\r\n\r\n"), *length = strcasestr(room, "\r\ncontent-length:");
        if (end && length && length < end)
            want = (size_t)(end - room) + 4 + strtoul(length + 17, NULL, 10);
    }
    if (sscanf(room, "HTTP/1.1 %d", status) != 1)
        *status = 0;
    return have == want ? have : 0;
}

static sp_status exchange(int fd, const void *bytes, size_t size, char *room, size_t *answer, sp_error *err) {
    char head[256];
    int status = 0;
    const int n = snprintf(
        head, sizeof head,
        "POST /predict HTTP/1.1\r\nHost: bench\r\nContent-Type: image/jpeg\r\nContent-Length: %zu\r\n\r\n", size);
    if (!send_all(fd, head, (size_t)n) || !send_all(fd, bytes, size) || !(*answer = read_answer(fd, room, &status)))
        return fail(err, SP_ERR_IO, "bench: the service broke the connection off");
    return status == 200 ? SP_OK : fail(err, SP_ERR_ENGINE, "bench: the service answered %d", status);
}

static sp_status measure(const bench_options *o, const service *s, const void *bytes, size_t size, bench_times *times,
                         size_t *answer, sp_error *err) {
    char *room = malloc(MAX_ANSWER + 1);
    const int fd = connect_to(s->port);
    sp_status status = SP_OK;
    if (!room || fd < 0)
        status = fail(err, SP_ERR_IO, "bench: no connection to the service");
    for (int i = 0; status == SP_OK && i < 3; i++) /* warm */
        status = exchange(fd, bytes, size, room, answer, err);
    const double end = now_ms() + 1e3 * o->seconds / 4;
    for (int i = 0; status == SP_OK && (i < 5 || now_ms() < end) && i < BENCH_MAX_ROUNDS; i++) {
        const double start = now_ms();
        status = exchange(fd, bytes, size, room, answer, err);
        bench_record(times, now_ms() - start);
    }
    if (fd >= 0)
        close(fd);
    free(room);
    return status;
}

sp_status bench_http(const bench_options *o, const void *bytes, size_t size, json_t *results, sp_error *err) {
    service s = {0};
    size_t answer = 0;
    bench_times *times = calloc(1, sizeof *times);
    sp_status status = times ? start_service(o, &s, err) : SP_ERR_MEMORY;
    if (status == SP_OK)
        status = measure(o, &s, bytes, size, times, &answer, err);
    stop_service(&s);
    if (status == SP_OK)
        json_array_append_new(
            results, json_pack("{s:s, s:i, s:[i, i], s:f, s:f, s:i, s:I}", "name", "http", "threads",
                               (int)(o->setup.engine.threads ? o->setup.engine.threads : sp_cpu_count()), "size", 480,
                               640, "min_ms", bench_least(times), "median_ms", bench_median(times), "rounds",
                               times->count, "answer_bytes", (json_int_t)answer));
    free(times);
    return status;
}
