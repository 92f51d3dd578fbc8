/*
 * Weights whose activations leave fp16's range: the project's own with every channel of every inner layer multiplied by
 * a gain, which the next layer's weights divide by. ReLU and maxima commute with a positive gain, so the network
 * computes the same scores and descriptors; but its activations reach from 1e-4 to 1e6, as those of other people's
 * weights might. The powers of two chosen at load must bring all of it back, and the results must be as good as before.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "calibrate.h"
#include "common.h"
#include "half.h"
#include "model/model.h"
#include "reference.h"

enum { WIDTH = 32, HEIGHT = 32, PIXELS = WIDTH * HEIGHT, ELEMENTS = PIXELS * 4 };
#define LEAST_PCC 0.99999

/* Of a whole layer; each channel's differs from it by up to a factor of 4 either way. The logits' must be 1: softmax
 * does not commute. The descriptors are normalised, so one gain for all of theirs vanishes. */
static const double layer_gain[SP_LAYERS] = {3e5, 2e-4, 1e5, 1e6, 1e-3, 2e5, 1, 3e5, 1e-4, 1, 1e6, 500};

static bool same_for_all(uint32_t i) {
    return i == SP_DETECTOR_B || i == SP_DESCRIPTOR_B;
}

static double gain(uint32_t i, uint32_t channel) {
    const uint32_t noise = (i * 256 + channel + 1) * 2654435761u >> 16;
    return layer_gain[i] * (same_for_all(i) ? 1 : exp2((noise % 401) / 100.0 - 2));
}

/* In `room`, which the caller frees. */
static sp_weights equivalent(const sp_weights *from, float *room) {
    sp_weights to = {{0}, {0}, NULL};
    for (uint32_t i = 0; i < SP_LAYERS; i++) {
        const sp_layer *n = &sp_network[i];
        const uint32_t before = i == SP_DESCRIPTOR_A ? SP_ENCODER_END - 1 : i - 1,
                       taps = (uint32_t)n->kernel * n->kernel;
        float *kernel = room, *bias = room + sp_layer_kernel_size(n);
        for (uint32_t q = 0; q < n->out; q++) {
            for (uint32_t p = 0; p < n->in; p++)
                for (uint32_t t = 0; t < taps; t++) {
                    const size_t k = ((size_t)q * n->in + p) * taps + t;
                    kernel[k] = (float)(from->kernel[i][k] * gain(i, q) / (i ? gain(before, p) : 1));
                }
            bias[q] = (float)(from->bias[i][q] * gain(i, q));
        }
        to.kernel[i] = kernel;
        to.bias[i] = bias;
        room = bias + n->out;
    }
    return to;
}

static float *room;
static sp_weights wild;

static int make_weights(void **state) {
    (void)state;
    room = malloc(SP_PARAMETERS * sizeof *room);
    wild = equivalent(sp_model_weights(test_model()), room);
    return room ? 0 : 1;
}

static int free_weights(void **state) {
    (void)state;
    free(room);
    return 0;
}

/* Stored as they are, most layers would be lost; as chosen, all fit with room for harder pictures. */
static void ranges(void **state) {
    (void)state;
    bh_scales scales;
    sp_error err;
    uint32_t beyond = 0, below = 0;
    assert_ok(sp_bh_calibrate(&wild, &scales, &err), &err);
    for (uint32_t i = 0; i < SP_LAYERS; i++) {
        const double stored = scales.greatest[i] * scales.out[i];
        beyond += scales.greatest[i] > HALF_MAX;
        below += scales.greatest[i] < 0.0625;
        printf("  %-34s greatest %9.3g, times 2^%.0f\n", sp_network[i].name, (double)scales.greatest[i],
               log2(scales.out[i]));
        assert_true(stored <= HALF_MAX / 15 && stored >= 0.0625);
        assert_true(exp2(nearbyint(log2(scales.out[i]))) == scales.out[i]);
    }
    assert_true(beyond >= 4 && below >= 2);
}

static void run(bh_transport *t, const bh_weights *weights, const uint8_t *pixels, float *scores, float *descriptors) {
    bh_firmware firmware;
    sp_bh_firmware_get(&firmware);
    const bh_config config = {.grid_rows = 1, .grid_cols = 2, .phases = 3};
    bh_device *device;
    sp_error err;
    assert_ok(sp_bh_device_make(t, &firmware, weights, &config, &device, &err), &err);
    assert_ok(sp_bh_device_prepare(device, WIDTH, HEIGHT, &err), &err);
    assert_ok(run_frame(device, pixels, scores, NULL, descriptors, &err), &err);
    sp_bh_device_free(device);
}

/* On the chip: as near to the reference, which computes with the weights as they were, as the project's gates ask. */
static void frame(void **state) {
    static float scores[PIXELS], descriptors[ELEMENTS], true_scores[PIXELS], true_descriptors[ELEMENTS];
    bh_weights weights;
    sp_error err;
    uint8_t *pixels = test_picture(WIDTH, HEIGHT, 6);
    assert_ok(sp_bh_weights_make(&wild, &weights, &err), &err);
    run(*state, &weights, pixels, scores, descriptors);
    sp_bh_weights_free(&weights);
    assert_true(sp_reference_forward(sp_model_weights(test_model()), pixels, WIDTH, WIDTH, HEIGHT, true_scores,
                                     true_descriptors));
    free(pixels);
    const double score_pcc = sp_reference_correlation(scores, true_scores, PIXELS);
    const double descriptor_pcc = sp_reference_correlation(descriptors, true_descriptors, ELEMENTS);
    printf("  score PCC %.7f, descriptor PCC %.7f\n", score_pcc, descriptor_pcc);
    assert_true(score_pcc >= LEAST_PCC);
    assert_true(descriptor_pcc >= LEAST_PCC);
}

int main(void) {
    const struct CMUnitTest arithmetic[] = {cmocka_unit_test(ranges)};
    int failed = cmocka_run_group_tests(arithmetic, make_weights, free_weights);
    const char *library = simulator_or_skip("blackhole.scaling");
    if (!library)
        return failed ? failed : SKIPPED;
    bh_transport *transport = open_simulator(library);
    if (!transport)
        return 1;
    const struct CMUnitTest tests[] = {cmocka_unit_test_prestate(frame, transport)};
    failed += cmocka_run_group_tests(tests, make_weights, free_weights);
    transport->close(transport);
    return failed;
}
