/* resume.c - tt-model resume: start the native servers again that a restart of the machine has ended. */
#include "base/json.h"
#include "base/ui.h"
#include "cli.h"
#include "runtime/native.h"
#include "runtime/port.h"

#include <stdlib.h>
#include <string.h>

static int resume_one(const json_t *record, json_t **state, tm_error *e) {
    int port = (int)tm_json_int(record, "port", 0), before = port;
    int rc = TM_OK;
    if (!port || !tm_port_free(port))
        rc = tm_port_choose(&port, e);
    if (!rc)
        rc = tm_native_again(record, port, state, e);
    if (!rc) {
        tm_native_await_port(*state);
        tm_step_done("process %lld, port %d%s", (long long)tm_json_int(*state, "pid", 0), port,
                     port == before ? "" : ": the one it had is taken");
    }
    return rc;
}

int tm_cmd_resume(const tm_args *a, tm_error *e) {
    bool all = tm_flag(a, "all");
    json_t *list = tm_native_all(NULL), *done = json_array(), *record;
    tm_lock lock = {-1};
    int failed = 0;
    int rc = tm_choice_lock(&lock, e);
    size_t i;
    json_array_foreach(list, i, record) {
        if (rc || !tm_native_before_boot(record) || (!all && !tm_json_bool(record, "restart", false)))
            continue;
        const char *name = tm_json_str(record, "repo_id");
        name = name ? name : tm_json_str(record, "package");
        json_t *state = NULL;
        tm_error one = {0};
        tm_step("server", "starting %s again", name);
        if (resume_one(record, &state, &one) != TM_OK) {
            tm_step_fail();
            tm_note("✗", "%s: %s", name, one.what);
            *e = one;
            failed++;
        } else {
            json_array_append_new(done, json_pack("{s:s, s:s, s:O, s:O}", "model", name, "profile",
                                                  tm_json_str(state, "profile"), "port", json_object_get(state, "port"),
                                                  "pid", json_object_get(state, "pid")));
        }
        json_decref(state);
    }
    tm_unlock(&lock);
    if (!rc && failed)
        rc = tm_fail(e, TM_TOOL_FAILED, "%d server%s could not be started", failed, failed == 1 ? "" : "s");
    if (!rc && tm_ui_json()) {
        json_t *doc = json_pack("{s:O}", "resumed", done);
        tm_json_print(doc);
        json_decref(doc);
    } else if (!rc && !json_array_size(done)) {
        tm_note("○", "nothing to bring back");
    }
    json_decref(list);
    json_decref(done);
    return rc;
}
