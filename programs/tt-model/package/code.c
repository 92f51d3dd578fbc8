#include "code.h"

#include "base/fs.h"
#include "base/hash.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { CHUNK = 1 << 16 };

static const char *const left_out[] = {"__pycache__", "*.pyc",  ".pytest_cache", "*.egg-info",    ".venv",
                                       "venv",        "logs",   "*.log",         "*.safetensors", "*.pt",
                                       "*.pth",       "*.ckpt", "*.bin",         "*.refpt"};

static bool is_left_out(const char *name) {
    for (size_t i = 0; i < sizeof left_out / sizeof *left_out; i++)
        if (fnmatch(left_out[i], name, 0) == 0)
            return true;
    return false;
}

int tm_copy_file(const char *from, const char *to, tm_error *e) {
    struct stat st;
    int in = open(from, O_RDONLY | O_CLOEXEC), rc = tm_mkdirs_for(to, e);
    if (in < 0 || fstat(in, &st) != 0)
        rc = tm_fail(e, TM_ERROR, "cannot open %s: %s", from, strerror(errno));
    int out = rc ? -1 : open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, st.st_mode & 0111 ? 0755 : 0644);
    if (!rc && out < 0)
        rc = tm_fail(e, TM_ERROR, "cannot create %s: %s", to, strerror(errno));
    char chunk[CHUNK];
    ssize_t n = 0;
    while (!rc && (n = read(in, chunk, sizeof chunk)) > 0)
        if (write(out, chunk, (size_t)n) != n)
            rc = tm_fail(e, TM_ERROR, "cannot write %s: %s", to, strerror(errno));
    if (!rc && n < 0)
        rc = tm_fail(e, TM_ERROR, "cannot read %s: %s", from, strerror(errno));
    if (in >= 0)
        close(in);
    if (out >= 0 && close(out) != 0 && !rc)
        rc = tm_fail(e, TM_ERROR, "cannot write %s: %s", to, strerror(errno));
    return rc;
}

static int stage(const char *from, const char *to, const char *shown, tm_list *dropped, tm_error *e) {
    struct stat st;
    if (lstat(from, &st) != 0)
        return tm_fail(e, TM_ERROR, "cannot look at %s: %s", from, strerror(errno));
    if (is_left_out(tm_basename(from)) || S_ISLNK(st.st_mode)) {
        tm_list_add(dropped, shown);
        return TM_OK;
    }
    if (S_ISREG(st.st_mode))
        return tm_copy_file(from, to, e);
    struct dirent **names = NULL;
    int n = S_ISDIR(st.st_mode) ? scandir(from, &names, NULL, alphasort) : -1, rc = TM_OK;
    if (n < 0)
        return tm_fail(e, TM_ERROR, "%s is neither a file nor a directory", from);
    for (int i = 0; i < n; i++) {
        const char *name = names[i]->d_name;
        if (!rc && strcmp(name, ".") != 0 && strcmp(name, "..") != 0) {
            char *a = tm_join(from, name), *b = tm_join(to, name), *c = tm_join(shown, name);
            rc = stage(a, b, c, dropped, e);
            free(a);
            free(b);
            free(c);
        }
        free(names[i]);
    }
    free(names);
    return rc;
}

static int stage_paths(const tm_authored *a, const char *root, const json_t *paths, const char *out, tm_list *dropped,
                       tm_error *e) {
    char *base = tm_authored_path(a, root);
    int rc = TM_OK;
    size_t i;
    json_t *v;
    json_array_foreach(paths, i, v) {
        const char *path = json_string_value(v);
        char *from = tm_join(base, path), *to = tm_join(out, path);
        if (!rc)
            rc = stage(from, to, path, dropped, e);
        free(from);
        free(to);
    }
    free(base);
    return rc;
}

int tm_code_stage(const tm_authored *a, const char *out, tm_list *dropped, tm_error *e) {
    const json_t *source = tm_json_object(a->doc, "source");
    const char *metal = tm_json_str(source, "tt_metal");
    int rc = metal ? stage_paths(a, metal, json_object_get(source, "code"), out, dropped, e) : TM_OK;
    size_t i;
    json_t *v;
    json_array_foreach(json_object_get(source, "extra_code"), i, v) {
        if (!rc)
            rc = stage_paths(a, tm_json_str(v, "root"), json_object_get(v, "paths"), out, dropped, e);
    }
    return rc;
}

int tm_path_order(const char *a, const char *b) {
    for (; *a && *a == *b; a++, b++)
        ;
    /* A part that ends comes before one that goes on. */
    int x = !*a ? -1 : *a == '/' ? 0 : (unsigned char)*a, y = !*b ? -1 : *b == '/' ? 0 : (unsigned char)*b;
    return x - y;
}

static int by_parts(const void *a, const void *b) {
    return tm_path_order(*(char *const *)a, *(char *const *)b);
}

int tm_code_digest(const char *dir, char hex[65], tm_error *e) {
    tm_list files = {0};
    int rc = tm_walk_files(dir, true, &files, e);
    if (files.count)
        qsort(files.items, files.count, sizeof *files.items, by_parts);
    tm_hash *h = tm_hash_new(TM_SHA256);
    char chunk[CHUNK];
    for (size_t i = 0; i < files.count && !rc; i++) {
        char *path = tm_join(dir, files.items[i]);
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        ssize_t n = -1;
        tm_hash_add(h, files.items[i], strlen(files.items[i]));
        while (fd >= 0 && (n = read(fd, chunk, sizeof chunk)) > 0)
            tm_hash_add(h, chunk, (size_t)n);
        if (n < 0)
            rc = tm_fail(e, TM_ERROR, "cannot read %s: %s", path, strerror(errno));
        if (fd >= 0)
            close(fd);
        free(path);
    }
    tm_hash_end(h, hex);
    tm_list_free(&files);
    return rc;
}
