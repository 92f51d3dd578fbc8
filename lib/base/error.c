#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>

/* The one table: what each status means to a person, to HTTP and to a shell. */
static const struct {
    const char *text;
    short http;
    short exit;
} statuses[] = {
    [SP_OK] = {"ok", 200, 0},
    [SP_ERR_ARGUMENT] = {"invalid parameter", 400, 2},
    [SP_ERR_MEMORY] = {"out of memory", 503, 1},
    [SP_ERR_IO] = {"input or output failed", 500, 1},
    [SP_ERR_IMAGE_FORMAT] = {"not a picture that can be read", 400, 1},
    [SP_ERR_IMAGE_DATA] = {"broken picture", 400, 1},
    [SP_ERR_IMAGE_TOO_LARGE] = {"picture too large", 413, 1},
    [SP_ERR_WEIGHTS_DATA] = {"broken weights file", 500, 1},
    [SP_ERR_WEIGHTS_NETWORK] = {"weights of another network", 500, 1},
    [SP_ERR_NOT_FOUND] = {"not found", 404, 1},
    [SP_ERR_UNAVAILABLE] = {"not available on this machine", 503, 1},
    [SP_ERR_ENGINE] = {"the engine failed", 500, 1},
    [SP_ERR_ENGINE_HUNG] = {"the device does not answer", 503, 1},
    [SP_ERR_LIMIT] = {"over a limit", 413, 1},
    [SP_ERR_INTERNAL] = {"internal error", 500, 1},
};

static bool known(sp_status status) {
    return status >= 0 && (size_t)status < sizeof statuses / sizeof statuses[0];
}

const char *sp_status_text(sp_status status) {
    return known(status) ? statuses[status].text : "unknown status";
}

int sp_status_http(sp_status status) {
    return known(status) ? statuses[status].http : 500;
}

int sp_status_exit(sp_status status) {
    return known(status) ? statuses[status].exit : 1;
}

sp_status sp_fail(sp_error *err, sp_status status, const char *format, ...) {
    if (err) {
        va_list args;
        va_start(args, format);
        err->status = status;
        vsnprintf(err->text, sizeof err->text, format, args);
        va_end(args);
    }
    return status;
}

sp_status sp_fail_memory(sp_error *err, const char *what, size_t bytes) {
    return sp_fail(err, SP_ERR_MEMORY, "out of memory: %s needs %zu bytes", what, bytes);
}

sp_status sp_succeed(sp_error *err) {
    if (err) {
        err->status = SP_OK;
        err->text[0] = '\0';
    }
    return SP_OK;
}
