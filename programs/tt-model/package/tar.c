#include "tar.h"

#include "base/fs.h"
#include "base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BLOCK = 512 };

typedef struct entry {
    tm_buf head; /* header blocks, and the bytes of a small file */
    char *path;  /* of a file on disk, or NULL */
    uint64_t size;
    size_t pad; /* zeros behind the file */
} entry;

struct tm_tar {
    entry *entries;
    size_t count, cap;
    uint64_t total;
    /* where reading stands */
    size_t at;
    uint64_t offset; /* in the entry: head, then file, then padding */
    int fd;
    char *error;
};

tm_tar *tm_tar_new(void) {
    tm_tar *t = tm_alloc(sizeof *t);
    t->fd = -1;
    t->total = 2 * BLOCK;
    return t;
}

void tm_tar_free(tm_tar *t) {
    if (!t)
        return;
    for (size_t i = 0; i < t->count; i++) {
        tm_buf_free(&t->entries[i].head);
        free(t->entries[i].path);
    }
    if (t->fd >= 0)
        close(t->fd);
    free(t->entries);
    free(t->error);
    free(t);
}

static size_t padding(uint64_t n) {
    return (size_t)((BLOCK - n % BLOCK) % BLOCK);
}

static void add_zeros(tm_buf *b, size_t n) {
    static const char zeros[BLOCK];
    tm_buf_add(b, zeros, n);
}

static void octal(char *field, size_t width, uint64_t value) {
    char text[32];
    snprintf(text, sizeof text, "%0*llo", (int)width - 1, (unsigned long long)value);
    memcpy(field, text, width - 1); /* the last byte stays zero */
}

static void put_header(tm_buf *b, const char *name, char type, uint64_t size, unsigned mode, int64_t mtime,
                       const char *target) {
    char h[BLOCK] = {0};
    snprintf(h, 100, "%s", name);
    octal(h + 100, 8, mode);
    octal(h + 108, 8, 0);
    octal(h + 116, 8, 0);
    octal(h + 124, 12, size);
    octal(h + 136, 12, mtime > 0 ? (uint64_t)mtime : 0);
    memset(h + 148, ' ', 8);
    h[156] = type;
    snprintf(h + 157, 100, "%s", target ? target : "");
    memcpy(h + 257,
           "ustar\0"
           "00",
           8);
    unsigned sum = 0;
    for (size_t i = 0; i < BLOCK; i++)
        sum += (unsigned char)h[i];
    snprintf(h + 148, 8, "%06o", sum);
    h[155] = ' ';
    tm_buf_add(b, h, BLOCK);
}

/* "<length> key=value\n", where the length counts itself. */
static void pax_record(tm_buf *b, const char *key, const char *value) {
    size_t body = strlen(key) + strlen(value) + 3, len = body + 1;
    char digits[32];
    while ((size_t)snprintf(digits, sizeof digits, "%zu", len) + body != len)
        len = (size_t)snprintf(digits, sizeof digits, "%zu", len) + body;
    tm_buf_printf(b, "%zu %s=%s\n", len, key, value);
}

static entry *add(tm_tar *t, const char *name, char type, uint64_t size, unsigned mode, int64_t mtime,
                  const char *target) {
    if (t->count == t->cap) {
        t->cap = t->cap ? t->cap * 2 : 64;
        t->entries = tm_realloc(t->entries, t->cap, sizeof *t->entries);
    }
    entry *en = &t->entries[t->count++];
    *en = (entry){.size = size, .pad = padding(size)};
    char *full = type == '5' ? tm_fmt("%s/", name) : tm_strdup(name);
    tm_buf pax = {0};
    if (strlen(full) > 99)
        pax_record(&pax, "path", full);
    if (target && strlen(target) > 99)
        pax_record(&pax, "linkpath", target);
    if (size >= (1ULL << 33)) {
        char text[32];
        snprintf(text, sizeof text, "%llu", (unsigned long long)size);
        pax_record(&pax, "size", text);
    }
    if (pax.len) {
        put_header(&en->head, "pax", 'x', pax.len, 0644, mtime, NULL);
        tm_buf_add(&en->head, pax.data, pax.len);
        add_zeros(&en->head, padding(pax.len));
    }
    put_header(&en->head, full, type, size < (1ULL << 33) ? size : 0, mode, mtime, target);
    tm_buf_free(&pax);
    free(full);
    return en;
}

static void count(tm_tar *t, const entry *en) {
    t->total += en->head.len + (en->path ? en->size + en->pad : 0);
}

void tm_tar_add_bytes(tm_tar *t, const char *name, const void *data, size_t n, unsigned mode, int64_t mtime) {
    entry *en = add(t, name, '0', n, mode, mtime, NULL);
    tm_buf_add(&en->head, data, n);
    add_zeros(&en->head, en->pad);
    count(t, en);
}

int tm_tar_add_file(tm_tar *t, const char *name, const char *path, unsigned mode, int64_t mtime, tm_error *e) {
    int64_t size = tm_file_size(path);
    if (size < 0)
        return tm_fail(e, TM_ERROR, "%s is not a regular file", path);
    entry *en = add(t, name, '0', (uint64_t)size, mode, mtime, NULL);
    en->path = tm_strdup(path);
    count(t, en);
    return TM_OK;
}

void tm_tar_add_dir(tm_tar *t, const char *name, unsigned mode, int64_t mtime) {
    count(t, add(t, name, '5', 0, mode, mtime, NULL));
}

void tm_tar_add_link(tm_tar *t, const char *name, const char *target, int64_t mtime) {
    count(t, add(t, name, '2', 0, 0777, mtime, target));
}

static long read_file(tm_tar *t, const entry *en, char *data, size_t n, uint64_t left) {
    if (t->fd < 0)
        t->fd = open(en->path, O_RDONLY | O_CLOEXEC);
    ssize_t k = t->fd < 0 ? -1 : read(t->fd, data, n < left ? n : (size_t)left);
    if (k <= 0) {
        free(t->error);
        t->error = tm_fmt(k < 0 ? "cannot read %s: %s" : "%s became shorter", en->path, strerror(errno));
        return -1;
    }
    if ((uint64_t)k == left) {
        close(t->fd);
        t->fd = -1;
    }
    return k;
}

long tm_tar_read(tm_tar *t, char *data, size_t n) {
    while (t->at < t->count) {
        const entry *en = &t->entries[t->at];
        uint64_t at = t->offset, file = en->path ? en->size : 0, end = en->head.len + file + (en->path ? en->pad : 0);
        if (at >= end) {
            t->at++;
            t->offset = 0;
            continue;
        }
        long k;
        if (at < en->head.len) {
            size_t left = en->head.len - (size_t)at;
            k = (long)(n < left ? n : left);
            memcpy(data, en->head.data + at, (size_t)k);
        } else if (at < en->head.len + file) {
            k = read_file(t, en, data, n, en->head.len + file - at);
            if (k < 0)
                return -1;
        } else {
            k = (long)(n < end - at ? n : end - at);
            memset(data, 0, (size_t)k);
        }
        t->offset += (uint64_t)k;
        return k;
    }
    uint64_t left = 2 * BLOCK - t->offset; /* the end: two blocks of zeros */
    long k = (long)(n < left ? n : left);
    memset(data, 0, (size_t)k);
    t->offset += (uint64_t)k;
    return k;
}

uint64_t tm_tar_total(const tm_tar *t) {
    return t->total;
}

const char *tm_tar_error(const tm_tar *t) {
    return t->error ? t->error : "";
}
