/*
 * NCRISC: a share of the first layer's taps, then the tail, while the other cores go on with the descriptor head:
 * softmax over the 65 logits of a cell, unfolding to pixels, and single-pass suppression with radius 4 (halo of scores
 * from the neighbours).
 */
#include "float.h"
#define NOC_OWN_INITIATOR 1u
#define NOC_OWN_ID 1u
#include "noc.h"
#include "taps.h"

START(LOCAL_RAM_TOP_BN)

#define TAIL_RECORD ((const struct tail *)TAIL)
#define RADIUS SUPPRESS_RADIUS
#define LOGITS 65u
#define CELL 8u
#define LEAST_LOGIT -131008.0f /* the chip's smallest fp16 */

static void softmax_cell(const struct tail *t, u32 from, u32 to) {
    float v[LOGITS], greatest = LEAST_LOGIT, sum = 0.0f;
    u32 i = 0;
    for (u32 plane = 0; plane < 4; plane++, from += t->logits_plane)
        for (u32 k = 0; k < PIXEL_BYTES; k += 4, i += 2) {
            u32 two = REG(from + k);
            v[i] = float_of_half(two);
            v[i + 1] = float_of_half(two >> 16);
            greatest = v[i] > greatest ? v[i] : greatest;
            greatest = v[i + 1] > greatest ? v[i + 1] : greatest;
        }
    v[LOGITS - 1] = float_of_half(REG(from));
    greatest = v[LOGITS - 1] > greatest ? v[LOGITS - 1] : greatest;
    const float log2e = float_of(t->log2e);
    for (i = 0; i < LOGITS; i++) {
        v[i] = exp2_negative((v[i] - greatest) * log2e);
        sum += v[i];
    }
    sum = reciprocal(sum);
    i = 0;
    for (u32 y = 0; y < CELL; y++, to += t->score_pitch)
        for (u32 x = 0; x < CELL * 4; x += 4)
            REG(to + x) = bits_of(v[i++] * sum);
}

static void softmax(const struct tail *t) {
    u32 from = t->logits, to = t->scores + RADIUS * t->score_pitch + RADIUS * 4;
    for (u32 y = 0; y < t->rows; y++, from += t->logits_pitch, to += CELL * t->score_pitch)
        for (u32 x = 0; x < t->cols; x++)
            softmax_cell(t, from + x * PIXEL_BYTES, to + x * CELL * 4);
    FENCE();
}

/* Start writing own scores into the frame's score map, row by row. They stay as they are until the next frame. */
static void write_scores(const struct tail *t, u32 frame) {
    u64 to = remote_address(&t->scores_out, frame);
    u32 from = t->scores + RADIUS * t->score_pitch + RADIUS * 4;
    for (u32 y = 0; y < t->rows * CELL; y++, from += t->score_pitch, to += t->scores_out_pitch)
        noc_write(from, t->scores_out.at, to, t->cols * CELL * 4);
}

/* RADIUS rows and columns of scores from each side, RADIUS x RADIUS from the corners. Outside the frame the map stays
 * zero, which is never above anything. */
static void fetch_halo(const struct tail *t) {
    const u32 row = t->score_pitch, height = t->rows * CELL, width = t->cols * CELL * 4, side = RADIUS * 4;
    const u32 north_last = t->north_rows * CELL * row, west_last = t->west_cols * CELL * 4;
    u32 at[NEIGHBOURS];
    for (u32 k = 0; k < NEIGHBOURS; k++)
        at[k] = MB->neighbour[k];
    for (u32 y = 0; y < RADIUS; y++) {
        const u32 top = t->scores + y * row, bottom = t->scores + (height + RADIUS + y) * row;
        const u32 north = top + north_last,
                  south = t->scores + (RADIUS + y) * row; /* the same rows as their owners see them */
        if (at[NORTH] != NOC_NOWHERE)
            noc_read(at[NORTH], north + side, top + side, width);
        if (at[SOUTH] != NOC_NOWHERE)
            noc_read(at[SOUTH], south + side, bottom + side, width);
        if (at[NORTH_WEST] != NOC_NOWHERE)
            noc_read(at[NORTH_WEST], north + west_last, top, side);
        if (at[NORTH_EAST] != NOC_NOWHERE)
            noc_read(at[NORTH_EAST], north + side, top + side + width, side);
        if (at[SOUTH_WEST] != NOC_NOWHERE)
            noc_read(at[SOUTH_WEST], south + west_last, bottom, side);
        if (at[SOUTH_EAST] != NOC_NOWHERE)
            noc_read(at[SOUTH_EAST], south + side, bottom + side + width, side);
    }
    for (u32 y = 0; y < height; y++) {
        const u32 a = t->scores + (RADIUS + y) * row;
        if (at[WEST] != NOC_NOWHERE)
            noc_read(at[WEST], a + west_last, a, side);
        if (at[EAST] != NOC_NOWHERE)
            noc_read(at[EAST], a + side, a + side + width, side);
    }
    noc_wait();
}

/* Scores are positive, so their bits compare as integers. Most pixels are given up after one or two looks at the direct
 * neighbours. */
static u32 survives(const u32 *p, u32 words, u32 v) {
    if (p[-1] > v || p[1] > v || p[-(int)words] > v || p[words] > v)
        return 0;
    const u32 *q = p - RADIUS * words - RADIUS;
    for (u32 j = 0; j < 2 * RADIUS + 1; j++, q += words)
        for (u32 i = 0; i < 2 * RADIUS + 1; i++)
            if (q[i] > v)
                return 0;
    return 1;
}

/* Starts writing the bit map to the host. */
static void suppress(const struct tail *t, u32 frame) {
    const u32 words = t->score_pitch / 4, width = t->cols * CELL;
    const u32 *p = (const u32 *)t->scores + RADIUS * words + RADIUS;
    u32 to = t->kept;
    for (u32 y = 0; y < t->rows * CELL; y++, p += words, to += t->kept_pitch)
        for (u32 x = 0; x < width; x += 32) {
            const u32 n = width - x < 32 ? width - x : 32;
            u32 kept = 0;
            for (u32 i = 0; i < n; i++)
                kept |= survives(p + x + i, words, p[x + i]) << i;
            REG(to + x / 8) = kept;
        }
    FENCE();
    noc_write(t->kept, t->kept_out.at, remote_address(&t->kept_out, frame), t->kept_bytes);
}

static void tell_neighbours(u32 maps) {
    MB->ncrisc_out.value = maps;
    publish(&MB->ncrisc_out.value);
    for (u32 k = 0; k < NEIGHBOURS; k++)
        if (MB->neighbour[k] != NOC_NOWHERE)
            noc_signal(&MB->ncrisc_out, MB->neighbour[k], &MB->scores_from[opposite(k)]);
    noc_wait();
}

/* The neighbours' maps are whole. Nobody overwrites one before all tiles have finished the frame: the host starts the
 * next frame only then. */
static void wait_neighbours(u32 maps) {
    for (u32 k = 0; k < NEIGHBOURS; k++)
        if (MB->neighbour[k] != NOC_NOWHERE)
            wait_reached(&MB->scores_from[k].value, maps);
}

/* Begins when `layer` layers are finished, which makes the logits. The scores travel to the host while pixels are
 * suppressed. */
static void run_tail(const struct tail *t, u32 frame, u32 layer) {
    step(CORE_NCRISC, layer, STEP_WAIT_LAYER);
    wait_reached(&MB->done, layer);
    MB->tail_clock[0] = REG(WALL_CLOCK);
    step(CORE_NCRISC, layer, STEP_SOFTMAX);
    softmax(t);
    MB->tail_clock[1] = REG(WALL_CLOCK);
    const u32 suppresses = MB->flags & MAILBOX_SUPPRESS;
    if (suppresses) {
        tell_neighbours(frame + 1);
        step(CORE_NCRISC, layer, STEP_WAIT_NEIGHBOURS);
        wait_neighbours(frame + 1);
        step(CORE_NCRISC, layer, STEP_HALO);
        fetch_halo(t);
    }
    write_scores(t, frame);
    if (suppresses) {
        step(CORE_NCRISC, layer, STEP_SUPPRESS);
        suppress(t, frame);
    }
    step(CORE_NCRISC, layer, STEP_RESULT);
    noc_wait();
    MB->tail_clock[2] = REG(WALL_CLOCK);
}

__attribute__((used)) void main_(void) {
    report_start(CORE_NCRISC, PROGRAM_NCRISC);
    noc_begin();
    const struct tail *t = TAIL_RECORD;
    const u32 map_end = t->scores + (t->rows * CELL + 2 * RADIUS) * t->score_pitch;
    for (u32 a = t->scores; a < map_end; a += 4)
        REG(a) = 0;
    FENCE();
    uint16_t half_of_byte[BYTE_VALUES];
    make_byte_table(half_of_byte);
    const u32 layers = MB->layers;
    for (u32 frame = 0;; frame++) {
        const u32 before = frame * layers;
        step(CORE_NCRISC, before + 1, STEP_WAIT_LAYER);
        wait_reached(&MB->go, before + 1);
        step(CORE_NCRISC, before + 1, STEP_TAPS);
        make_taps((const struct layer *)LAYER_TABLE, CORE_NCRISC, before + 1, half_of_byte);
        run_tail(t, frame, before + t->after_layer);
        step(CORE_NCRISC, before + layers, STEP_WAIT_TILES);
        wait_reached(&MB->done, before + layers);
        noc_increment(MB->root, &MB->frames, &MB->atomic_old[1]);
    }
}
