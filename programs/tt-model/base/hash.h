/* hash.h - digests of files and bytes, as lower-case hexadecimal text. */
#ifndef TM_HASH_H
#define TM_HASH_H

#include "error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct tm_hash tm_hash;

typedef enum { TM_SHA256, TM_SHA1 } tm_hash_kind;

tm_hash *tm_hash_new(tm_hash_kind kind);
void tm_hash_add(tm_hash *h, const void *data, size_t n);
/* Frees h. `hex` holds 64 or 40 digits and the end. */
void tm_hash_end(tm_hash *h, char hex[65]);

int tm_sha256_file(const char *path, char hex[65], tm_error *e);
void tm_sha256(const void *data, size_t n, char hex[65]);

/* The id that git gives to a file: SHA-1 of "blob <size>\0" and its bytes. */
int tm_git_blob_file(const char *path, char hex[65], tm_error *e);

#endif
