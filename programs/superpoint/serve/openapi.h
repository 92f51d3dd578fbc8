/* The service's own description. */
#ifndef SP_SERVE_OPENAPI_H
#define SP_SERVE_OPENAPI_H

#include "server.h"

/* OpenAPI 3.1, as JSON. */
void openapi_text(const server *s, buffer *out);

#endif
