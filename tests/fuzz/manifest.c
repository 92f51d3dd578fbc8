/* manifest.c - tt_kernel_manifest.json: read, each profile merged, and its launch composed and printed. */
#include "package/manifest.h"
#include "base/text.h"
#include "package/card.h"
#include "runtime/launch.h"

#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void launch(const tm_manifest *m, const tm_profile *p) {
    tm_launch l;
    tm_launch_request q = {.manifest = m, .profile = p, .repo_id = "owner/name", .port = 20000};
    if (tm_launch_make(&q, &l, NULL) != TM_OK)
        return;
    free(tm_launch_shell(&l));
    json_decref(tm_launch_body(&l));
    tm_launch_free(&l);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    tm_manifest m;
    tm_error e;
    if (tm_manifest_parse((const char *)data, size, "fuzz", &m, &e) != TM_OK)
        return 0;
    for (size_t i = 0; m.container && i < m.profile_count; i++) {
        tm_profile p;
        if (tm_manifest_profile(&m, m.profiles[i], &p, &e) == TM_OK) {
            launch(&m, &p);
            tm_profile_free(&p);
        }
    }
    tm_buf card = {0};
    if (m.container)
        tm_card_write(&m, "owner/name", &card, &e);
    tm_buf_free(&card);
    tm_manifest_free(&m);
    return 0;
}
