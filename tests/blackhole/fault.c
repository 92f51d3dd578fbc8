/*
 * What happens when the chip or the way to it fails: a clear error, no hang, and the next start works: the real
 * firmware, in the simulator. What the host alone does about every single call that fails is tested by host.c.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common.h"
#include "faulty.h"

enum { SIDE = 16 };
#define ENDLESS_LOOP 0x0000006Fu /* RISC-V: j . */

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
        char version[32];
        snprintf(version, sizeof version, "version %u;", TILE_VERSION + 41);
        assert_non_null(strstr(err.text, version));
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

/* Every call before the cores run, one by one; from there on, where most calls are ticks that wait, the first ones and
 * then ever larger steps. */
static void transport_fails_at_the_nth_call(void **state) {
    const bh_firmware firmware = own_firmware();
    faulty f;
    sp_error err;
    faulty_init(&f, *state, 8);
    assert_ok(one_life(&f, &firmware, 2, 1, &err), &err);
    const uint64_t calls = f.calls, others = f.calls - f.ticks;
    uint64_t tried = 0, failed = 0;
    for (uint64_t n = 1; n <= calls; n += n < others ? 1 : 1 + n / 3) {
        faulty_init(&f, *state, 8);
        f.fail_call = n;
        const sp_status status = one_life(&f, &firmware, 2, 1, &err);
        tried++;
        if (status == SP_OK) /* a call of free, which has nobody to tell */
            continue;
        failed++;
        assert_int_equal(status, SP_ERR_ENGINE);
        assert_non_null(strstr(err.text, "injected"));
    }
    printf("  %llu of %llu calls failed, %llu reported (the rest belong to free)\n", (unsigned long long)tried,
           (unsigned long long)calls, (unsigned long long)failed);
    assert_true(failed + f.base.chip.tiles >= tried);
    next_start_works(*state);
}

/* All of L1 full of rubbish, the cores of another program running: what a previous user may have left. */
static void any_state(void **state) {
    bh_transport *t = *state;
    sp_error err;
    unsigned char *rubbish = malloc(L1_BYTES);
    assert_non_null(rubbish);
    for (size_t i = 0; i < L1_BYTES; i++)
        rubbish[i] = (unsigned char)(i * 2654435761u >> 24);
    for (uint32_t i = 0; i < PROGRAMS_END; i += 4)
        memcpy(rubbish + i, &(uint32_t){ENDLESS_LOOP}, 4);
    const struct {
        uint32_t address, value;
    } start[] = {{TRISC_START_PC(0), PROGRAM_TRISC(0)},
                 {TRISC_START_PC(1), PROGRAM_TRISC(1)},
                 {TRISC_START_PC(2), PROGRAM_TRISC(2)},
                 {TRISC_START_PC_ENABLE, 7},
                 {NCRISC_START_PC, PROGRAM_NCRISC},
                 {NCRISC_START_PC_ENABLE, 1},
                 {SOFT_RESET, 0}};
    for (uint32_t k = 0; k < 8; k++) {
        assert_ok(t->hold(t, t->chip.tile[k], &err), &err);
        assert_ok(t->write(t, t->chip.tile[k], 0, rubbish, L1_BYTES, &err), &err);
        for (size_t i = 0; i < sizeof start / sizeof start[0]; i++)
            assert_ok(t->write(t, t->chip.tile[k], start[i].address, &start[i].value, 4, &err), &err);
    }
    uint64_t now;
    assert_ok(t->tick(t, &now, &err), &err);
    free(rubbish);
    next_start_works(t);
}

int main(void) {
    const char *library = simulator_or_skip("blackhole.fault");
    if (!library)
        return SKIPPED;
    bh_transport *transport = open_simulator(library);
    if (!transport)
        return 1;
    const struct CMUnitTest tests[] = {cmocka_unit_test_prestate(no_fault, transport),
                                       cmocka_unit_test_prestate(wrong_firmware, transport),
                                       cmocka_unit_test_prestate(out_of_l1, transport),
                                       cmocka_unit_test_prestate(tile_never_answers, transport),
                                       cmocka_unit_test_prestate(tile_stops_in_a_frame, transport),
                                       cmocka_unit_test_prestate(any_state, transport),
                                       cmocka_unit_test_prestate(transport_fails_at_the_nth_call, transport)};
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    transport->close(transport);
    return failed;
}
