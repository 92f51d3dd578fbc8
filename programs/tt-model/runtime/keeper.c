#include "keeper.h"

#include "base/fs.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* A log that has grown to this is renamed to <log>.1, and a new one begun. */
enum { MAX_LOG_BYTES = 64 << 20, MAX_LINE = 1 << 20 };

void tm_boot_id(char out[64]) {
    tm_buf text = {0};
    out[0] = '\0';
    if (tm_read_file("/proc/sys/kernel/random/boot_id", 4096, &text, NULL) == TM_OK)
        snprintf(out, 64, "%.*s", (int)strcspn(text.data, "\n"), text.data);
    tm_buf_free(&text);
}

json_int_t tm_process_start(long pid) {
    if (pid <= 0)
        return -1;
    char path[64];
    snprintf(path, sizeof path, "/proc/%ld/stat", pid);
    FILE *f = fopen(path, "re");
    if (!f)
        return -1;
    char text[2048];
    size_t n = fread(text, 1, sizeof text - 1, f);
    fclose(f);
    text[n] = '\0';
    char *s = strrchr(text, ')'); /* the name may hold anything */
    if (!s || s[1] != ' ' || s[2] == 'Z' || s[2] == 'X')
        return -1;
    s += 2; /* field 3 */
    for (int field = 3; field < 22 && s; field++) {
        s = strchr(s, ' ');
        s = s ? s + 1 : NULL;
    }
    return s ? (json_int_t)strtoll(s, NULL, 10) : -1;
}

typedef struct log_file {
    const char *path;
    int fd;
    off_t size;
} log_file;

static void open_log(log_file *log, bool fresh) {
    log->fd = open(log->path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | (fresh ? O_TRUNC : 0), 0644);
    log->size = 0;
}

static void write_line(log_file *log, int stream, const char *line, size_t n) {
    struct timespec ts;
    struct tm tm;
    char head[64];
    clock_gettime(CLOCK_REALTIME, &ts);
    gmtime_r(&ts.tv_sec, &tm);
    size_t at = strftime(head, sizeof head, "%Y-%m-%dT%H:%M:%S", &tm);
    snprintf(head + at, sizeof head - at, ".%06ldZ %d ", ts.tv_nsec / 1000, stream);
    tm_buf b = {0};
    tm_buf_puts(&b, head);
    tm_buf_add(&b, line, n);
    tm_buf_puts(&b, "\n");
    if (log->size + (off_t)b.len > MAX_LOG_BYTES) {
        char *old = tm_fmt("%s.1", log->path);
        rename(log->path, old);
        free(old);
        close(log->fd);
        open_log(log, true);
    }
    ssize_t k = write(log->fd, b.data, b.len); /* one write a line; a full disk loses lines, not the server */
    log->size += k > 0 ? k : 0;
    tm_buf_free(&b);
}

static void pump(log_file *log, int stream, tm_buf *rest, const char *data, size_t n) {
    while (n) {
        const char *end = memchr(data, '\n', n);
        size_t part = end ? (size_t)(end - data) : n;
        if (rest->len + part <= MAX_LINE)
            tm_buf_add(rest, data, part);
        if (end) {
            write_line(log, stream, rest->data ? rest->data : "", rest->len);
            rest->len = 0;
        }
        part += end != NULL;
        data += part;
        n -= part;
    }
}

static void copy_output(log_file *log, int out, int err) {
    struct pollfd fds[2] = {{.fd = out, .events = POLLIN}, {.fd = err, .events = POLLIN}};
    tm_buf rest[2] = {{0}, {0}};
    while (fds[0].fd >= 0 || fds[1].fd >= 0) {
        if (poll(fds, 2, -1) < 0 && errno != EINTR)
            break;
        for (int i = 0; i < 2; i++) {
            char chunk[16384];
            if (fds[i].fd < 0 || !fds[i].revents)
                continue;
            ssize_t n = read(fds[i].fd, chunk, sizeof chunk);
            if (n > 0) {
                pump(log, i + 1, &rest[i], chunk, (size_t)n);
            } else if (n == 0 || errno != EINTR) {
                close(fds[i].fd);
                fds[i].fd = -1;
            }
        }
    }
    for (int i = 0; i < 2; i++) {
        if (rest[i].len)
            write_line(log, i + 1, rest[i].data, rest[i].len);
        tm_buf_free(&rest[i]);
    }
}

static void run_server(const tm_list *argv, const tm_list *env, int out, int err) {
    struct sigaction usual = {.sa_handler = SIG_DFL};
    static const int signals[] = {SIGINT, SIGTERM, SIGPIPE, SIGHUP};
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
        sigaction(signals[i], &usual, NULL);
    for (size_t i = 0; env && i < env->count; i++)
        putenv(env->items[i]);
    dup2(out, 1);
    dup2(err, 2);
    execv(argv->items[0], argv->items);
    dprintf(2, "cannot start %s: %s\n", argv->items[0], strerror(errno));
    _exit(127);
}

/* `stop` may have removed the file, and another server may have taken its place: that one's state is not ours to write.
 */
static bool still_ours(const char *state_path) {
    json_t *there = NULL;
    bool ours = tm_json_load(state_path, TM_MAX_NATIVE_STATE, &there, NULL) == TM_OK &&
                tm_json_int(there, "keeper_pid", 0) == getpid();
    json_decref(there);
    return ours;
}

static void save_end(const char *state_path, json_t *state, int status) {
    char now[32];
    json_object_set_new(state, "exit_code",
                        json_integer(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status)));
    json_object_set_new(state, "ended_at", json_string(tm_now_iso(now)));
    if (still_ours(state_path))
        tm_json_save(state_path, state, NULL);
}

/* Never returns. `ready` is closed, after one byte when all is well. */
static void keep(const char *state_path, const char *log_path, json_t *state, const tm_list *argv, const tm_list *env,
                 int ready) {
    setsid();
    signal(SIGINT, SIG_IGN);
    signal(SIGTERM, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    if (chdir("/") != 0)
        _exit(1);
    int null = open("/dev/null", O_RDWR), out[2], err[2];
    for (int fd = 0; fd < 3; fd++)
        dup2(null, fd);
    long limit = sysconf(_SC_OPEN_MAX);
    for (int fd = 3; fd < (limit > 0 && limit < 4096 ? (int)limit : 4096); fd++)
        if (fd != ready)
            close(fd); /* locks among them: they must not outlive the command */
    log_file log = {.path = log_path};
    open_log(&log, true);
    if (log.fd < 0 || pipe2(out, O_CLOEXEC) != 0 || pipe2(err, O_CLOEXEC) != 0)
        _exit(1);
    pid_t pid = fork();
    if (pid == 0)
        run_server(argv, env, out[1], err[1]);
    close(out[1]);
    close(err[1]);
    if (pid < 0)
        _exit(1);
    char boot[64];
    tm_boot_id(boot);
    json_object_set_new(state, "pid", json_integer(pid));
    json_object_set_new(state, "start_ticks", json_integer(tm_process_start(pid)));
    json_object_set_new(state, "boot_id", json_string(boot));
    json_object_set_new(state, "keeper_pid", json_integer(getpid()));
    bool saved = tm_json_save(state_path, state, NULL) == TM_OK;
    if (saved && write(ready, "1", 1) == 1)
        close(ready);
    else
        kill(pid, SIGTERM); /* a server that nobody could find again */
    copy_output(&log, out[0], err[0]);
    int status = 0;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    save_end(state_path, state, status);
    _exit(0);
}

int tm_keeper_start(const char *state_path, const char *log_path, const json_t *state, const tm_list *argv,
                    const tm_list *env, tm_error *e) {
    int ready[2];
    if (pipe2(ready, O_CLOEXEC) != 0)
        return tm_fail(e, TM_ERROR, "cannot make a pipe: %s", strerror(errno));
    fflush(NULL);
    /* Two forks: the keeper is nobody's child, so that nobody has to wait for it. */
    pid_t middle = fork();
    if (middle == 0) {
        if (fork() == 0)
            keep(state_path, log_path, json_deep_copy(state), argv, env, ready[1]);
        _exit(0);
    }
    close(ready[1]);
    char byte = 0;
    ssize_t n = -1;
    if (middle > 0) {
        while (waitpid(middle, NULL, 0) < 0 && errno == EINTR)
            ;
        while ((n = read(ready[0], &byte, 1)) < 0 && errno == EINTR)
            ;
    }
    close(ready[0]);
    return n == 1 ? TM_OK : tm_fail(e, TM_TOOL_FAILED, "the server could not be started in the background");
}
