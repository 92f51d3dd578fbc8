/* Multipart bodies; the first line is the boundary. */
#include "body.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    config_limits limits = fuzz_limits();
    sp_error err;
    const uint8_t *line = memchr(data, '\n', size);
    size_t length = line ? (size_t)(line - data) : 0;
    if (length == 0 || length > 70 || memchr(data, 0, length))
        return 0;
    job *j = fuzz_job(line + 1, size - length - 1, BODY_MULTIPART);
    memcpy(j->boundary, data, length);
    fuzz_pictures(j, input_multipart(j, &limits, &err), &limits);
    return 0;
}
