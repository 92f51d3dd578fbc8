#include <math.h>
#include <string.h>

#include "features/features.h"

uint16_t sp_float_to_half(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    const uint16_t sign = (uint16_t)(bits >> 16 & 0x8000);
    bits &= 0x7fffffff;
    if (bits >= 0x47800000) /* 65536 and above, infinity, not a number */
        return (uint16_t)(sign | (bits > 0x7f800000 ? 0x7e00 : 0x7c00));
    if (bits < 0x38800000) { /* below 2^-14: a multiple of 2^-24, rounded by the FPU's own rule */
        float magnitude;
        memcpy(&magnitude, &bits, sizeof magnitude);
        return (uint16_t)(sign | (uint16_t)lrintf(magnitude * 0x1p24f));
    }
    /* Rebias the exponent by 112 and drop 13 bits, to nearest, ties to even. A carry out of the
     * fraction rightly raises the exponent, up to infinity. */
    uint32_t rounded = bits - (112u << 23) + 0xfff + (bits >> 13 & 1);
    return (uint16_t)(sign | rounded >> 13);
}

static uint8_t to_uint8(float value) {
    long q = 128 + lrintf(value * 256);
    return (uint8_t)(q < 0 ? 0 : q > 255 ? 255 : q);
}

void sp_convert(const float *in, size_t count, sp_dtype dtype, void *out) {
    if (dtype == SP_DTYPE_FLOAT32)
        memcpy(out, in, count * sizeof *in);
    else if (dtype == SP_DTYPE_FLOAT16)
        for (size_t i = 0; i < count; i++)
            ((uint16_t *)out)[i] = sp_float_to_half(in[i]);
    else
        for (size_t i = 0; i < count; i++)
            ((uint8_t *)out)[i] = to_uint8(in[i]);
}

size_t sp_dtype_size(sp_dtype dtype) {
    return dtype == SP_DTYPE_FLOAT32 ? 4 : dtype == SP_DTYPE_FLOAT16 ? 2 : 1;
}
