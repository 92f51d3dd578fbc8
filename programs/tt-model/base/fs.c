#include "fs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

/* Depth beyond which a tree is taken for hostile rather than walked. */
enum { MAX_TREE_DEPTH = 64 };

static int io_error(tm_error *e, const char *verb, const char *path) {
    int err = errno;
    int code = err == EACCES || err == EPERM || err == EROFS ? TM_NEEDS_SUDO : TM_ERROR;
    tm_fail(e, code, "cannot %s %s: %s", verb, path, strerror(err));
    if (err == ENOSPC || err == EDQUOT)
        tm_next(e, "Free space on that disk, or point HF_HOME at a larger one, and run the same command again.");
    return code;
}

char *tm_join(const char *a, const char *b) {
    return tm_fmt(tm_ends_with(a, "/") ? "%s%s" : "%s/%s", a, b);
}

char *tm_dirname(const char *path) {
    const char *slash = strrchr(path, '/');
    if (!slash)
        return tm_strdup(".");
    return slash == path ? tm_strdup("/") : tm_strndup(path, (size_t)(slash - path));
}

const char *tm_basename(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

int tm_mkdirs(const char *path, tm_error *e) {
    char *p = tm_strdup(path);
    int rc = TM_OK;
    for (char *s = p + 1;; s++) {
        if (*s != '/' && *s != '\0')
            continue;
        char saved = *s;
        *s = '\0';
        struct stat st;
        if (mkdir(p, 0777) != 0 && (errno != EEXIST || stat(p, &st) != 0 || !S_ISDIR(st.st_mode))) {
            if (errno == EEXIST || errno == 0)
                errno = ENOTDIR;
            rc = io_error(e, "create the directory", p);
            break;
        }
        *s = saved;
        if (!saved)
            break;
    }
    free(p);
    return rc;
}

int tm_mkdirs_for(const char *path, tm_error *e) {
    char *dir = tm_dirname(path);
    int rc = tm_mkdirs(dir, e);
    free(dir);
    return rc;
}

int tm_read_file(const char *path, size_t limit, tm_buf *out, tm_error *e) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return io_error(e, "open", path);
    struct stat st;
    int rc = TM_OK;
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
        rc = tm_fail(e, TM_ERROR, "%s is not a regular file", path);
        goto done;
    }
    if ((uintmax_t)st.st_size > limit) {
        rc =
            tm_fail(e, TM_ERROR, "%s is %jd bytes, more than the %zu that are read", path, (intmax_t)st.st_size, limit);
        goto done;
    }
    char chunk[65536];
    ssize_t n;
    while ((n = read(fd, chunk, sizeof chunk)) != 0) {
        if (n < 0) {
            if (errno == EINTR)
                continue;
            rc = io_error(e, "read", path);
            goto done;
        }
        if (out->len + (size_t)n > limit) {
            rc = tm_fail(e, TM_ERROR, "%s grew beyond the %zu bytes that are read", path, limit);
            goto done;
        }
        tm_buf_add(out, chunk, (size_t)n);
    }
    if (!out->data)
        tm_buf_add(out, "", 0);
done:
    close(fd);
    if (rc)
        tm_buf_free(out);
    return rc;
}

bool tm_write_all(int fd, const void *data, size_t len) {
    for (size_t done = 0; done < len;) {
        ssize_t n = write(fd, (const char *)data + done, len - done);
        if (n < 0 && errno != EINTR)
            return false;
        if (n > 0)
            done += (size_t)n;
    }
    return true;
}

int tm_write_file(const char *path, const void *data, size_t len, tm_error *e) {
    int rc = tm_mkdirs_for(path, e);
    if (rc)
        return rc;
    char *tmp = tm_fmt("%s.%ld.tmp", path, (long)getpid());
    int fd = open(tmp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (fd < 0) {
        rc = io_error(e, "create", tmp);
        free(tmp);
        return rc;
    }
    if (!tm_write_all(fd, data, len))
        rc = io_error(e, "write", tmp);
    if (!rc && fsync(fd) != 0)
        rc = io_error(e, "flush", tmp);
    if (close(fd) != 0 && !rc)
        rc = io_error(e, "close", tmp);
    if (!rc && rename(tmp, path) != 0)
        rc = io_error(e, "rename a file to", path);
    if (rc)
        unlink(tmp);
    free(tmp);
    return rc;
}

static int remove_at(int dir, const char *name, const char *shown, int depth, tm_error *e) {
    if (unlinkat(dir, name, 0) == 0 || errno == ENOENT)
        return TM_OK;
    if (errno != EISDIR && errno != EPERM && errno != ENOTEMPTY)
        return io_error(e, "remove", shown);
    if (depth > MAX_TREE_DEPTH)
        return tm_fail(e, TM_ERROR, "%s is nested too deep to remove", shown);
    int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return io_error(e, "open", shown);
    DIR *d = fdopendir(fd);
    if (!d) {
        close(fd);
        return io_error(e, "list", shown);
    }
    int rc = TM_OK;
    struct dirent *ent;
    while (!rc && (ent = readdir(d))) {
        if (strcmp(ent->d_name, ".") != 0 && strcmp(ent->d_name, "..") != 0) {
            char *sub = tm_join(shown, ent->d_name);
            rc = remove_at(fd, ent->d_name, sub, depth + 1, e);
            free(sub);
        }
    }
    closedir(d);
    if (!rc && unlinkat(dir, name, AT_REMOVEDIR) != 0)
        rc = io_error(e, "remove", shown);
    return rc;
}

int tm_remove_tree(const char *path, tm_error *e) {
    return remove_at(AT_FDCWD, path, path, 0, e);
}

uint64_t tm_tree_bytes(const char *path) {
    struct stat st;
    if (lstat(path, &st) != 0)
        return 0;
    if (S_ISREG(st.st_mode))
        return (uint64_t)st.st_size;
    DIR *d = S_ISDIR(st.st_mode) ? opendir(path) : NULL;
    if (!d)
        return 0;
    uint64_t sum = 0;
    struct dirent *ent;
    while ((ent = readdir(d))) {
        if (!strcmp(ent->d_name, ".") || !strcmp(ent->d_name, ".."))
            continue;
        char *sub = tm_join(path, ent->d_name);
        sum += tm_tree_bytes(sub);
        free(sub);
    }
    closedir(d);
    return sum;
}

static int walk(const char *root, const char *rel, bool skip_links, int depth, tm_list *out, tm_error *e) {
    char *here = *rel ? tm_join(root, rel) : tm_strdup(root);
    struct dirent **names = NULL;
    int n = scandir(here, &names, NULL, alphasort), rc = TM_OK;
    if (n < 0)
        rc = io_error(e, "list", here);
    if (depth > MAX_TREE_DEPTH)
        rc = tm_fail(e, TM_ERROR, "%s is nested too deep", here);
    for (int i = 0; i < n; i++) {
        const char *name = names[i]->d_name;
        if (!rc && strcmp(name, ".") != 0 && strcmp(name, "..") != 0) {
            char *sub = *rel ? tm_join(rel, name) : tm_strdup(name);
            char *full = tm_join(root, sub);
            struct stat st;
            if (lstat(full, &st) != 0)
                rc = io_error(e, "look at", full);
            else if (S_ISDIR(st.st_mode))
                rc = walk(root, sub, skip_links, depth + 1, out, e);
            else if (S_ISREG(st.st_mode))
                tm_list_add(out, sub);
            else if (!skip_links)
                rc = tm_fail(e, TM_ERROR, "%s is neither a file nor a directory", full);
            free(sub);
            free(full);
        }
        free(names[i]);
    }
    free(names);
    free(here);
    return rc;
}

int tm_walk_files(const char *root, bool skip_links, tm_list *out, tm_error *e) {
    return walk(root, "", skip_links, 0, out, e);
}

int tm_free_bytes(const char *path, uint64_t *out) {
    char *p = tm_strdup(path);
    struct statvfs vfs;
    int rc;
    while ((rc = statvfs(p, &vfs)) != 0 && strcmp(p, "/") != 0 && strcmp(p, ".") != 0) {
        char *up = tm_dirname(p);
        free(p);
        p = up;
    }
    free(p);
    if (rc == 0)
        *out = (uint64_t)vfs.f_bavail * vfs.f_frsize;
    return rc;
}

bool tm_exists(const char *path) {
    struct stat st;
    return stat(path, &st) == 0;
}

bool tm_is_dir(const char *path) {
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

int64_t tm_file_size(const char *path) {
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode) ? (int64_t)st.st_size : -1;
}

bool tm_path_is_safe(const char *path) {
    size_t len = strlen(path);
    if (len == 0 || len > 1024 || *path == '/')
        return false;
    for (const char *part = path;;) {
        size_t n = strcspn(part, "/");
        if (n == 0 || n > 255 || (n == 1 && part[0] == '.') || (n == 2 && part[0] == '.' && part[1] == '.'))
            return false;
        for (size_t i = 0; i < n; i++)
            if ((unsigned char)part[i] < 0x20 || part[i] == 0x7f || part[i] == '\\')
                return false;
        if (!part[n])
            return true;
        part += n + 1;
    }
}

bool tm_is_slug(const char *s) {
    if (!((*s >= 'a' && *s <= 'z') || (*s >= '0' && *s <= '9')) || strlen(s) > 128 || strstr(s, ".."))
        return false;
    return s[strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789._-")] == '\0';
}

bool tm_is_repo_id(const char *s) {
    static const char set[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
    size_t a = strspn(s, set);
    if (a == 0 || a > 96 || s[a] != '/')
        return false;
    size_t b = strspn(s + a + 1, set);
    if (b == 0 || b > 96 || s[a + 1 + b] != '\0' || strstr(s, "..") || strstr(s, "--"))
        return false;
    return s[0] != '.' && s[0] != '-' && s[a + 1] != '.' && s[a + 1] != '-';
}

bool tm_is_revision(const char *s) {
    return tm_path_is_safe(s) && !strpbrk(s, " ?*[~^:") && *s != '-';
}

bool tm_is_hex(const char *s, size_t n) {
    return strlen(s) == n && strspn(s, "0123456789abcdef") == n;
}

int tm_lock_file(const char *path, bool (*cancelled)(void *arg), void (*on_wait)(void *arg), void *arg, tm_lock *lock,
                 tm_error *e) {
    lock->fd = -1;
    int rc = tm_mkdirs_for(path, e);
    if (rc)
        return rc;
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (fd < 0)
        return io_error(e, "open the lock", path);
    bool told = false;
    while (flock(fd, LOCK_EX | LOCK_NB) != 0) {
        if (errno != EWOULDBLOCK && errno != EINTR) {
            rc = io_error(e, "lock", path);
            close(fd);
            return rc;
        }
        if (!told && on_wait)
            on_wait(arg);
        told = true;
        if (cancelled && cancelled(arg)) {
            close(fd);
            return tm_fail(e, TM_INTERRUPTED, "interrupted");
        }
        nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
    }
    lock->fd = fd;
    return TM_OK;
}

void tm_unlock(tm_lock *lock) {
    if (lock->fd >= 0)
        close(lock->fd);
    lock->fd = -1;
}
