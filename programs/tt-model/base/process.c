#include "process.h"

#include "fs.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* A program that prints more than this is cut off: nothing we run has that much to say. */
enum { MAX_OUTPUT = 64 << 20 };

char *tm_find_program(const char *name) {
    if (strchr(name, '/'))
        return access(name, X_OK) == 0 ? tm_strdup(name) : NULL;
    const char *path = getenv("PATH");
    char *copy = tm_strdup(path && *path ? path : "/usr/local/bin:/usr/bin:/bin"), *save = NULL, *found = NULL;
    for (char *dir = strtok_r(copy, ":", &save); dir && !found; dir = strtok_r(NULL, ":", &save)) {
        char *full = tm_join(dir, name);
        if (access(full, X_OK) == 0 && !tm_is_dir(full))
            found = full;
        else
            free(full);
    }
    free(copy);
    return found;
}

static void child(char *const argv[], const char *program, const char *dir, int out, int err) {
    int null = open("/dev/null", O_RDWR);
    dup2(null, 0);
    dup2(out, 1);
    dup2(err, 2);
    if (dir && chdir(dir) != 0)
        _exit(127);
    execv(program, argv);
    _exit(127);
}

int tm_run(char *const argv[], const char *dir, tm_buf *out, tm_buf *err, int *status, tm_error *e) {
    char *program = tm_find_program(argv[0]);
    if (!program)
        return tm_fail(e, TM_TOOL_MISSING, "%s is not installed", argv[0]);
    int po[2], pe[2];
    if (pipe2(po, O_CLOEXEC) != 0 || pipe2(pe, O_CLOEXEC) != 0) {
        free(program);
        return tm_fail(e, TM_ERROR, "cannot make a pipe: %s", strerror(errno));
    }
    pid_t pid = fork();
    if (pid == 0)
        child(argv, program, dir, po[1], pe[1]);
    free(program);
    close(po[1]);
    close(pe[1]);
    if (pid < 0) {
        close(po[0]);
        close(pe[0]);
        return tm_fail(e, TM_ERROR, "cannot start %s: %s", argv[0], strerror(errno));
    }
    struct pollfd fds[2] = {{.fd = po[0], .events = POLLIN}, {.fd = pe[0], .events = POLLIN}};
    tm_buf *sinks[2] = {out, err};
    while (fds[0].fd >= 0 || fds[1].fd >= 0) {
        if (poll(fds, 2, -1) < 0 && errno != EINTR)
            break;
        for (int i = 0; i < 2; i++) {
            if (fds[i].fd < 0 || !fds[i].revents)
                continue;
            char chunk[16384];
            ssize_t n = read(fds[i].fd, chunk, sizeof chunk);
            if (n > 0 && sinks[i] && sinks[i]->len < MAX_OUTPUT) {
                tm_buf_add(sinks[i], chunk, (size_t)n);
            } else if (n == 0 || (n < 0 && errno != EINTR && errno != EAGAIN)) {
                close(fds[i].fd);
                fds[i].fd = -1;
            }
        }
    }
    int st = 0;
    while (waitpid(pid, &st, 0) < 0 && errno == EINTR)
        ;
    *status = WIFEXITED(st) ? WEXITSTATUS(st) : 128 + WTERMSIG(st);
    return TM_OK;
}
