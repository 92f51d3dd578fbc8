/* Reporting failures from the programs, in the library's own form. */
#ifndef SP_COMMON_FAIL_H
#define SP_COMMON_FAIL_H

#include "superpoint.h"

/* Fill in `err` (may be NULL) and return `status`. The text is cut when it is too long. */
sp_status fail(sp_error *err, sp_status status, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* `status`; unless it is SP_OK, `err` says "PLACE: " in front of what it said. */
sp_status fail_in(const char *place, sp_status status, sp_error *err);

#endif
