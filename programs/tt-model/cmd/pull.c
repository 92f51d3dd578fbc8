/* pull.c - tt-model pull */
#include "base/json.h"
#include "base/ui.h"
#include "cli.h"
#include "package/install.h"

int tm_cmd_pull(const tm_args *a, tm_error *e) {
    tm_target t;
    int rc = tm_target_parse(a->words.items[0], false, &t, e);
    if (rc)
        return rc;
    tm_hub hub;
    tm_hub_open(&hub);
    tm_pull_options o = {
        .weights = tm_flag(a, "with-weights"), .no_image = tm_flag(a, "no-image"), .reload = tm_flag(a, "force")};
    rc = tm_pull(&hub, t.id, t.revision, &o, e);
    if (!rc) {
        tm_note("✓", "pulled %s", t.id);
        tm_note("→", "next:  tt-model serve %s", t.id);
    }
    json_t *record = NULL;
    if (!rc && tm_ui_json() && tm_installed_find(t.id, &record, e) == TM_OK)
        tm_json_print(record);
    json_decref(record);
    tm_hub_close(&hub);
    tm_target_free(&t);
    return rc;
}
