/* JSON bodies of /predict: checked, walked, taken apart, decoded. */
#include "body.h"

#include <string.h>

#include "common/json.h"

/* Walk everything: all of it lies inside the document, and nothing is met twice. */
static unsigned walk(const json_value *value, const char *start, const char *end, unsigned depth) {
    json_value key, item;
    unsigned met = 0;
    if (depth > 16)
        abort();
    if (value->type == JSON_STRING && (value->text < start || value->text + value->size > end))
        abort();
    json_walk w = json_begin(value);
    if (value->type == JSON_ARRAY)
        while (json_next_item(&w, &item))
            met += 1 + walk(&item, start, end, depth + 1);
    if (value->type == JSON_OBJECT)
        while (json_next_member(&w, &key, &item)) {
            if (key.type != JSON_STRING)
                abort();
            met += 2 + walk(&item, start, end, depth + 1);
        }
    if (met != value->values)
        abort();
    return met;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    config_limits limits = fuzz_limits();
    sp_error err;
    json_document document;
    const json_limits json = {16, 1000};
    job *j = fuzz_job(data, size, BODY_JSON);
    if (json_parse(&document, (char *)j->body.data, size, &json, &err) == SP_OK)
        walk(document.values, (char *)j->body.data, (char *)j->body.data + size, 0);
    else if ((err.status != SP_ERR_ARGUMENT && err.status != SP_ERR_LIMIT) || !err.text[0])
        abort();
    json_free(&document);
    job_release(j);
    j = fuzz_job(data, size, BODY_JSON);
    fuzz_pictures(j, input_json(j, &limits, &err), &limits);
    return 0;
}
