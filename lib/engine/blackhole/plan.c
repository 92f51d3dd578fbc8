#include "plan.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/size.h"
#include "pack.h"

enum { IN_A, IN_B, IN_LOGITS, IN_DESCRIPTORS, BUFFERS };

/*
 * Buffers in turns: A takes the one large map (64 channels at full resolution) and B the pooled ones. Layer 0 reads the
 * taps that BRISC made in B. Layer 10 reads what layer 8 read.
 */
static const struct {
    uint8_t from, to;
} flow[SP_LAYERS] = {{IN_B, IN_A}, {IN_A, IN_B}, {IN_B, IN_A}, {IN_A, IN_B},      {IN_B, IN_A}, {IN_A, IN_B},
                     {IN_B, IN_A}, {IN_A, IN_B}, {IN_B, IN_A}, {IN_A, IN_LOGITS}, {IN_B, IN_A}, {IN_A, IN_DESCRIPTORS}};

/* From here on A holds small maps only: the logits and the descriptors lie in what is then its dead part. */
enum { FIRST_SMALL_LAYER = 2 };

enum { SQUARES_PHASES = 4, PICTURE_FIRST_PHASES = 3 }; /* pixels have 8 bits: two phases would cut them */

static uint32_t planes_of(uint32_t channels) {
    return (channels + PLANE_CHANNELS - 1) / PLANE_CHANNELS;
}

/* log2 of how much smaller than the frame a layer's output is. */
static uint32_t out_shrink(uint32_t i) {
    return sp_network[i].shrink + (sp_network[i].pool ? 1 : 0);
}

/* Pixels a plane of rows x cols pixels: halo, lead, and slack for the overshoot of the last block. */
static uint32_t plane_pixels(uint32_t rows, uint32_t cols) {
    return (uint32_t)sp_round_up(LEAD_PIXELS + (rows + 2) * (cols + 2) + BLOCK_PIXELS, PLANE_UNIT);
}

static uint32_t plane_at(const bh_plan *plan, uint32_t shrink) {
    return plane_pixels(plan->block_rows * SP_CELL >> shrink, plan->block_cols * SP_CELL >> shrink);
}

static uint32_t pitch_at(const bh_plan *plan, uint32_t shrink) {
    return (plan->block_cols * SP_CELL >> shrink) + 2;
}

static uint32_t buffer_bytes(uint32_t planes, uint32_t plane) {
    return (ONES_PIXELS + planes * plane) * PIXEL_BYTES;
}

static uint32_t greater(uint32_t a, uint32_t b) {
    return a > b ? a : b;
}

static uint32_t buffer_address(const bh_plan *plan, uint32_t buffer) {
    const uint32_t address[BUFFERS] = {plan->buffer_a, plan->buffer_b, plan->logits, plan->descriptors};
    return address[buffer];
}

static void lay_out(bh_plan *plan) {
    uint32_t a = 0, a_small = 0, b = buffer_bytes(1, plane_at(plan, 0)); /* the taps */
    for (uint32_t i = 0; i < SP_LAYERS; i++) {
        const uint32_t bytes = buffer_bytes(planes_of(sp_network[i].out), plane_at(plan, out_shrink(i)));
        if (flow[i].to == IN_A) {
            a = greater(a, bytes);
            if (i >= FIRST_SMALL_LAYER)
                a_small = greater(a_small, bytes);
        } else if (flow[i].to == IN_B) {
            b = greater(b, bytes);
        }
    }
    const uint32_t cells = plane_at(plan, 3);
    plan->buffer_a = ACTIVATIONS;
    plan->logits = plan->buffer_a + a_small;
    plan->descriptors = plan->logits + buffer_bytes(planes_of(SP_LOGITS), cells);
    const uint32_t heads_end = plan->descriptors + buffer_bytes(planes_of(SP_DESCRIPTOR_DIM), cells);
    plan->buffer_b = greater(plan->buffer_a + a, heads_end);
    plan->scores = plan->buffer_b + b;
    plan->score_pitch = (plan->block_cols * SP_CELL + 2 * SUPPRESS_RADIUS) * 4;
    plan->kept = plan->scores + (plan->block_rows * SP_CELL + 2 * SUPPRESS_RADIUS) * plan->score_pitch;
    plan->kept = (uint32_t)sp_round_up(plan->kept, 64);
    plan->kept_pitch = (plan->block_cols * SP_CELL + 31) / 32 * 4;
    plan->kept_bytes = (uint32_t)sp_round_up(plan->block_rows * SP_CELL * plan->kept_pitch, NOC_ALIGN_L1);
    plan->end = plan->kept + plan->kept_bytes;
}

static void lay_out_results(bh_plan *plan) {
    plan->picture_pitch = (uint32_t)sp_round_up(plan->width + 2, NOC_ALIGN_DRAM);
    plan->picture_slot_bytes = plan->picture_pitch * (plan->height + 2);
    plan->scores_offset = 0;
    plan->kept_offset = sp_round_up((size_t)plan->width * plan->height * 4, 64);
    plan->kept_stride = sp_round_up(plan->kept_bytes, 64);
    plan->descriptors_offset = plan->kept_offset + plan->kept_stride * plan->tiles;
    plan->descriptors_stride =
        (size_t)planes_of(SP_DESCRIPTOR_DIM) * plan->block_rows * sp_bh_plan_descriptor_pitch(plan);
    plan->slot_bytes = sp_round_up(plan->descriptors_offset + plan->descriptors_stride * plan->tiles, 64);
}

/* The first limit that a plan breaks, or NULL. */
static const char *broken_limit(const bh_plan *plan) {
    const uint32_t pixels = plan->block_rows * SP_CELL, row = plan->block_cols * SP_CELL;
    if (plan->end > L1_BYTES)
        return "L1 of a tile (1536 KiB)";
    if (ONES_PIXELS + LEAD_PIXELS + (pixels + 2) * (row + 2) + BLOCK_PIXELS > UNPACK_Y_LIMIT)
        return "pixel counter of the unpacker (8192 pixels a tile)";
    if ((pixels + 2) * sp_round_up(NOC_ALIGN_DRAM - 1 + row + 2, NOC_ALIGN_DRAM) > PICTURE_BYTES)
        return "picture rows in L1 (40 KiB)";
    for (uint32_t i = 0; i < SP_LAYERS; i++)
        if ((planes_of(sp_network[i].in) - 1) * (plane_at(plan, sp_network[i].shrink) / PLANE_UNIT) >= UNPACK_Z_LIMIT)
            return "plane counter of the unpacker";
    if ((planes_of(SP_DESCRIPTOR_DIM) - 1) * (plane_at(plan, 3) / PLANE_UNIT) * 2 >= UNPACK_Z_LIMIT)
        return "plane counter of the unpacker";
    return NULL;
}

static bh_plan candidate(uint32_t width, uint32_t height, uint32_t rows, uint32_t cols, uint32_t phases) {
    bh_plan plan = {.width = width,
                    .height = height,
                    .cells_x = width / SP_CELL,
                    .cells_y = height / SP_CELL,
                    .grid_rows = rows,
                    .grid_cols = cols,
                    .tiles = rows * cols,
                    .phases = phases};
    plan.block_rows = (plan.cells_y + rows - 1) / rows;
    plan.block_cols = (plan.cells_x + cols - 1) / cols;
    lay_out(&plan);
    lay_out_results(&plan);
    return plan;
}

/* Halo bytes of the largest tile in a frame: perimeter of every map that is read with a 3 x 3 window. */
static uint64_t halo_bytes(const bh_plan *plan) {
    uint64_t bytes = 0;
    for (uint32_t i = 1; i < SP_LAYERS; i++)
        if (sp_network[i].kernel == 3 && i != SP_DESCRIPTOR_A)
            bytes += (uint64_t)planes_of(sp_network[i].in) * PIXEL_BYTES * 2 *
                     ((plan->block_rows + plan->block_cols) * SP_CELL >> sp_network[i].shrink);
    return bytes;
}

/* Matrix cycles, and about one cycle for 16 bytes of halo: rows come fast, columns as one command a pixel. */
static uint64_t cost(const bh_plan *plan) {
    return sp_bh_plan_matrix_cycles(plan) + halo_bytes(plan) / 16;
}

sp_status sp_bh_plan_make(uint32_t width, uint32_t height, uint32_t tiles, uint32_t grid_rows, uint32_t grid_cols,
                          uint32_t phases, bh_plan *plan, sp_error *err) {
    const uint32_t cells_x = width / SP_CELL, cells_y = height / SP_CELL;
    /* Beyond this no number of tiles could hold the frame; it also keeps the arithmetic within 32 bits. */
    if ((uint64_t)cells_x * cells_y > (uint64_t)tiles * UNPACK_Y_LIMIT)
        return sp_fail(err, SP_ERR_LIMIT, "blackhole: a frame of %ux%u does not fit on %u tiles", width, height, tiles);
    bool found = false;
    const char *limit = "number of cells a side";
    for (uint32_t rows = 1; rows <= tiles && rows <= cells_y; rows++)
        for (uint32_t cols = 1; rows * cols <= tiles && cols <= cells_x; cols++) {
            if (grid_rows && (rows != grid_rows || cols != grid_cols))
                continue;
            if ((uint64_t)((cells_y + rows - 1) / rows) * ((cells_x + cols - 1) / cols) > UNPACK_Y_LIMIT) {
                limit = "pixel counter of the unpacker (8192 pixels a tile)";
                continue;
            }
            bh_plan next = candidate(width, height, rows, cols, phases);
            const char *broken = broken_limit(&next);
            if (broken)
                limit = broken;
            else if (!found || cost(&next) < cost(plan))
                *plan = next, found = true;
        }
    if (found)
        return SP_OK;
    if (grid_rows)
        return sp_fail(err, SP_ERR_LIMIT, "blackhole: a frame of %ux%u does not fit on %ux%u tiles: %s", width, height,
                       grid_rows, grid_cols, limit);
    return sp_fail(err, SP_ERR_LIMIT, "blackhole: a frame of %ux%u does not fit on %u tiles: %s", width, height, tiles,
                   limit);
}

bh_block sp_bh_plan_block(const bh_plan *plan, uint32_t tile) {
    const uint32_t row = tile / plan->grid_cols, col = tile % plan->grid_cols;
    bh_block b = {.y = plan->cells_y * row / plan->grid_rows, .x = plan->cells_x * col / plan->grid_cols};
    b.rows = plan->cells_y * (row + 1) / plan->grid_rows - b.y;
    b.cols = plan->cells_x * (col + 1) / plan->grid_cols - b.x;
    return b;
}

int32_t sp_bh_plan_neighbour(const bh_plan *plan, uint32_t tile, uint32_t k) {
    static const int8_t down[NEIGHBOURS] = {-1, 1, 0, 0, -1, -1, 1, 1};
    static const int8_t right[NEIGHBOURS] = {0, 0, -1, 1, -1, 1, -1, 1};
    const int32_t row = (int32_t)(tile / plan->grid_cols) + down[k], col = (int32_t)(tile % plan->grid_cols) + right[k];
    if (row < 0 || row >= (int32_t)plan->grid_rows || col < 0 || col >= (int32_t)plan->grid_cols)
        return -1;
    return row * (int32_t)plan->grid_cols + col;
}

/* Cells of the tile above and of the tile to the left; 0 where there is none. */
static uint32_t rows_above(const bh_plan *plan, uint32_t tile) {
    return tile < plan->grid_cols ? 0 : sp_bh_plan_block(plan, tile - plan->grid_cols).rows;
}

static uint32_t cols_left(const bh_plan *plan, uint32_t tile) {
    return tile % plan->grid_cols ? sp_bh_plan_block(plan, tile - 1).cols : 0;
}

/* The L2 norm: squares of the descriptors summed to one plane in B (so wait until the neighbours have read B's halo),
 * factors to one plane of A, products back in place. */
static struct layer norm_layer(const bh_plan *plan, uint32_t tile, uint32_t i) {
    struct layer l = sp_bh_plan_layer(plan, tile, SP_DESCRIPTOR_B);
    l.in_plane = l.out_plane;
    l.a = plan->descriptors;
    l.a_planes = planes_of(SP_DESCRIPTOR_DIM);
    l.phases = SQUARES_PHASES;
    if (i == BH_SQUARES) {
        l.kind = LAYER_SQUARES;
        l.in = plan->descriptors;
        l.out = plan->buffer_b;
        l.groups = 1;
        l.last_planes = 1;
        l.halo = HALO_WAIT;
    } else {
        l.kind = LAYER_SCALE;
        l.in = plan->buffer_a;
        l.out = plan->descriptors;
    }
    return l;
}

struct layer sp_bh_plan_layer(const bh_plan *plan, uint32_t tile, uint32_t i) {
    if (i >= SP_LAYERS)
        return norm_layer(plan, tile, i);
    const sp_layer *n = &sp_network[i];
    const bh_block block = sp_bh_plan_block(plan, tile);
    const bool first = i == 0;
    struct layer l = {.kind = LAYER_CONV, .relu = n->relu, .pool = n->pool, .from_picture = first};
    l.in = buffer_address(plan, flow[i].from);
    l.in_plane = plane_at(plan, n->shrink);
    l.pitch = pitch_at(plan, n->shrink);
    l.rows = block.rows * SP_CELL >> n->shrink;
    l.cols = block.cols * SP_CELL >> n->shrink;
    l.taps = first ? 1 : (uint32_t)(n->kernel * n->kernel);
    l.in_planes = first ? 1 : planes_of(n->in);
    l.groups = sp_bh_layer_groups(n);
    l.last_planes = planes_of(n->out) - (l.groups - 1) * 4;
    l.out = buffer_address(plan, flow[i].to);
    l.out_plane = plane_at(plan, out_shrink(i));
    l.out_pitch = pitch_at(plan, out_shrink(i));
    l.blocks = n->pool ? l.rows / 2 * ((l.pitch - 2 + 31) / 32) : (l.rows * l.pitch + BLOCK_PIXELS - 1) / BLOCK_PIXELS;
    l.halo = n->kernel == 3 && !first && i != SP_DESCRIPTOR_A ? HALO_FETCH : HALO_NONE;
    l.zero_ring = i < SP_ENCODER_END;
    l.north_rows = rows_above(plan, tile) * SP_CELL >> n->shrink;
    l.west_cols = cols_left(plan, tile) * SP_CELL >> n->shrink;
    l.phases = first && plan->phases < PICTURE_FIRST_PHASES ? PICTURE_FIRST_PHASES : plan->phases;
    return l;
}

struct tail sp_bh_plan_tail(const bh_plan *plan, uint32_t tile, double logit_scale) {
    const bh_block block = sp_bh_plan_block(plan, tile);
    const uint32_t plane = plane_at(plan, 3), pitch = pitch_at(plan, 3);
    const float log2e = (float)(1.4426950408889634 / logit_scale);
    struct tail t = {.after_layer = SP_DETECTOR_B + 1,
                     .logits = plan->logits + (ONES_PIXELS + LEAD_PIXELS + pitch + 1) * PIXEL_BYTES,
                     .logits_plane = plane * PIXEL_BYTES,
                     .logits_pitch = pitch * PIXEL_BYTES,
                     .rows = block.rows,
                     .cols = block.cols,
                     .scores = plan->scores,
                     .score_pitch = plan->score_pitch,
                     .north_rows = rows_above(plan, tile),
                     .west_cols = cols_left(plan, tile),
                     .kept = plan->kept,
                     .kept_pitch = plan->kept_pitch,
                     .kept_bytes = plan->kept_bytes,
                     .scores_out_pitch = plan->width * 4};
    memcpy(&t.log2e, &log2e, sizeof log2e);
    return t;
}

size_t sp_bh_plan_descriptors_at(const bh_plan *plan, uint32_t tile) {
    return plan->descriptors_offset + plan->descriptors_stride * tile;
}

uint32_t sp_bh_plan_descriptor_pitch(const bh_plan *plan) {
    return pitch_at(plan, 3) * PIXEL_BYTES;
}

uint64_t sp_bh_plan_matrix_cycles(const bh_plan *plan) {
    uint64_t cycles = 0;
    for (uint32_t i = 0; i < SP_LAYERS; i++) {
        const sp_layer *n = &sp_network[i];
        const uint32_t rows = plan->block_rows * SP_CELL >> n->shrink, pitch = pitch_at(plan, n->shrink);
        const uint64_t blocks =
            n->pool ? rows / 2 * ((pitch - 2 + 31) / 32) : (rows * pitch + BLOCK_PIXELS - 1) / BLOCK_PIXELS;
        cycles += blocks * sp_bh_layer_groups(n) * sp_bh_layer_blocks(n) * 32 * plan->phases;
    }
    return cycles;
}
