/*
 * How a frame is spread over the tiles: blocks of the frame, buffers in L1, layer records, and where the results go.
 * Pure arithmetic: nothing here touches a chip.
 */
#ifndef BH_PLAN_H
#define BH_PLAN_H

#include "firmware/tile.h"
#include "model/network.h"
#include "superpoint.h"

/* The convolutions of the network, then the two element-wise layers of the L2 norm. */
enum { BH_SQUARES = SP_LAYERS, BH_SCALE, BH_LAYERS };

/* Cells (8 x 8 pixels) of one tile. */
typedef struct bh_block {
    uint32_t y, rows, x, cols;
} bh_block;

typedef struct bh_plan {
    uint32_t width, height;          /* pixels */
    uint32_t cells_x, cells_y;       /* of the frame */
    uint32_t grid_rows, grid_cols;   /* of tiles */
    uint32_t tiles;                  /* grid_rows * grid_cols; tile k is row k / grid_cols, column k % grid_cols */
    uint32_t block_rows, block_cols; /* cells of the largest tile: all tiles use its pitch */
    uint32_t phases;                 /* fidelity phases */

    /* Places in L1, the same in every tile. */
    uint32_t buffer_a, buffer_b, logits, descriptors; /* activation buffers */
    uint32_t scores, score_pitch, kept, kept_pitch, kept_bytes;
    uint32_t end; /* first byte not used */

    /* Picture in DRAM. */
    uint32_t picture_pitch, picture_slot_bytes;

    /* Results of a frame in shared memory, from the slot's start. Scores lie as the frame's; the others tile by tile.
     */
    size_t scores_offset, kept_offset, kept_stride, descriptors_offset, descriptors_stride, slot_bytes;
} bh_plan;

/*
 * Plan a frame for at most `tiles` tiles, or for exactly rows x cols of them when `grid_rows` is not 0. Among the grids
 * that fit, the one whose largest tile needs the least matrix work and traffic. SP_ERR_LIMIT when none fits.
 */
sp_status sp_bh_plan_make(uint32_t width, uint32_t height, uint32_t tiles, uint32_t grid_rows, uint32_t grid_cols,
                          uint32_t phases, bh_plan *plan, sp_error *err);

bh_block sp_bh_plan_block(const bh_plan *plan, uint32_t tile);

/* Number of the neighbour k of a tile, or -1 outside the frame. */
int32_t sp_bh_plan_neighbour(const bh_plan *plan, uint32_t tile, uint32_t k);

/* Layer i of a tile; weights' place and size are left 0. */
struct layer sp_bh_plan_layer(const bh_plan *plan, uint32_t tile, uint32_t i);

/* NCRISC's record for logits stored times `logit_scale`; where the results go is left 0. */
struct tail sp_bh_plan_tail(const bh_plan *plan, uint32_t tile, double logit_scale);

/* Of a tile within one result slot. */
size_t sp_bh_plan_descriptors_at(const bh_plan *plan, uint32_t tile);
uint32_t sp_bh_plan_descriptor_pitch(const bh_plan *plan);

/* Cycles of matrix work on the largest tile, as a measure for the choice of a grid. */
uint64_t sp_bh_plan_matrix_cycles(const bh_plan *plan);

#endif
