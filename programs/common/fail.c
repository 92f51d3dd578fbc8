#include "common/fail.h"

#include <stdarg.h>
#include <stdio.h>

sp_status fail(sp_error *err, sp_status status, const char *format, ...) {
    if (err) {
        va_list args;
        va_start(args, format);
        err->status = status;
        vsnprintf(err->text, sizeof err->text, format, args);
        va_end(args);
    }
    return status;
}

sp_status fail_in(const char *place, sp_status status, sp_error *err) {
    if (status == SP_OK || !err)
        return status;
    const sp_error inner = *err;
    return fail(err, status, "%.200s: %.300s", place, inner.text);
}
