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
