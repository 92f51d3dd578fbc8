/*
 * Cycles per layer and unit on the busiest tile, from the layer records that the firmware itself walks.
 *
 * Each constant carries its source: "doc" is the vendor's documentation, "counted" the simulator running this
 * firmware, "assumed" neither. A layer takes: what BRISC does before it, the slowest of what overlaps, what BRISC does
 * after it.
 */
#include "estimate.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "pack.h"

/* doc: ISA MVMUL, one 8x16 by 16x16 product a cycle when it comes from the replay buffer. */
#define MVMUL_CYCLES 1.0
/* A single instruction stored to the FIFO by a core: about six cycles (a reported measurement on silicon). */
#define STORED_CYCLES 6.0
/* counted in math.c: SEMWAIT, STALLWAIT, SETC16, ZEROACC, SETRWC, SEMPOST; and assumed: the FPU drains in 20 cycles. */
#define MATH_BLOCK_CYCLES 40.0
#define SETRWC_CYCLES 1.0
/* counted in math.c: vector instructions for one parity of one plane (512 values), one a cycle (doc: ISA SFPU). */
#define POOL_INSTRUCTIONS 58.0
/* doc: ISA Unpackers, 64 bytes a cycle each at least; both at once. */
#define UNPACK_BYTES 64.0
/* doc: ISA Packers, 16 bytes a cycle from each of four; assumed: 20 cycles from idle to idle when the address changes.
 */
#define PACK_BYTES 64.0
#define PACK_START_CYCLES 20.0
/* doc: NoC, 64 bytes a cycle and link. counted: instructions to start one read. assumed: latency of a read, and of the
 * last answer. */
#define NOC_BYTES 64.0
#define NOC_COMMAND_CYCLES 26.0
#define NOC_LATENCY 400.0
/* doc: eight GDDR6 banks, 512 GB/s together; one layer's weights lie in one bank. */
#define DRAM_BANK_BYTES_S 64e9
/* assumed: results over PCIe 5.0 x16 at half of its 64 GB/s. */
#define PCIE_BYTES_S 32e9
/* Scalar cores: one instruction a cycle (doc), loads from L1 may take up to eight: the counts are a lower bound. */
#define ELEMENTWISE_ROWS 8.0
#define DESCRIPTOR_PLANES ((double)SP_DESCRIPTOR_DIM / PLANE_CHANNELS)

static double most(const double *unit, sp_unit *which) {
    double greatest = 0;
    for (int u = 0; u < SP_UNITS; u++)
        if (unit[u] > greatest)
            greatest = unit[u], *which = (sp_unit)u;
    return greatest;
}

/* The matrix thread: multiplication and pooling follow each other. */
static void count_math(const struct layer *l, double *unit) {
    const double blocks = (double)l->blocks * l->groups;
    if (l->kind == LAYER_CONV) {
        const double k_blocks = l->taps * l->in_planes + 1;
        unit[SP_UNIT_MATRIX] =
            blocks * (k_blocks * (32 * l->phases * MVMUL_CYCLES + SETRWC_CYCLES) + MATH_BLOCK_CYCLES);
    } else {
        const double planes = l->kind == LAYER_SQUARES ? l->a_planes : 4;
        unit[SP_UNIT_MATRIX] = blocks * (planes * l->phases * ELEMENTWISE_ROWS * STORED_CYCLES + MATH_BLOCK_CYCLES);
    }
    if (l->pool)
        unit[SP_UNIT_VECTOR] = blocks * 4 * 2 * POOL_INSTRUCTIONS;
}

static void count_movers(const struct layer *l, double *unit) {
    const double blocks = (double)l->blocks * l->groups, block_bytes = (double)BLOCK_PIXELS * PIXEL_BYTES;
    const double loads = l->kind == LAYER_CONV      ? l->taps * l->in_planes + 1
                         : l->kind == LAYER_SQUARES ? l->a_planes
                                                    : 4;
    unit[SP_UNIT_UNPACK] = blocks * loads * block_bytes / UNPACK_BYTES; /* SrcA and SrcB at the same time */
    const double planes = (double)l->blocks * ((l->groups - 1) * 4 + l->last_planes);
    unit[SP_UNIT_PACK] = planes * (block_bytes / (l->pool ? 4 : 1) / PACK_BYTES + PACK_START_CYCLES);
}

/* What BRISC does before the T cores start, and after they are done. */
static double count_before(const struct layer *l) {
    double cycles = 0;
    if (l->halo == HALO_FETCH) {
        const double commands = l->in_planes * (2.0 + 2.0 * l->rows + 4);
        cycles += commands * NOC_COMMAND_CYCLES + NOC_LATENCY;
    }
    if (l->from_picture) { /* the cores share the rows */
        const double rows = (l->rows + CORES - 1) / CORES;
        cycles += rows * l->cols * COUNT_TAPS_PIXEL + (l->rows + 2) * NOC_COMMAND_CYCLES + NOC_LATENCY;
    }
    if (l->kind == LAYER_SCALE)
        cycles += l->rows * l->cols * COUNT_FACTOR_CELL;
    return cycles;
}

static double count_after(const struct layer *l) {
    double cycles = NEIGHBOURS * NOC_COMMAND_CYCLES + 2 * NOC_LATENCY; /* told, and heard of */
    if (l->zero_ring)
        cycles += (l->pool ? l->rows / 2.0 : l->rows) * ((l->groups - 1) * 4 + l->last_planes) * COUNT_RING_ROW;
    return cycles;
}

static void count_traffic(const bh_plan *plan, uint32_t i, const struct layer *l, double hz, bool feeders,
                          double *unit) {
    const double weights = i < SP_LAYERS ? (double)sp_bh_packed_bytes(&sp_network[i]) : 0;
    const double halo = l->halo == HALO_FETCH ? 2.0 * (l->rows + l->cols + 2) * l->in_planes * PIXEL_BYTES : 0;
    unit[SP_UNIT_NETWORK] = (weights + halo) / NOC_BYTES;
    /* Two feeders read a copy each, or every tile reads one. */
    unit[SP_UNIT_MEMORY] = weights * (feeders ? 2 : plan->tiles) / (DRAM_BANK_BYTES_S / hz);
}

static sp_estimate *add(sp_frame_estimate *e, const char *stage) {
    sp_estimate *s = &e->stage[e->count++];
    s->stage = stage;
    return s;
}

/*
 * What is left when the descriptor head is done. Softmax and suppression begin with the logits and run beside the head,
 * which takes `beside`; all results go through one link to the host: the descriptors when the head is done, the
 * scores when the softmax is, while pixels are suppressed. The later of scalar core and link ends the frame.
 */
static void count_tail(const bh_plan *plan, double hz, double beside, sp_frame_estimate *e) {
    const double cells = (double)plan->block_rows * plan->block_cols;
    const double pixels = (double)plan->width * plan->height, bytes_a_cycle = PCIE_BYTES_S / hz;
    const double row_bytes = (double)plan->descriptors_stride / DESCRIPTOR_PLANES;
    const double descriptors = plan->tiles * DESCRIPTOR_PLANES * (row_bytes - 2 * PIXEL_BYTES);
    const double scores = pixels * sizeof(float), kept = (double)plan->kept_bytes * plan->tiles;
    const double softmax = cells * COUNT_SOFTMAX_CELL, suppress = cells * 64 * COUNT_SUPPRESS_PIXEL;
    sp_estimate *tail = add(e, "softmax and suppression"), *out = add(e, "results to the host");
    tail->unit[SP_UNIT_TAIL] = softmax + suppress;
    tail->limit = SP_UNIT_TAIL;
    out->unit[SP_UNIT_NETWORK] = (descriptors + scores + kept) / bytes_a_cycle;
    out->limit = SP_UNIT_NETWORK;
    const double descriptors_end = beside + descriptors / bytes_a_cycle;
    const double link_end = fmax(descriptors_end, softmax) + (scores + kept) / bytes_a_cycle;
    const double tail_end = softmax + suppress;
    out->cycles = link_end > beside ? link_end - beside : 0;
    tail->cycles = tail_end > link_end ? tail_end - link_end : 0;
}

void sp_bh_estimate(const bh_plan *plan, double clock_mhz, bool feeders, sp_frame_estimate *e) {
    static const char *const norm_name[] = {"norm: squares", "norm: scale"};
    const double hz = clock_mhz * 1e6;
    memset(e, 0, sizeof *e);
    e->clock_mhz = clock_mhz;
    snprintf(e->layout, sizeof e->layout, "%u x %u tiles, %u x %u cells on the largest", plan->grid_rows,
             plan->grid_cols, plan->block_rows, plan->block_cols);
    /* Blocks differ by one row and one column; the last tile is one of the largest both ways. */
    const uint32_t largest = plan->tiles - 1;
    double beside = 0;
    for (uint32_t i = 0; i < BH_LAYERS; i++) {
        const struct layer l = sp_bh_plan_layer(plan, largest, i);
        sp_estimate *s = add(e, i < SP_LAYERS ? sp_network[i].name : norm_name[i - SP_LAYERS]);
        count_math(&l, s->unit);
        count_movers(&l, s->unit);
        count_traffic(plan, i, &l, hz, feeders, s->unit);
        const double overlapped = most(s->unit, &s->limit), math = s->unit[SP_UNIT_MATRIX] + s->unit[SP_UNIT_VECTOR];
        s->unit[SP_UNIT_SCALAR] = count_before(&l) + count_after(&l);
        s->cycles = s->unit[SP_UNIT_SCALAR] + (math > overlapped ? math : overlapped);
        (void)most(s->unit, &s->limit);
        if (i > SP_DETECTOR_B)
            beside += s->cycles;
    }
    count_tail(plan, hz, beside, e);
    for (size_t i = 0; i < e->count; i++)
        e->frame_ms += e->stage[i].cycles / hz * 1e3;
}
