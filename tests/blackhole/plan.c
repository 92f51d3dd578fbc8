/* How frames are spread over tiles: arithmetic only, no chip. */
#include "plan.h"
#include "common.h"

#include <stdlib.h>
#include <string.h>

/* Blocks cover every cell once; sizes differ by at most one; neighbours agree about each other. */
static void check_blocks(const bh_plan *plan) {
    uint8_t *covered = calloc(plan->cells_y, plan->cells_x);
    assert_non_null(covered);
    for (uint32_t k = 0; k < plan->tiles; k++) {
        const bh_block b = sp_bh_plan_block(plan, k);
        assert_in_range(b.rows, plan->block_rows - 1, plan->block_rows);
        assert_in_range(b.cols, plan->block_cols - 1, plan->block_cols);
        for (uint32_t y = 0; y < b.rows; y++)
            for (uint32_t x = 0; x < b.cols; x++)
                covered[(b.y + y) * plan->cells_x + b.x + x]++;
        const int32_t east = sp_bh_plan_neighbour(plan, k, EAST);
        if (east >= 0) {
            assert_int_equal(sp_bh_plan_neighbour(plan, (uint32_t)east, WEST), k);
            assert_int_equal(sp_bh_plan_block(plan, (uint32_t)east).x, b.x + b.cols);
        }
        const int32_t below = sp_bh_plan_neighbour(plan, k, SOUTH_EAST);
        if (below >= 0)
            assert_int_equal(sp_bh_plan_neighbour(plan, (uint32_t)below, NORTH_WEST), k);
    }
    for (uint32_t i = 0; i < plan->cells_x * plan->cells_y; i++)
        assert_int_equal(covered[i], 1);
    free(covered);
}

/* Every layer of every tile stays within its buffers, overshoot of the last block included. */
static void check_layers(const bh_plan *plan) {
    for (uint32_t k = 0; k < plan->tiles; k++)
        for (uint32_t i = 0; i < BH_LAYERS; i++) {
            const struct layer l = sp_bh_plan_layer(plan, k, i);
            const uint32_t in_end = l.in + (ONES_PIXELS + l.in_planes * l.in_plane) * PIXEL_BYTES;
            const uint32_t out_planes = (l.groups - 1) * 4 + l.last_planes;
            const uint32_t out_end = l.out + (ONES_PIXELS + out_planes * l.out_plane) * PIXEL_BYTES;
            assert_true(in_end <= plan->scores && out_end <= plan->scores);
            if (l.kind == LAYER_CONV)
                assert_true(in_end <= l.out || out_end <= l.in); /* a layer never overwrites what it reads */
            const uint32_t out_rows = l.pool ? l.rows / 2 : l.rows;
            const uint32_t last = l.pool ? l.out_pitch * out_rows + 1 + (l.out_pitch - 2 + 15) / 16 * 16
                                         : l.out_pitch + l.blocks * BLOCK_PIXELS;
            assert_true(LEAD_PIXELS + last <= l.out_plane);
            assert_int_equal(l.in_plane % PLANE_UNIT, 0);
        }
}

static void check_results(const bh_plan *plan) {
    assert_true(plan->end <= L1_BYTES);
    assert_true(plan->kept_offset >= (size_t)plan->width * plan->height * 4);
    assert_true(sp_bh_plan_descriptors_at(plan, plan->tiles - 1) + plan->descriptors_stride <= plan->slot_bytes);
    assert_true(plan->descriptors_offset >= plan->kept_offset + plan->tiles * plan->kept_stride);
}

static void every_number_of_tiles(void **state) {
    (void)state;
    static const uint32_t size[][2] = {{640, 480}, {64, 64}, {8, 8}, {1280, 16}, {16, 960}, {200, 104}};
    uint32_t planned = 0;
    for (size_t s = 0; s < sizeof size / sizeof size[0]; s++)
        for (uint32_t tiles = 1; tiles <= BH_MAX_TILES; tiles++) {
            bh_plan plan;
            sp_error err = {0};
            sp_status status = sp_bh_plan_make(size[s][0], size[s][1], tiles, 0, 0, 3, &plan, &err);
            if (status != SP_OK) {
                assert_int_equal(status, SP_ERR_LIMIT);
                assert_true(tiles < 64);
                continue;
            }
            planned++;
            assert_true(plan.tiles <= tiles);
            check_blocks(&plan);
            check_layers(&plan);
            check_results(&plan);
        }
    assert_true(planned > 500);
}

static void full_frame(void **state) {
    (void)state;
    bh_plan plan;
    sp_error err = {0};
    assert_ok(sp_bh_plan_make(640, 480, 64, 0, 0, 3, &plan, &err), &err);
    assert_ok(sp_bh_plan_make(640, 480, 140, 14, 10, 3, &plan, &err), &err);
    assert_int_equal(plan.tiles, 140);
    check_blocks(&plan);
    assert_int_equal(sp_bh_plan_make(640, 480, 7, 0, 0, 3, &plan, &err), SP_ERR_LIMIT);
    assert_non_null(strstr(err.text, "640x480"));
    assert_int_equal(sp_bh_plan_make(16384, 4096, 140, 0, 0, 3, &plan, &err), SP_ERR_LIMIT);
    assert_int_equal(sp_bh_plan_make(64, 64, 140, 9, 9, 3, &plan, &err), SP_ERR_LIMIT); /* 8 x 8 cells */
}

/* More tiles never mean more work for the busiest one. */
static void more_tiles_are_faster(void **state) {
    (void)state;
    uint64_t last = UINT64_MAX;
    for (uint32_t tiles = 64; tiles <= BH_MAX_TILES; tiles++) {
        bh_plan plan;
        sp_error err = {0};
        assert_ok(sp_bh_plan_make(640, 480, tiles, 0, 0, 3, &plan, &err), &err);
        const uint64_t cycles = sp_bh_plan_matrix_cycles(&plan);
        assert_true(cycles <= last + last / 8);
        last = cycles;
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_number_of_tiles), cmocka_unit_test(full_frame),
                                       cmocka_unit_test(more_tiles_are_faster)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
