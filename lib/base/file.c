#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"

static sp_status read_all(int fd, const char *path, size_t size, char *out, sp_error *err) {
    size_t have = 0;
    while (have < size) {
        ssize_t got = read(fd, out + have, size - have);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return sp_fail(err, SP_ERR_IO, "%s: cannot be read: %s", path, strerror(errno));
        if (got == 0)
            return sp_fail(err, SP_ERR_IO, "%s: became shorter while it was read", path);
        have += (size_t)got;
    }
    return SP_OK;
}

sp_status sp_file_read(const char *path, size_t limit, void **bytes, size_t *size, sp_error *err) {
    *bytes = NULL;
    *size = 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return sp_fail(err, errno == ENOENT || errno == ENOTDIR ? SP_ERR_NOT_FOUND : SP_ERR_IO, "%s: %s", path,
                       strerror(errno));
    struct stat st;
    sp_status status = SP_OK;
    if (fstat(fd, &st) != 0)
        status = sp_fail(err, SP_ERR_IO, "%s: %s", path, strerror(errno));
    else if (!S_ISREG(st.st_mode))
        status = sp_fail(err, SP_ERR_IO, "%s: not a regular file", path);
    else if ((uintmax_t)st.st_size > limit)
        status = sp_fail(err, SP_ERR_LIMIT, "%s: has %jd bytes, more than the %zu allowed", path, (intmax_t)st.st_size,
                         limit);
    if (status == SP_OK) {
        size_t n = (size_t)st.st_size;
        char *out = malloc(n ? n : 1);
        if (!out)
            status = sp_fail_memory(err, path, n);
        else if ((status = read_all(fd, path, n, out, err)) == SP_OK) {
            *bytes = out;
            *size = n;
        } else
            free(out);
    }
    close(fd);
    return status;
}

sp_status sp_sha256_hex(const void *bytes, size_t size, char hex[65], sp_error *err) {
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned int length = 0;
    hex[0] = '\0';
    if (!EVP_Digest(bytes, size, digest, &length, EVP_sha256(), NULL) || length != 32)
        return sp_fail(err, SP_ERR_MEMORY, "SHA-256 could not be computed");
    for (unsigned int i = 0; i < 32; i++) {
        hex[2 * i] = "0123456789abcdef"[digest[i] >> 4];
        hex[2 * i + 1] = "0123456789abcdef"[digest[i] & 15];
    }
    hex[64] = '\0';
    return SP_OK;
}
