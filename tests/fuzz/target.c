/* Request targets and query strings. */
#include "target.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char *text = malloc(size + 1), *path, *query, *name, *value;
    bool wrong;
    if (!text)
        abort();
    memcpy(text, data, size);
    text[size] = '\0';
    if (target_split(text, &path, &query)) {
        if (*path != '/' && strcmp(path, "*") != 0)
            abort();
        while (target_next(&query, &name, &value, &wrong))
            if (strlen(name) + strlen(value) > size)
                abort();
    }
    free(text);
    return 0;
}
