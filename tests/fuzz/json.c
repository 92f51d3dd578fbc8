/* JSON bodies of /predict: checked, walked, taken apart, decoded. */
#include "body.h"

#include <string.h>

#include "common/json.h"

/* Walk everything, so that the walk is held to what the check let pass. */
static void walk(const json_value *value, const char *end, unsigned depth) {
    json_value key, item;
    if (value->text + value->size > end || depth > 16)
        abort();
    json_walk w = json_begin(value);
    if (value->type == JSON_ARRAY)
        while (json_next_item(&w, &item))
            walk(&item, end, depth + 1);
    if (value->type == JSON_OBJECT)
        while (json_next_member(&w, &key, &item)) {
            if (key.type != JSON_STRING)
                abort();
            walk(&item, end, depth + 1);
        }
    if (value->type == JSON_STRING) {
        char *text;
        size_t size;
        json_string_text(value, &text, &size);
        if (text < value->text || text + size > value->text + value->size)
            abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    config_limits limits = fuzz_limits();
    sp_error err;
    json_value root;
    job *j = fuzz_job(data, size, BODY_JSON);
    if (json_check((char *)j->body.data, size, 16, &root, &err) == SP_OK)
        walk(&root, (char *)j->body.data + size, 0);
    else if (err.status != SP_ERR_ARGUMENT || !err.text[0])
        abort();
    job_release(j);
    j = fuzz_job(data, size, BODY_JSON);
    fuzz_pictures(j, input_json(j, &limits, &err), &limits);
    return 0;
}
