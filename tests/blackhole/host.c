/*
 * The host's side of the device against a stand-in for the chip, so quick that every single call can fail: a clear
 * error, nothing hangs, everything is given back, and the next start works. And what the watchdog and the end of a
 * device do, in the chip's time.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common.h"
#include "faulty.h"
#include "standin.h"

enum { SIDE = 32, FRAMES = 3, MAX_CALLS = 100000 };
#define CLEAN_US 2000000u

typedef struct way {
    uint32_t rows, cols;
    bool layer_by_layer;
} way;

static const way ways[] = {{1, 1, false}, {2, 1, false}, {3, 2, false}, {4, 2, false}, {3, 2, true}};

static sp_status make(bh_transport *t, const way *w, bh_device **device, sp_error *err) {
    bh_firmware firmware;
    sp_bh_firmware_get(&firmware);
    const bh_config config = {.grid_rows = w->rows,
                              .grid_cols = w->cols,
                              .phases = 3,
                              .suppress = !w->layer_by_layer,
                              .layer_by_layer = w->layer_by_layer};
    return sp_bh_device_make(t, &firmware, test_weights(), &config, device, err);
}

/* A device's whole life: frames of one size, one of another, the end. After a failure it is stopped, as the engine
 * does.
 */
static sp_status one_life(bh_transport *t, const way *w, sp_error *err) {
    static float scores[SIDE * SIDE], suppressed[SIDE * SIDE], descriptors[SIDE * SIDE * 4];
    static uint8_t pixels[SIDE * SIDE];
    bh_device *device;
    sp_status status = make(t, w, &device, err);
    for (uint32_t i = 0; i < FRAMES && status == SP_OK; i++) {
        const uint32_t height = i == FRAMES - 1 ? 64 : SIDE, width = SIDE * SIDE / height;
        if (width / 8 < w->cols)
            break;
        status = sp_bh_device_prepare(device, width, height, err);
        if (status == SP_OK)
            status = run_frame(device, pixels, scores, w->layer_by_layer ? NULL : suppressed, descriptors, err);
    }
    if (status != SP_OK && device)
        sp_bh_device_stop(device);
    sp_bh_device_free(device);
    return status;
}

static void all_held(const standin *chip) {
    for (uint32_t k = 0; k < STANDIN_TILES; k++)
        assert_false(chip->running[k]);
}

/* Once each call alone, once it and all that follow: a card that is gone. */
static void every_call_fails(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        standin chip;
        faulty f;
        sp_error err;
        standin_init(&chip);
        faulty_init(&f, &chip.base, STANDIN_TILES);
        assert_ok(one_life(&f.base, &ways[i], &err), &err);
        const uint64_t calls = f.calls;
        uint64_t reported = 0;
        for (uint64_t n = 1; n <= calls; n++)
            for (int dead = 0; dead <= 1; dead++) {
                faulty_init(&f, &chip.base, STANDIN_TILES);
                f.fail_call = n;
                f.dead = dead;
                err.text[0] = 0;
                const sp_status status = one_life(&f.base, &ways[i], &err);
                assert_true(f.calls < MAX_CALLS);
                if (status != SP_OK) { /* else a call of free, which has nobody to tell */
                    assert_int_equal(status, SP_ERR_ENGINE);
                    assert_non_null(strstr(err.text, "injected"));
                    reported++;
                }
                assert_ok(one_life(&chip.base, &ways[i], &err), &err);
                all_held(&chip);
            }
        printf("  %ux%u tiles%s: each of %llu calls failed, alone and for good; %llu of the failures reported, the "
               "others belong to free\n",
               ways[i].rows, ways[i].cols, ways[i].layer_by_layer ? ", layer by layer" : "", (unsigned long long)calls,
               (unsigned long long)reported);
        assert_true(reported + 2 * STANDIN_TILES >= 2 * calls);
        standin_free(&chip);
    }
}

/* Every tile in every layer: the watchdog names both within its second, the chip is clean within two. */
static void every_hang_is_named(void **state) {
    (void)state;
    uint64_t slowest = 0;
    standin chip;
    standin_init(&chip);
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++)
        for (uint32_t k = 0; k < ways[i].rows * ways[i].cols; k++)
            for (uint32_t layer = 0; layer < BH_LAYERS; layer++) {
                sp_error err;
                char place[48];
                const uint64_t begin = chip.now_us;
                chip.stuck = k;
                chip.stuck_after = BH_LAYERS + layer; /* in the second frame */
                assert_int_equal(one_life(&chip.base, &ways[i], &err), SP_ERR_ENGINE_HUNG);
                snprintf(place, sizeof place, "tile (%u, %u), layer %u:", NOC_X(chip.base.chip.tile[k]),
                         NOC_Y(chip.base.chip.tile[k]), layer);
                if (!strstr(err.text, place))
                    fail_msg("\"%s\" does not name %s", err.text, place);
                all_held(&chip);
                slowest = chip.now_us - begin > slowest ? chip.now_us - begin : slowest;
            }
    standin_free(&chip);
    printf("  named, and all tiles held, after at most %.2f s of the chip's time\n", (double)slowest * 1e-6);
    assert_true(slowest < CLEAN_US);
}

/* The device is freed at every moment of a frame, as a server does that is asked to end: no tile is left running, and
 * none was reset while it still had work that it could do. */
static void ends_at_any_moment(void **state) {
    (void)state;
    static uint8_t pixels[SIDE * SIDE];
    standin chip;
    standin_init(&chip);
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++)
        for (uint32_t ticks = 0; ticks < 2 * BH_LAYERS; ticks++) {
            bh_device *device;
            sp_error err;
            assert_ok(make(&chip.base, &ways[i], &device, &err), &err);
            assert_ok(sp_bh_device_prepare(device, SIDE, SIDE, &err), &err);
            assert_ok(sp_bh_device_upload(device, pixels, SIDE, &err), &err);
            assert_ok(sp_bh_device_start(device, &err), &err);
            uint64_t now = chip.now_us;
            for (uint32_t t = 0; t < ticks; t++)
                assert_ok(chip.base.tick(&chip.base, &now, &err), &err);
            sp_bh_device_free(device);
            all_held(&chip);
            assert_true(chip.now_us - now < CLEAN_US);
            for (uint32_t k = 0; k < ways[i].rows * ways[i].cols; k++) {
                const struct mailbox *m = (const struct mailbox *)(chip.l1[k] + MAILBOX);
                assert_int_equal(m->done, m->run);
            }
        }
    standin_free(&chip);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_call_fails), cmocka_unit_test(every_hang_is_named),
                                       cmocka_unit_test(ends_at_any_moment)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
