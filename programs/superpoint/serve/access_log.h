/* One JSON line for each request. */
#ifndef SP_SERVE_ACCESS_LOG_H
#define SP_SERVE_ACCESS_LOG_H

#include "http.h"

/* `r` is NULL for what ended without ever being a request. */
void access_log(server *s, const char *peer, const char *method, const char *target, int status, const request *r);

#endif
