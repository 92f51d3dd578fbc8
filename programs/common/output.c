#include "common/output.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/fail.h"

bool sp_output_all(int fd, const void *from, size_t size) {
    const char *bytes = from;
    while (size > 0) {
        ssize_t n = write(fd, bytes, size);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        bytes += n;
        size -= (size_t)n;
    }
    return true;
}

static sp_status write_directly(int fd, const char *path, const void *bytes, size_t size, sp_error *err) {
    bool ok = sp_output_all(fd, bytes, size);
    int code = errno;
    if (fd != STDOUT_FILENO && close(fd) != 0 && ok) {
        ok = false;
        code = errno;
    }
    return ok ? SP_OK : fail(err, SP_ERR_IO, "%s: cannot be written: %s", path, strerror(code));
}

sp_status sp_output_write(const char *path, const void *bytes, size_t size, sp_error *err) {
    if (strcmp(path, "-") == 0)
        return write_directly(STDOUT_FILENO, "standard output", bytes, size, err);
    struct stat st;
    if (stat(path, &st) == 0 && !S_ISREG(st.st_mode)) {
        int fd = open(path, O_WRONLY | O_CLOEXEC);
        return fd < 0 ? fail(err, SP_ERR_IO, "%s: %s", path, strerror(errno))
                      : write_directly(fd, path, bytes, size, err);
    }
    char temporary[PATH_MAX];
    if ((size_t)snprintf(temporary, sizeof temporary, "%s.%ld.part", path, (long)getpid()) >= sizeof temporary)
        return fail(err, SP_ERR_ARGUMENT, "%s: the path is too long", path);
    int fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd < 0)
        return fail(err, SP_ERR_IO, "%s: %s", path, strerror(errno));
    bool ok = sp_output_all(fd, bytes, size) && fsync(fd) == 0;
    int code = errno;
    ok = close(fd) == 0 && ok;
    if (ok && rename(temporary, path) == 0)
        return SP_OK;
    if (ok)
        code = errno;
    unlink(temporary);
    return fail(err, SP_ERR_IO, "%s: cannot be written: %s", path, strerror(code));
}
