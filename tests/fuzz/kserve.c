/* Tensors of the Open Inference Protocol; the first two bytes say how long the JSON is. */
#include "body.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    config_limits limits = fuzz_limits();
    sp_error err;
    if (size < 2)
        return 0;
    job *j = fuzz_job(data + 2, size - 2, BODY_KSERVE);
    j->kserve.header_bytes = (size_t)data[0] | (size_t)data[1] << 8;
    fuzz_pictures(j, input_kserve(j, &limits, &err), &limits);
    return 0;
}
