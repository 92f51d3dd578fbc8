/* Writing files that are either whole or not there. */
#ifndef SP_COMMON_OUTPUT_H
#define SP_COMMON_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>

#include "superpoint.h"

/*
 * Write a whole file: into a temporary one beside it, synced, then renamed over it. "-" writes to
 * standard output. Devices and pipes are written directly.
 */
sp_status sp_output_write(const char *path, const void *bytes, size_t size, sp_error *err);

/* Write all of it to an open file, whatever pieces the system takes it in. False: errno says why not. */
bool sp_output_all(int fd, const void *bytes, size_t size);

#endif
