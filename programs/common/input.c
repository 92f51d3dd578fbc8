#include "common/input.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/fail.h"

static sp_status read_stream(FILE *in, const char *name, size_t limit, void **bytes, size_t *size, sp_error *err) {
    size_t room = 1 << 16, have = 0;
    char *out = malloc(room);
    while (out) {
        have += fread(out + have, 1, room - have, in);
        if (have > limit || ferror(in) || have < room)
            break;
        char *more = realloc(out, 2 * room);
        if (!more) {
            free(out);
            out = NULL;
            break;
        }
        out = more;
        room *= 2;
    }
    sp_status status = SP_OK;
    if (!out)
        status = fail(err, SP_ERR_MEMORY, "%s: out of memory", name);
    else if (have > limit)
        status = fail(err, SP_ERR_LIMIT, "%s: has more than the %zu bytes allowed", name, limit);
    else if (ferror(in))
        status = fail(err, SP_ERR_IO, "%s: cannot be read: %s", name, strerror(errno));
    if (status != SP_OK) {
        free(out);
        return status;
    }
    *bytes = out;
    *size = have;
    return SP_OK;
}

sp_status sp_input_read(const char *path, size_t limit, void **bytes, size_t *size, sp_error *err) {
    *bytes = NULL;
    *size = 0;
    if (strcmp(path, "-") == 0)
        return read_stream(stdin, "standard input", limit, bytes, size, err);
    FILE *in = fopen(path, "rbe");
    if (!in)
        return fail(err, errno == ENOENT ? SP_ERR_NOT_FOUND : SP_ERR_IO, "%s: %s", path, strerror(errno));
    sp_status status = read_stream(in, path, limit, bytes, size, err);
    fclose(in);
    return status;
}
