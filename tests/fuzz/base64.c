/* Base64: what is decoded, encoded again and decoded again is the same. */
#include "common/base64.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "input.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    uint8_t *text = malloc(size ? size : 1), *bytes;
    size_t decoded = 0, again = 0, position = 0;
    sp_error err;
    buffer encoded = {0};
    if (!text)
        abort();
    memcpy(text, data, size);
    if (base64_decode(text, size, &decoded, &position)) {
        if (decoded > size / 4 * 3 + 2)
            abort();
        base64_encode(&encoded, text, decoded);
        if (encoded.failed || !base64_decode(encoded.data, encoded.size, &again, &position) || again != decoded ||
            memcmp(encoded.data, text, decoded) != 0)
            abort();
    } else if (position > size) {
        abort();
    }
    memcpy(text, data, size);
    if (input_base64("image", text, size, &bytes, &decoded, &err) == SP_OK &&
        (bytes < text || bytes + decoded > text + size))
        abort();
    buffer_free(&encoded);
    free(text);
    return 0;
}
