/* Weights in the chip's layout, fp16 on the host, ranges. */
#include "pack.h"
#include "common.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "half.h"

/* Against the compiler's own conversions: every finite half, and the middles between neighbours. */
static void halves(void **state) {
    (void)state;
    for (uint32_t h = 0x0400; h < 0x7C00; h++) {
        const float f = bh_float_of_half((uint16_t)h);
        assert_true(f == ldexpf(1.0f + (float)(h & 0x3FF) / 1024.0f, (int)(h >> 10) - 15));
        assert_int_equal(bh_half_of_float(f), h);
        assert_int_equal(bh_half_of_float(-f), h | 0x8000);
        if (h + 1 < 0x7C00) {
            const float middle = (f + bh_float_of_half((uint16_t)(h + 1))) / 2;
            assert_int_equal(bh_half_of_float(middle), h + (h & 1)); /* nearest even */
        }
    }
    assert_int_equal(bh_half_of_float(HALF_MIN_NORMAL / 2), 0);
    assert_true(bh_float_of_half(0x0001) == 0.0f);
    assert_true(bh_round_bits(1.0f + 1.0f / 1024, 10) == 1.0f);
    assert_true(bh_round_bits(1.0f + 3.0f / 1024, 10) == 1.0f + 4.0f / 1024);
}

/* Every weight is where unpacker 0 expects it; rounding errors do not add up; the bias is whole in its two parts. */
static void layout(void **state) {
    (void)state;
    for (uint32_t i = 0; i < SP_LAYERS; i++) {
        const sp_layer *n = &sp_network[i];
        const size_t size = sp_layer_kernel_size(n);
        const uint32_t taps = (uint32_t)(n->kernel * n->kernel), planes = n->in < 16 ? 1 : n->in / 16u;
        float *kernel = malloc(size * sizeof *kernel), *bias = malloc(n->out * sizeof *bias);
        uint16_t *packed = malloc(sp_bh_packed_bytes(n));
        assert_true(kernel && bias && packed);
        for (size_t k = 0; k < size; k++)
            kernel[k] = (float)(k % 511) / 512.0f + 0.001f;
        for (uint32_t q = 0; q < n->out; q++)
            bias[q] = 0.1f * (float)q - 3.0f;
        sp_error err = {0};
        assert_ok(sp_bh_pack_layer(n, kernel, bias, 0.5, 2.0, packed, &err), &err);
        const uint32_t blocks = sp_bh_layer_blocks(n);
        for (uint32_t q = 0; q < n->out; q++) {
            const uint16_t *group = packed + (size_t)(q / 64) * blocks * 1024;
            for (uint32_t p = 0; p < n->in; p++) {
                double error = 0;
                float stored = 0;
                for (uint32_t tap = 0; tap < taps; tap++) {
                    const uint32_t block = n->in == 1 ? 0 : tap * planes + p / 16, input = n->in == 1 ? tap : p % 16;
                    stored = bh_float_of_half(group[block * 1024 + q % 64 / 16 * 256 + input * 16 + q % 16]);
                    const double wanted = kernel[((size_t)q * n->in + p) * taps + tap] * 0.5;
                    assert_true(fabs(stored - wanted) <= 0x1p-10); /* one step of the largest */
                    error += wanted - stored;
                }
                assert_true(fabs(error) <= fabs(stored) * 0x1p-10); /* only the last tap's own is left */
            }
            const uint16_t *last = group + (size_t)(blocks - 1) * 1024 + q % 64 / 16 * 256 + q % 16;
            const double sum = (double)bh_float_of_half(last[0]) + bh_float_of_half(last[16]), wanted = 2.0 * bias[q];
            assert_true(fabs(sum - wanted) <= fabs(wanted) * 0x1p-19 + HALF_MIN_NORMAL);
        }
        free(kernel);
        free(bias);
        free(packed);
    }
}

static void refused(void **state) {
    (void)state;
    const sp_layer *n = &sp_network[SP_DESCRIPTOR_B];
    const size_t size = sp_layer_kernel_size(n);
    float *kernel = calloc(size, sizeof *kernel), bias[256] = {0};
    uint16_t *packed = malloc(sp_bh_packed_bytes(n));
    assert_true(kernel && packed);
    sp_error err = {0};
    kernel[77] = 70000.0f;
    assert_int_equal(sp_bh_pack_layer(n, kernel, bias, 1, 1, packed, &err), SP_ERR_WEIGHTS_DATA);
    assert_non_null(strstr(err.text, "beyond fp16"));
    kernel[77] = NAN;
    assert_int_equal(sp_bh_pack_layer(n, kernel, bias, 1, 1, packed, &err), SP_ERR_WEIGHTS_DATA);
    for (size_t k = 0; k < size; k++)
        kernel[k] = 1e-6f;
    assert_int_equal(sp_bh_pack_layer(n, kernel, bias, 1, 1, packed, &err), SP_ERR_WEIGHTS_DATA);
    assert_non_null(strstr(err.text, "below fp16"));
    assert_ok(sp_bh_pack_layer(n, kernel, bias, 65536, 1, packed, &err), &err); /* a scale mends it */
    free(kernel);
    free(packed);
}

/* A layer that is driven out of fp16's range is stored smaller, and the next one undoes it. */
static void calibration(void **state) {
    (void)state;
    static float kernel[SP_LAYERS][256 * 128 * 9], bias[SP_LAYERS][256];
    sp_weights w;
    for (uint32_t i = 0; i < SP_LAYERS; i++) {
        const uint32_t taps = (uint32_t)(sp_network[i].kernel * sp_network[i].kernel), centre = taps / 2;
        for (uint32_t q = 0; q < sp_network[i].out; q++)
            kernel[i][((size_t)q * sp_network[i].in + q % sp_network[i].in) * taps + centre] = 1.0f;
        w.kernel[i] = kernel[i];
        w.bias[i] = bias[i];
    }
    bias[2][5] = 1e6f; /* one channel far beyond */
    bias[SP_DESCRIPTOR_B][0] = 1e-4f;
    bh_scales scales;
    sp_error err = {0};
    assert_ok(sp_bh_calibrate(&w, &scales, &err), &err);
    assert_true(scales.out[0] == 1 && scales.out[1] == 1);
    assert_true(scales.out[2] < 1 && scales.greatest[2] * scales.out[2] <= 4096);
    assert_true(sp_bh_kernel_scale(&scales, 2) == scales.out[2]);
    assert_true(sp_bh_kernel_scale(&scales, 3) == scales.out[3] / scales.out[2]);
    assert_true(sp_bh_kernel_scale(&scales, SP_DESCRIPTOR_A) == scales.out[SP_DESCRIPTOR_A] / scales.out[7]);
    bias[2][5] = INFINITY;
    assert_int_equal(sp_bh_calibrate(&w, &scales, &err), SP_ERR_WEIGHTS_DATA);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(halves), cmocka_unit_test(layout), cmocka_unit_test(refused),
                                       cmocka_unit_test(calibration)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
