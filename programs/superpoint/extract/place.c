#include "extract/place.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/fail.h"

enum { OPEN_FOLDERS = 16 };

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *ftw) {
    (void)st;
    (void)kind;
    (void)ftw;
    return remove(path);
}

void place_remove(const char *path) {
    nftw(path, remove_one, OPEN_FOLDERS, FTW_DEPTH | FTW_PHYS);
}

/* Files have their data synced; so have folders, whose data are the names in them. */
static int sync_one(const char *path, const struct stat *st, int kind, struct FTW *ftw) {
    (void)st;
    (void)kind;
    (void)ftw;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    const int code = fsync(fd);
    close(fd);
    return code;
}

static void sync_parent(const char *path) {
    char parent[PATH_MAX];
    snprintf(parent, sizeof parent, "%s", path);
    char *slash = strrchr(parent, '/');
    if (slash == parent)
        slash[1] = '\0';
    else if (slash)
        *slash = '\0';
    struct stat st;
    sync_one(slash ? parent : ".", &st, 0, NULL);
}

sp_status place_move(const char *from, const char *to, sp_error *err) {
    struct stat st;
    char target[PATH_MAX];
    snprintf(target, sizeof target, "%s", to);
    for (size_t n = strlen(target); n > 1 && target[n - 1] == '/'; n--)
        target[n - 1] = '\0';
    if (nftw(from, sync_one, OPEN_FOLDERS, FTW_DEPTH | FTW_PHYS) != 0)
        return fail(err, SP_ERR_IO, "%.300s: cannot be written: %s", to, strerror(errno));
    if (lstat(target, &st) == 0 && S_ISDIR(st.st_mode))
        place_remove(target); /* a folder is not replaced by rename */
    if (rename(from, target) != 0)
        return fail(err, SP_ERR_IO, "%.300s: %s", to, strerror(errno));
    sync_parent(target);
    return SP_OK;
}
