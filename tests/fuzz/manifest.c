/* tt_kernel_manifest.json: the document, and each of its profiles. */
#include <stdint.h>
#include <stdlib.h>

#include "package/manifest.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    tm_manifest manifest;
    tm_error err;
    if (tm_manifest_parse((const char *)data, size, "fuzz", &manifest, &err) != TM_OK)
        return 0;
    for (size_t i = 0; i < manifest.profile_count; i++) {
        tm_profile profile;
        if (tm_manifest_profile(&manifest, manifest.profiles[i], &profile, &err) == TM_OK)
            tm_profile_free(&profile);
    }
    if (manifest.container)
        free(tm_manifest_image_ref(&manifest));
    tm_manifest_free(&manifest);
    return 0;
}
