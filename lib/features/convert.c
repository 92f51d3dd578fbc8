#include <math.h>
#include <string.h>

#include "features/features.h"
#include "features/rows.h"

uint16_t sp_float_to_half(float value) {
    uint16_t half;
    sp_row_kernels_c.half(&value, 1, &half);
    return half;
}

static uint8_t to_uint8(float value) {
    long q = 128 + lrintf(value * 256);
    return (uint8_t)(q < 0 ? 0 : q > 255 ? 255 : q);
}

void sp_convert(const float *in, size_t count, sp_dtype dtype, void *out) {
    if (dtype == SP_DTYPE_FLOAT32)
        memcpy(out, in, count * sizeof *in);
    else if (dtype == SP_DTYPE_FLOAT16)
        sp_row_kernels_best()->half(in, count, out);
    else
        for (size_t i = 0; i < count; i++)
            ((uint8_t *)out)[i] = to_uint8(in[i]);
}

size_t sp_dtype_size(sp_dtype dtype) {
    return dtype == SP_DTYPE_FLOAT32 ? 4 : dtype == SP_DTYPE_FLOAT16 ? 2 : 1;
}
