/*
 * Every layer on the chip against double precision on the layer's own stored inputs and weights.
 *
 * The frame is run layer by layer on a grid of uneven blocks; before and after each layer the activations are read out
 * of the tiles. So each layer is judged alone, with halos, edges, odd widths and overshoot as in a real frame.
 *
 * Bound of one output, |out| its value, S the sum of |weight * input|:
 *   output rounding to fp16                              2^-11 |out|
 *   fourth fidelity phase left out: the low 5 bits of the 10 of a weight times the low 4 of the 11 of an
 *   input, less than 2^-4 and 2^-6 of either                    2^-10 S
 *   products aligned to the largest of 8 and rounded at 12 bits: 8 * 2^-12 of the largest, with the low phases
 *   2^-4 and 2^-6 of it again                                  2^-9 * 1.08 S
 * That is the worst case; the errors of many products mostly cancel. The root mean square of the error must stay below
 * RMS_LIMIT of that of S: 2^-11 / sqrt(3), what the rounding of the output alone makes where |out| = S.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common.h"
#include "half.h"

#define RMS_LIMIT 2.9e-4

enum { WIDTH = 88, HEIGHT = 56 }; /* 11 x 7 cells on 2 x 3 tiles: rows of 3 and 4, columns of 3 and 4 cells */

/* A map of the whole frame, [channel][height][width], gathered from the tiles. */
typedef struct map {
    uint32_t channels, height, width;
    float *value;
} map;

static map gather(bh_transport *t, const bh_plan *plan, uint32_t i, bool input) {
    const uint32_t shrink = input ? sp_network[i].shrink : sp_network[i].shrink + (sp_network[i].pool ? 1u : 0u);
    const uint32_t channels = input ? (sp_network[i].in < 16 ? 16u : sp_network[i].in) : sp_network[i].out;
    map m = {channels, plan->height >> shrink, plan->width >> shrink, NULL};
    m.value = malloc(sizeof *m.value * m.channels * m.height * m.width);
    assert_non_null(m.value);
    for (uint32_t k = 0; k < plan->tiles; k++) {
        const struct layer l = sp_bh_plan_layer(plan, k, i);
        const bh_block b = sp_bh_plan_block(plan, k);
        const uint32_t plane = input ? l.in_plane : l.out_plane, pitch = input ? l.pitch : l.out_pitch;
        uint16_t *halves = malloc(plane * PIXEL_BYTES);
        assert_non_null(halves);
        for (uint32_t c = 0; c < channels; c += PLANE_CHANNELS) {
            sp_error err;
            const uint32_t at = (input ? l.in : l.out) + (ONES_PIXELS + c / PLANE_CHANNELS * plane) * PIXEL_BYTES;
            assert_ok(t->read(t, t->chip.tile[k], at, halves, plane * PIXEL_BYTES, &err), &err);
            for (uint32_t y = 0; y < b.rows * SP_CELL >> shrink; y++)
                for (uint32_t x = 0; x < b.cols * SP_CELL >> shrink; x++)
                    for (uint32_t j = 0; j < PLANE_CHANNELS && c + j < channels; j++)
                        m.value[((c + j) * m.height + (b.y * SP_CELL >> shrink) + y) * m.width +
                                (b.x * SP_CELL >> shrink) + x] =
                            bh_float_of_half(halves[(LEAD_PIXELS + (y + 1) * pitch + x + 1) * PLANE_CHANNELS + j]);
        }
        free(halves);
    }
    return m;
}

/* Stored weight of output q, input p, tap; the first layer's taps are its inputs. */
static double weight(const sp_layer *n, const uint16_t *packed, uint32_t q, uint32_t p, uint32_t tap) {
    const uint32_t planes = n->in < 16 ? 1 : n->in / 16u;
    const size_t block = (size_t)(q / 64) * sp_bh_layer_blocks(n) + tap * planes + p / 16;
    return bh_float_of_half(packed[block * 1024 + q % 64 / 16 * 256 + p % 16 * 16 + q % 16]);
}

static double bias(const sp_layer *n, const uint16_t *packed, uint32_t q) {
    const size_t block = (size_t)(q / 64) * sp_bh_layer_blocks(n) + sp_bh_layer_blocks(n) - 1;
    const uint16_t *b = packed + block * 1024 + q % 64 / 16 * 256 + q % 16;
    return (double)bh_float_of_half(b[0]) + bh_float_of_half(b[16]);
}

/* Sum and sum of magnitudes of one output channel before ReLU. */
static void convolve(const sp_layer *n, const uint16_t *packed, const map *in, uint32_t q, double *sum,
                     double *magnitude) {
    const bool first = n->in == 1;
    const int32_t h = (int32_t)in->height, w = (int32_t)in->width, r = first ? 0 : n->kernel / 2, k = 2 * r + 1;
    for (int32_t i = 0; i < h * w; i++)
        sum[i] = bias(n, packed, q), magnitude[i] = fabs(sum[i]);
    for (uint32_t p = 0; p < in->channels; p++)
        for (int32_t ky = -r; ky <= r; ky++)
            for (int32_t kx = -r; kx <= r; kx++) {
                const double v = weight(n, packed, q, p, (uint32_t)((ky + r) * k + kx + r));
                for (int32_t y = ky < 0 ? -ky : 0; y < (ky > 0 ? h - ky : h); y++)
                    for (int32_t x = kx < 0 ? -kx : 0; x < (kx > 0 ? w - kx : w); x++) {
                        const double product = v * in->value[((int32_t)p * h + y + ky) * w + x + kx];
                        sum[y * w + x] += product;
                        magnitude[y * w + x] += fabs(product);
                    }
            }
}

/* ReLU and pooling; of the magnitudes a window's largest. */
static void finish(const sp_layer *n, const map *in, double *sum, double *magnitude) {
    const uint32_t w = in->width, h = in->height;
    for (uint32_t i = 0; n->relu && i < h * w; i++)
        sum[i] = fmax(sum[i], 0);
    for (uint32_t y = 0; n->pool && y < h / 2; y++)
        for (uint32_t x = 0; x < w / 2; x++) {
            const uint32_t a = 2 * y * w + 2 * x;
            sum[y * (w / 2) + x] = fmax(fmax(sum[a], sum[a + 1]), fmax(sum[a + w], sum[a + w + 1]));
            magnitude[y * (w / 2) + x] =
                fmax(fmax(magnitude[a], magnitude[a + 1]), fmax(magnitude[a + w], magnitude[a + w + 1]));
        }
}

static void judge(uint32_t i, const map *in, const map *out) {
    const sp_layer *n = &sp_network[i];
    const uint16_t *packed = test_weights()->layer[i];
    double *sum = malloc(sizeof *sum * in->height * in->width),
           *magnitude = malloc(sizeof *sum * in->height * in->width);
    assert_true(sum && magnitude);
    double error = 0, energy = 0, tightest = 0;
    const uint32_t pixels = out->height * out->width;
    for (uint32_t q = 0; q < out->channels; q++) {
        convolve(n, packed, in, q, sum, magnitude);
        finish(n, in, sum, magnitude);
        for (uint32_t j = 0; j < pixels; j++) {
            const double e = fabs(out->value[q * pixels + j] - sum[j]);
            const double limit = 0x1p-11 * fabs(sum[j]) + (0x1p-10 + 1.08 * 0x1p-9) * magnitude[j] + HALF_MIN_NORMAL;
            if (!(e <= limit))
                fail_msg("layer %u, channel %u, pixel %u of %ux%u: %g instead of %g, limit %g", i, q, j, out->width,
                         out->height, (double)out->value[q * pixels + j], sum[j], limit);
            tightest = fmax(tightest, e / limit);
            error += e * e;
            energy += magnitude[j] * magnitude[j];
        }
    }
    free(sum);
    free(magnitude);
    printf("  %-34s rms of the error %.2e of S, largest error %.2f of its bound\n", n->name, sqrt(error / energy),
           tightest);
    assert_true(energy > 0);
    assert_true(sqrt(error / energy) <= RMS_LIMIT);
}

/* The taps that BRISC made are the picture's. */
static void judge_taps(const map *taps, const uint8_t *pixels) {
    for (int32_t tap = 0; tap < 9; tap++)
        for (int32_t y = 0; y < HEIGHT; y++)
            for (int32_t x = 0; x < WIDTH; x++) {
                const int32_t py = y + tap / 3 - 1, px = x + tap % 3 - 1;
                const bool inside = py >= 0 && py < HEIGHT && px >= 0 && px < WIDTH;
                const float wanted = inside ? (float)pixels[py * WIDTH + px] / 256.0f : 0.0f;
                assert_true(taps->value[(tap * HEIGHT + y) * WIDTH + x] == wanted);
            }
}

static void every_layer(void **state) {
    sp_error err = {0};
    bh_transport *t = *state;
    bh_firmware firmware;
    sp_bh_firmware_get(&firmware);
    const bh_config config = {.grid_rows = 2, .grid_cols = 3, .phases = 3, .layer_by_layer = true};
    bh_device *device;
    assert_ok(sp_bh_device_make(t, &firmware, test_weights(), &config, &device, &err), &err);
    assert_ok(sp_bh_device_prepare(device, WIDTH, HEIGHT, &err), &err);
    uint8_t *pixels = test_picture(WIDTH, HEIGHT, 11);
    assert_ok(sp_bh_device_upload(device, pixels, WIDTH, &err), &err);
    const bh_plan *plan = sp_bh_device_plan(device);
    for (uint32_t i = 0; i < SP_LAYERS; i++) {
        map in = {0};
        if (i > 0) /* read before the layer runs: the layer after the next overwrites it */
            in = gather(t, plan, i, true);
        assert_ok(sp_bh_device_advance(device, &err), &err);
        if (i == 0) {
            in = gather(t, plan, i, true);
            judge_taps(&in, pixels);
        }
        map out = gather(t, plan, i, false);
        judge(i, &in, &out);
        free(in.value);
        free(out.value);
    }
    free(pixels);
    sp_bh_device_free(device);
}

int main(void) {
    const char *library = simulator_or_skip("blackhole.layers");
    if (!library)
        return SKIPPED;
    bh_transport *transport = open_simulator(library);
    if (!transport)
        return 1;
    const struct CMUnitTest tests[] = {cmocka_unit_test_prestate(every_layer, transport)};
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    transport->close(transport);
    return failed;
}
