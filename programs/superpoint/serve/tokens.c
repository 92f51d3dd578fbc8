#include "tokens.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/fail.h"
#include "common/input.h"

sp_status tokens_read(tokens *t, const char *path, sp_error *err) {
    void *bytes;
    size_t size, start = 0;
    sp_status status = sp_input_read(path, 1 << 20, &bytes, &size, err);
    if (status != SP_OK)
        return status;
    const char *text = bytes;
    for (size_t i = 0; i <= size; i++) {
        if (i < size && text[i] != '\n' && text[i] != '\r')
            continue;
        if (i > start) {
            buffer_put(&t->text, text + start, i - start);
            buffer_char(&t->text, '\0');
        }
        start = i + 1;
    }
    free(bytes);
    t->demanded = true;
    if (t->text.failed)
        return fail(err, SP_ERR_MEMORY, "token-file: out of memory");
    return t->text.size ? SP_OK : fail(err, SP_ERR_ARGUMENT, "token-file: %s holds no token", path);
}

static bool same(const char *a, const char *b) {
    size_t length = strlen(a), given = strlen(b);
    unsigned differ = length != given;
    for (size_t i = 0; i < given; i++)
        differ |= (unsigned char)(a[length ? i % length : 0] ^ b[i]);
    return differ == 0;
}

bool tokens_allow(const tokens *t, const char *authorization) {
    if (!t->demanded)
        return true;
    if (!authorization || strncasecmp(authorization, "Bearer ", 7) != 0)
        return false;
    const char *given = authorization + 7;
    while (*given == ' ')
        given++;
    bool allowed = false;
    const char *p = (const char *)t->text.data, *end = p + t->text.size;
    for (; p < end; p += strlen(p) + 1)
        allowed |= same(p, given);
    return allowed;
}

void tokens_free(tokens *t) {
    buffer_free(&t->text);
}
