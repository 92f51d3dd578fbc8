/* Whole files, read at once. */
#ifndef SP_BASE_FILE_H
#define SP_BASE_FILE_H

#include "superpoint.h"

/* Read a regular file of at most `limit` bytes; the caller frees *bytes. */
sp_status sp_file_read(const char *path, size_t limit, void **bytes, size_t *size, sp_error *err);

/* SHA-256 as 64 hexadecimal digits and a terminator. */
sp_status sp_sha256_hex(const void *bytes, size_t size, char hex[65], sp_error *err);

#endif
