/* Reading what the user names. */
#ifndef SP_COMMON_INPUT_H
#define SP_COMMON_INPUT_H

#include <stddef.h>

#include "superpoint.h"

/* Largest picture file that the programs read. */
#define SP_MAX_INPUT_BYTES ((size_t)1 << 30)

/* Read a file, a pipe, or "-" for standard input, whole; the caller frees *bytes. */
sp_status sp_input_read(const char *path, size_t limit, void **bytes, size_t *size, sp_error *err);

#endif
