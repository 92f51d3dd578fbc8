/*
 * What happens when the chip or the way to it fails: a clear error, no hang, and the next start works.
 *
 * A wrapper stands between the device and the simulator; it can fail its n-th call, lose a tile's release from reset,
 * or stop a tile's cores in the middle of a frame.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "common.h"

enum { SIDE = 16 };

typedef struct faulty {
    bh_transport base;
    bh_transport *inner;
    uint64_t calls, ticks; /* so far; ticks are not counted as calls */
    uint64_t fail_call;    /* 0: none */
    uint64_t fail_tick;
    uint32_t deaf;      /* tile whose release from reset is lost */
    uint64_t stop_tick; /* 0: none; else hold `stopped` at this tick */
    uint32_t stopped;
} faulty;

static sp_status count(faulty *f, sp_error *err) {
    if (++f->calls == f->fail_call)
        return sp_fail(err, SP_ERR_ENGINE, "injected: transport call %llu fails", (unsigned long long)f->calls);
    return SP_OK;
}

static sp_status faulty_read(bh_transport *t, uint32_t at, uint64_t address, void *to, size_t n, sp_error *err) {
    faulty *f = (faulty *)t;
    sp_status status = count(f, err);
    return status == SP_OK ? f->inner->read(f->inner, at, address, to, n, err) : status;
}

static sp_status faulty_write(bh_transport *t, uint32_t at, uint64_t address, const void *from, size_t n,
                              sp_error *err) {
    faulty *f = (faulty *)t;
    sp_status status = count(f, err);
    if (status == SP_OK && at == f->deaf && address == SOFT_RESET)
        return SP_OK;
    return status == SP_OK ? f->inner->write(f->inner, at, address, from, n, err) : status;
}

static sp_status faulty_multicast(bh_transport *t, uint32_t first, uint32_t last, uint64_t address, const void *from,
                                  size_t n, sp_error *err) {
    faulty *f = (faulty *)t;
    sp_status status = count(f, err);
    return status == SP_OK ? f->inner->multicast(f->inner, first, last, address, from, n, err) : status;
}

static sp_status faulty_hold(bh_transport *t, uint32_t at, sp_error *err) {
    faulty *f = (faulty *)t;
    sp_status status = count(f, err);
    return status == SP_OK ? f->inner->hold(f->inner, at, err) : status;
}

static sp_status faulty_tick(bh_transport *t, uint64_t *now_us, sp_error *err) {
    faulty *f = (faulty *)t;
    if (++f->ticks == f->fail_tick)
        return sp_fail(err, SP_ERR_ENGINE, "injected: tick %llu fails", (unsigned long long)f->ticks);
    if (f->ticks == f->stop_tick)
        f->inner->hold(f->inner, f->stopped, err);
    return f->inner->tick(f->inner, now_us, err);
}

static sp_status faulty_share(bh_transport *t, size_t bytes, void **memory, struct remote *remote, sp_error *err) {
    faulty *f = (faulty *)t;
    sp_status status = count(f, err);
    return status == SP_OK ? f->inner->share(f->inner, bytes, memory, remote, err) : status;
}

static void faulty_unshare(bh_transport *t, void *memory) {
    faulty *f = (faulty *)t;
    f->inner->unshare(f->inner, memory);
}

static void faulty_init(faulty *f, bh_transport *inner, size_t tiles) {
    *f = (faulty){.inner = inner, .deaf = NOC_NOWHERE};
    f->base = (bh_transport){.chip = inner->chip,
                             .hang_us = inner->hang_us,
                             .read = faulty_read,
                             .write = faulty_write,
                             .multicast = faulty_multicast,
                             .hold = faulty_hold,
                             .tick = faulty_tick,
                             .share = faulty_share,
                             .unshare = faulty_unshare};
    f->base.chip.tiles = tiles; /* a small chip: fewer calls, as a board with disabled columns would have */
}

static float scores[SIDE * SIDE], suppressed[SIDE * SIDE], descriptors[SIDE * SIDE * 4];

/* Make, prepare, run one frame, free. */
static sp_status one_life(faulty *f, const bh_firmware *firmware, uint32_t rows, uint32_t cols, sp_error *err) {
    const bh_config config = {.grid_rows = rows, .grid_cols = cols, .phases = 3, .suppress = true};
    bh_device *device;
    uint8_t *pixels = test_picture(SIDE, SIDE, 9);
    sp_status status = sp_bh_device_make(&f->base, firmware, test_weights(), &config, &device, err);
    if (status == SP_OK)
        status = sp_bh_device_prepare(device, SIDE, SIDE, err);
    if (status == SP_OK)
        status = run_frame(device, pixels, scores, suppressed, descriptors, err);
    sp_bh_device_free(device);
    free(pixels);
    return status;
}

static bh_firmware own_firmware(void) {
    bh_firmware firmware;
    sp_bh_firmware_get(&firmware);
    return firmware;
}

static float good[SIDE * SIDE];

static void next_start_works(bh_transport *t) {
    faulty f;
    faulty_init(&f, t, 8);
    const bh_firmware firmware = own_firmware();
    sp_error err;
    assert_ok(one_life(&f, &firmware, 2, 1, &err), &err);
    assert_memory_equal(scores, good, sizeof good);
}

static void no_fault(void **state) {
    faulty f;
    faulty_init(&f, *state, 8);
    const bh_firmware firmware = own_firmware();
    sp_error err;
    assert_ok(one_life(&f, &firmware, 2, 1, &err), &err);
    memcpy(good, scores, sizeof good);
    assert_true(f.calls > 50 && f.ticks > 100);
}

static void tile_never_answers(void **state) {
    faulty f;
    faulty_init(&f, *state, 8);
    f.deaf = f.base.chip.tile[1];
    const bh_firmware firmware = own_firmware();
    sp_error err;
    assert_int_equal(one_life(&f, &firmware, 2, 1, &err), SP_ERR_ENGINE_HUNG);
    printf("  %s\n", err.text);
    char place[32];
    snprintf(place, sizeof place, "tile (%u, %u)", NOC_X(f.deaf), NOC_Y(f.deaf));
    assert_non_null(strstr(err.text, place));
    next_start_works(*state);
}

static void tile_stops_in_a_frame(void **state) {
    faulty f;
    faulty_init(&f, *state, 8);
    f.stopped = f.base.chip.tile[1];
    f.stop_tick = 200;
    const bh_firmware firmware = own_firmware();
    sp_error err;
    assert_int_equal(one_life(&f, &firmware, 2, 1, &err), SP_ERR_ENGINE_HUNG);
    printf("  %s\n", err.text);
    char place[32];
    snprintf(place, sizeof place, "tile (%u, %u)", NOC_X(f.stopped), NOC_Y(f.stopped));
    assert_non_null(strstr(err.text, place));
    next_start_works(*state);
}

static void wrong_firmware(void **state) {
    for (uint32_t c = 0; c < CORES; c++) {
        faulty f;
        faulty_init(&f, *state, 8);
        bh_firmware firmware = own_firmware();
        unsigned char *image = malloc(firmware.core[c].bytes);
        assert_non_null(image);
        memcpy(image, firmware.core[c].image, firmware.core[c].bytes);
        image[PROGRAM_VERSION_OFFSET] = TILE_VERSION + 41;
        firmware.core[c].image = image;
        sp_error err;
        assert_int_equal(one_life(&f, &firmware, 2, 1, &err), SP_ERR_ENGINE);
        printf("  %s\n", err.text);
        assert_non_null(strstr(err.text, "version 42"));
        free(image);
    }
    next_start_works(*state);
}

static void out_of_l1(void **state) {
    faulty f;
    faulty_init(&f, *state, 8);
    const bh_firmware firmware = own_firmware();
    const bh_config config = {.phases = 3};
    bh_device *device;
    sp_error err;
    assert_ok(sp_bh_device_make(&f.base, &firmware, test_weights(), &config, &device, &err), &err);
    assert_int_equal(sp_bh_device_prepare(device, 640, 480, &err), SP_ERR_LIMIT);
    printf("  %s\n", err.text);
    assert_int_equal(sp_bh_device_prepare(device, 4096, 4096, &err), SP_ERR_LIMIT);
    assert_ok(sp_bh_device_prepare(device, SIDE, SIDE, &err), &err); /* the device is still good */
    sp_bh_device_free(device);
    next_start_works(*state);
}

/* Every call but the ticks, one by one; of the ticks, which are one call repeated, the first ones and then ever larger
 * steps. */
static void transport_fails_at_the_nth_call(void **state) {
    const bh_firmware firmware = own_firmware();
    faulty f;
    sp_error err;
    faulty_init(&f, *state, 8);
    assert_ok(one_life(&f, &firmware, 2, 1, &err), &err);
    const uint64_t calls = f.calls, ticks = f.ticks;
    uint64_t failed = 0;
    for (uint64_t n = 1; n <= calls; n++) {
        faulty_init(&f, *state, 8);
        f.fail_call = n;
        const sp_status status = one_life(&f, &firmware, 2, 1, &err);
        if (status == SP_OK) /* a call of free, which has nobody to tell */
            continue;
        failed++;
        assert_int_equal(status, SP_ERR_ENGINE);
        assert_non_null(strstr(err.text, "injected"));
    }
    for (uint64_t n = 1; n <= ticks; n += 1 + n / 3) {
        faulty_init(&f, *state, 8);
        f.fail_tick = n;
        assert_int_equal(one_life(&f, &firmware, 2, 1, &err), SP_ERR_ENGINE);
        assert_non_null(strstr(err.text, "injected"));
    }
    printf("  %llu of %llu calls reported (the rest belong to free), %llu ticks\n", (unsigned long long)failed,
           (unsigned long long)calls, (unsigned long long)ticks);
    assert_true(failed + f.base.chip.tiles >= calls);
    next_start_works(*state);
}

int main(void) {
    const char *library = simulator_or_skip("blackhole.fault");
    if (!library)
        return SKIPPED;
    bh_transport *transport;
    sp_error err;
    if (sp_bh_open_simulator(library, &transport, &err) != SP_OK) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    const struct CMUnitTest tests[] = {cmocka_unit_test_prestate(no_fault, transport),
                                       cmocka_unit_test_prestate(wrong_firmware, transport),
                                       cmocka_unit_test_prestate(out_of_l1, transport),
                                       cmocka_unit_test_prestate(tile_never_answers, transport),
                                       cmocka_unit_test_prestate(tile_stops_in_a_frame, transport),
                                       cmocka_unit_test_prestate(transport_fails_at_the_nth_call, transport)};
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    transport->close(transport);
    return failed;
}
