/* Reporting failures: every function of the library that can fail ends in sp_fail. */
#ifndef SP_BASE_ERROR_H
#define SP_BASE_ERROR_H

#include "superpoint.h"

/* Fill in `err` (may be NULL) and return `status`. The text is cut when it is too long. */
sp_status sp_fail(sp_error *err, sp_status status, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Out of memory while doing `what`, `bytes` of it. */
sp_status sp_fail_memory(sp_error *err, const char *what, size_t bytes);

/* Clear `err` (may be NULL) and return SP_OK. */
sp_status sp_succeed(sp_error *err);

#endif
