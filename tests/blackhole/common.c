#include "common.h"

#include <stdio.h>
#include <stdlib.h>

#include "model/model.h"

const char *simulator_or_skip(const char *test) {
    const char *path = getenv("TTSIM");
    if (path && *path)
        return path;
    printf("SKIPPED %s: TTSIM is not set; it names the library of the Blackhole simulator\n", test);
    return NULL;
}

bh_transport *open_simulator(const char *library) {
    bh_transport *transport;
    sp_error err;
    if (sp_bh_open_simulator(library, &transport, &err) == SP_OK)
        return transport;
    fprintf(stderr, "%s\n", err.text);
    return NULL;
}

const sp_model *test_model(void) {
    static sp_model *model;
    sp_error err;
    if (!model)
        assert_ok(sp_model_open("weights/superpoint.safetensors", NULL, &model, &err), &err);
    return model;
}

const bh_weights *test_weights(void) {
    static bh_weights weights;
    sp_error err;
    if (!weights.layer[0])
        assert_ok(sp_bh_weights_make(sp_model_weights(test_model()), &weights, &err), &err);
    return &weights;
}

uint8_t *test_picture(uint32_t width, uint32_t height, uint32_t seed) {
    uint8_t *pixels = malloc((size_t)width * height);
    assert_non_null(pixels);
    uint32_t noise = seed;
    for (uint32_t y = 0; y < height; y++)
        for (uint32_t x = 0; x < width; x++) {
            noise = noise * 1664525u + 1013904223u;
            const uint32_t board = ((y + seed) / 7 + (x + 2 * seed) / 9) % 2 * 120;
            const uint32_t slope = (x * 60 + y * 30) / (width + height);
            pixels[(size_t)y * width + x] = (uint8_t)(board + slope + (noise >> 27));
        }
    return pixels;
}

sp_status run_frame(bh_device *device, const uint8_t *pixels, float *scores, float *suppressed, float *descriptors,
                    sp_error *err) {
    const uint32_t width = sp_bh_device_plan(device)->width;
    sp_status status = sp_bh_device_upload(device, pixels, width, err);
    if (status == SP_OK)
        status = sp_bh_device_start(device, err);
    if (status == SP_OK)
        status = sp_bh_device_finish(device, err);
    if (status == SP_OK)
        sp_bh_device_collect(device, scores, suppressed, descriptors);
    return status;
}
