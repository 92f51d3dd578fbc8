/*
 * The counts behind the estimate: instructions of the scalar cores, counted again by running the firmware. The
 * simulator retires one instruction a clock and core as long as no Tensix instruction retires in the tile, so each
 * stage is timed by the tile's own wall clock while the matrix unit rests: layers are started one by one.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common.h"
#include "estimate.h"

enum {
    WIDTH = 32,
    HEIGHT = 48,
    ROWS = 3,
    SETTLE_TICKS = 1200
}; /* 2 x 4 cells a tile; NCRISC needs some 40,000 clocks */

static void near(const char *what, double counted, double constant, double tolerance) {
    printf("  %-28s %8.1f counted, %8.1f in the estimate\n", what, counted, constant);
    if (!(fabs(counted - constant) <= tolerance * constant))
        fail_msg("%s: %g counted, the estimate says %g", what, counted, constant);
}

static void counts(void **state) {
    bh_transport *t = *state;
    sp_error err;
    bh_firmware firmware;
    sp_bh_firmware_get(&firmware);
    const bh_config config = {.grid_rows = ROWS, .grid_cols = 1, .phases = 3, .layer_by_layer = true, .suppress = true};
    bh_device *d;
    assert_ok(sp_bh_device_make(t, &firmware, test_weights(), &config, &d, &err), &err);
    assert_ok(sp_bh_device_prepare(d, WIDTH, HEIGHT, &err), &err);
    uint8_t *pixels = test_picture(WIDTH, HEIGHT, 3);
    assert_ok(sp_bh_device_upload(d, pixels, WIDTH, &err), &err);
    for (uint32_t i = 0; i < BH_LAYERS - 1; i++) {
        assert_ok(sp_bh_device_advance(d, &err), &err);
        for (uint32_t k = 0; i == SP_DETECTOR_B && k < SETTLE_TICKS; k++) { /* the tail runs alone */
            uint64_t now;
            assert_ok(t->tick(t, &now, &err), &err);
        }
    }
    assert_ok(sp_bh_device_finish(d, &err), &err);
    struct mailbox m;
    assert_ok(t->read(t, t->chip.tile[1], MAILBOX, &m, sizeof m, &err), &err);
    const bh_plan *plan = sp_bh_device_plan(d);
    const bh_block b = sp_bh_plan_block(plan, 1);
    const struct layer first = sp_bh_plan_layer(plan, 1, 0);
    const double cells = b.rows * b.cols, pixels_of = cells * 64;
    const double share = (first.rows + CORES - 1) / CORES * first.cols; /* of the core that has most rows */
    near("taps, a pixel", (m.taps_clock - m.go_clock[0]) / share, COUNT_TAPS_PIXEL, 0.1);
    near("ring, a row and plane", (m.end_clock[0] - m.threads_clock[0]) / (first.rows * 4.0), COUNT_RING_ROW, 0.1);
    near("factors, a cell", (m.go_clock[BH_SCALE] - m.begin_clock[BH_SCALE]) / cells, COUNT_FACTOR_CELL, 0.1);
    near("softmax, a cell", (m.tail_clock[1] - m.tail_clock[0]) / cells, COUNT_SOFTMAX_CELL, 0.1);
    near("suppression, a pixel", (m.tail_clock[2] - m.tail_clock[1]) / pixels_of, COUNT_SUPPRESS_PIXEL,
         0.5); /* by the scores, so by the weights */
    free(pixels);
    sp_bh_device_free(d);
}

/* The sums are the parts', and a frame that is spread further takes no longer. */
static void sums(void **state) {
    (void)state;
    double last = INFINITY;
    for (uint32_t tiles = 64; tiles <= 138; tiles += 37) {
        bh_plan plan;
        sp_error err;
        sp_frame_estimate e;
        assert_ok(sp_bh_plan_make(640, 480, tiles, 0, 0, 3, &plan, &err), &err);
        sp_bh_estimate(&plan, 1350, true, &e);
        double cycles = 0, matrix = 0;
        for (size_t i = 0; i < e.count; i++)
            cycles += e.stage[i].cycles, matrix += e.stage[i].unit[SP_UNIT_MATRIX];
        assert_true(fabs(cycles / 1350e3 - e.frame_ms) < 1e-9 * cycles);
        assert_true(matrix >= (double)sp_bh_plan_matrix_cycles(&plan));
        assert_true(e.frame_ms < last);
        last = e.frame_ms;
    }
}

int main(void) {
    const struct CMUnitTest arithmetic[] = {cmocka_unit_test(sums)};
    int failed = cmocka_run_group_tests(arithmetic, NULL, NULL);
    const char *library = simulator_or_skip("blackhole.estimate");
    if (!library)
        return failed ? failed : SKIPPED;
    bh_transport *transport = open_simulator(library);
    if (!transport)
        return 1;
    const struct CMUnitTest tests[] = {cmocka_unit_test_prestate(counts, transport)};
    failed += cmocka_run_group_tests(tests, NULL, NULL);
    transport->close(transport);
    return failed;
}
