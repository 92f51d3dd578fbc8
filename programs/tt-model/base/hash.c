#include "hash.h"

#include "fs.h"
#include "text.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct tm_hash {
    EVP_MD_CTX *ctx;
};

tm_hash *tm_hash_new(tm_hash_kind kind) {
    tm_hash *h = tm_alloc(sizeof *h);
    h->ctx = EVP_MD_CTX_new();
    if (!h->ctx || EVP_DigestInit_ex(h->ctx, kind == TM_SHA256 ? EVP_sha256() : EVP_sha1(), NULL) != 1) {
        fputs("tt-model: the digest is not available in this OpenSSL\n", stderr);
        exit(TM_ERROR);
    }
    return h;
}

void tm_hash_add(tm_hash *h, const void *data, size_t n) {
    EVP_DigestUpdate(h->ctx, data, n);
}

void tm_hash_end(tm_hash *h, char hex[65]) {
    unsigned char md[EVP_MAX_MD_SIZE];
    unsigned int n = 0;
    EVP_DigestFinal_ex(h->ctx, md, &n);
    EVP_MD_CTX_free(h->ctx);
    free(h);
    for (unsigned int i = 0; i < n && i < 32; i++)
        snprintf(hex + 2 * i, 3, "%02x", md[i]);
}

static int hash_file(tm_hash *h, const char *path, char hex[65], tm_error *e) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    int rc = TM_OK;
    if (fd < 0) {
        rc = tm_fail(e, TM_ERROR, "cannot open %s: %s", path, strerror(errno));
    } else {
        posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL);
        enum { CHUNK = 1 << 18 };
        char *chunk = tm_alloc(CHUNK);
        ssize_t n;
        while ((n = read(fd, chunk, CHUNK)) != 0) {
            if (n < 0 && errno == EINTR)
                continue;
            if (n < 0) {
                rc = tm_fail(e, TM_ERROR, "cannot read %s: %s", path, strerror(errno));
                break;
            }
            tm_hash_add(h, chunk, (size_t)n);
        }
        free(chunk);
        close(fd);
    }
    tm_hash_end(h, hex);
    return rc;
}

int tm_sha256_file(const char *path, char hex[65], tm_error *e) {
    return hash_file(tm_hash_new(TM_SHA256), path, hex, e);
}

void tm_sha256(const void *data, size_t n, char hex[65]) {
    tm_hash *h = tm_hash_new(TM_SHA256);
    tm_hash_add(h, data, n);
    tm_hash_end(h, hex);
}

int tm_git_blob_file(const char *path, char hex[65], tm_error *e) {
    tm_hash *h = tm_hash_new(TM_SHA1);
    char head[64];
    int n = snprintf(head, sizeof head, "blob %lld", (long long)tm_file_size(path));
    tm_hash_add(h, head, (size_t)n + 1);
    return hash_file(h, path, hex, e);
}
