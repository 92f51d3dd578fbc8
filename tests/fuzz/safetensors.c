/* Weight files: the format alone, and with all that is asked of a SuperPoint. */
#include <stdint.h>
#include <stdlib.h>

#include "model/safetensors.h"
#include "superpoint.h"

enum { MOST_ELEMENTS = 1 << 16 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What the parser let through lies within the file: read all of it. */
static void read_tensor(const sp_tensor *tensor) {
    if (tensor->type == SP_TENSOR_OTHER || tensor->elements > MOST_ELEMENTS)
        return;
    float *out = malloc((size_t)(tensor->elements + 1) * sizeof *out);
    if (!out)
        abort();
    sp_tensor_to_float(tensor, out);
    free(out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    sp_safetensors *file = NULL;
    sp_model *model = NULL;
    sp_error err;
    const sp_status opened = sp_safetensors_open(data, size, "fuzz", &file, &err);
    for (size_t i = 0; opened == SP_OK && i < sp_safetensors_count(file); i++) {
        const sp_tensor *tensor = sp_safetensors_at(file, i);
        if (sp_safetensors_find(file, tensor->name) != tensor)
            abort();
        read_tensor(tensor);
    }
    if (opened == SP_OK)
        sp_safetensors_metadata(file, "license");
    if (opened == SP_OK)
        sp_safetensors_close(file);
    const sp_status made = sp_model_from_memory(data, size, "fuzz", &model, &err);
    if (made == SP_OK && opened != SP_OK)
        abort();
    sp_model_free(model);
    return 0;
}
