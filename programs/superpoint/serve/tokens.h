/* Bearer tokens (RFC 6750). */
#ifndef SP_SERVE_TOKENS_H
#define SP_SERVE_TOKENS_H

#include "common/buffer.h"
#include "superpoint.h"

typedef struct tokens {
    buffer text; /* terminated, one after the other */
    bool demanded;
} tokens;

/* Read a file of tokens, one a line; at least one. */
sp_status tokens_read(tokens *t, const char *path, sp_error *err);

/* Whether an Authorization header (may be NULL) shows one of them; the time taken tells nothing of how much fits. */
bool tokens_allow(const tokens *t, const char *authorization);
void tokens_free(tokens *t);

#endif
