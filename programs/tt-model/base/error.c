#include "error.h"

#include <stdarg.h>
#include <stdio.h>

int tm_fail(tm_error *e, int code, const char *fmt, ...) {
    if (e) {
        va_list ap;
        e->code = code;
        e->why[0] = e->next[0] = '\0';
        va_start(ap, fmt);
        vsnprintf(e->what, sizeof e->what, fmt, ap);
        va_end(ap);
    }
    return code;
}

void tm_why(tm_error *e, const char *fmt, ...) {
    if (!e)
        return;
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(e->why, sizeof e->why, fmt, ap);
    va_end(ap);
}

void tm_next(tm_error *e, const char *fmt, ...) {
    if (!e)
        return;
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(e->next, sizeof e->next, fmt, ap);
    va_end(ap);
}

const char *tm_code_name(int code) {
    switch (code) {
    case TM_OK:
        return "OK";
    case TM_USAGE:
        return "USAGE";
    case TM_NO_DEVICES:
        return "NO_DEVICES";
    case TM_TOOL_MISSING:
        return "TOOL_MISSING";
    case TM_TOOL_FAILED:
        return "TOOL_FAILED";
    case TM_NEEDS_SUDO:
        return "NEEDS_SUDO";
    case TM_UNSUPPORTED:
        return "UNSUPPORTED";
    case TM_OFFLINE:
        return "OFFLINE";
    case TM_CONFIG:
        return "CONFIG";
    case TM_INTERRUPTED:
        return "INTERRUPTED";
    default:
        return "ERROR";
    }
}
