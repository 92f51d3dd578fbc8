#include "access_log.h"

#include <string.h>
#include <time.h>

#include "common/clock.h"
#include "common/jsonout.h"

void access_log(server *s, const char *peer, const char *method, const char *target, int status, const request *r) {
    char when[40];
    struct timespec now;
    struct tm utc;
    buffer line = {0};
    if (!s->log)
        return;
    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &utc);
    strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%S", &utc);
    buffer_format(&line, "{\"time\": \"%s.%03ldZ\", \"remote\": \"%s\", \"method\": ", when, now.tv_nsec / 1000000,
                  peer);
    json_put_string(&line, method);
    buffer_text(&line, ", \"target\": ");
    json_put_string_n(&line, target, strnlen(target, 256));
    buffer_format(&line, ", \"status\": %d", status);
    if (r) {
        buffer_format(&line, ", \"bytes_in\": %zu, \"bytes_out\": %zu, \"ms\": %.3f, \"id\": ", r->body_bytes,
                      r->sent_bytes, now_ms() - r->started_ms);
        json_put_string(&line, r->id);
    }
    buffer_text(&line, "}\n");
    if (!line.failed)
        log_write(s->log, (char *)line.data, line.size);
    buffer_free(&line);
}
