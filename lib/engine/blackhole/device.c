#include "device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/size.h"
#include "half.h"
#include "pack.h"
#include "results.h"
#include "sides.h"
#include "watch.h"

/* DRAM of each bank: pictures (of bank 0), then weights. The first MiB is left alone. */
#define DRAM_PICTURE 0x100000u
#define DRAM_WEIGHTS 0x2000000u

struct bh_device {
    bh_transport *transport;
    bh_firmware firmware;
    bh_config config;
    bh_plan plan;
    bh_side side[BH_SIDES];
    struct {
        uint32_t at, address, bytes; /* bytes a group */
    } weights[SP_LAYERS];
    double logit_scale;     /* power of two that the logits are stored with */
    uint8_t *picture;       /* one slot, with its frame of zeros */
    unsigned char *results; /* shared: the finished line, then two slots */
    size_t results_bytes;
    struct remote results_remote;
    bool running;                          /* the cores run the plan */
    bool hung;                             /* the watchdog has said so */
    uint32_t uploaded, frames, layers_run; /* pictures, frames and layers since the cores were started */
};

#define FINISHED_BYTES 64u

static uint32_t tile_at(const bh_device *d, uint32_t k) {
    return d->transport->chip.tile[k];
}

/* ------------------------------------------------------------------ weights -------------------- */

static sp_status upload_weights(bh_device *d, const bh_weights *weights, sp_error *err) {
    uint32_t next[BH_BANKS];
    for (uint32_t b = 0; b < BH_BANKS; b++)
        next[b] = DRAM_WEIGHTS;
    d->logit_scale = weights->scales.out[SP_DETECTOR_B];
    sp_status status = SP_OK;
    for (uint32_t i = 0; i < SP_LAYERS && status == SP_OK; i++) {
        const size_t bytes = sp_bh_packed_bytes(&sp_network[i]);
        const uint32_t bank = i % BH_BANKS; /* consecutive layers in different banks */
        d->weights[i].at = d->transport->chip.bank[bank];
        d->weights[i].address = next[bank];
        d->weights[i].bytes = sp_bh_layer_blocks(&sp_network[i]) * WEIGHT_BLOCK_BYTES;
        status = d->transport->write(d->transport, d->weights[i].at, next[bank], weights->layer[i], bytes, err);
        next[bank] += (uint32_t)bytes;
    }
    return status;
}

/* ------------------------------------------------------------------ tiles ---------------------- */

/* The same bytes to all tiles that take part. */
static sp_status broadcast(bh_device *d, uint64_t address, const void *from, size_t n, sp_error *err) {
    return sp_bh_broadcast(d->transport, d->side, d->plan.tiles, address, from, n, err);
}

static sp_status write_word(bh_device *d, uint32_t at, uint64_t address, uint32_t value, sp_error *err) {
    return d->transport->write(d->transport, at, address, &value, sizeof value, err);
}

static struct remote offset_remote(const struct remote *base, size_t offset, uint32_t slot_bytes) {
    const uint64_t address = ((uint64_t)base->high << 32 | base->low) + offset;
    return (struct remote){base->at, (uint32_t)address, (uint32_t)(address >> 32), slot_bytes};
}

static struct mailbox tile_mailbox(const bh_device *d, uint32_t k) {
    const bh_plan *plan = &d->plan;
    const bh_block block = sp_bh_plan_block(plan, k);
    const uint32_t x = block.x * SP_CELL, y = block.y * SP_CELL;
    struct mailbox m = {.layers = BH_LAYERS,
                        .flags = d->config.suppress ? MAILBOX_SUPPRESS : 0,
                        .root = tile_at(d, 0),
                        .tiles = plan->tiles,
                        .feeder = d->side[sp_bh_side_of(tile_at(d, k))].feeder,
                        .picture_offset = x % NOC_ALIGN_DRAM,
                        .picture_pitch = plan->picture_pitch};
    /* Row 0 and byte 0 of the stored picture are the zeros around it, so the halo pixel of (x, y) is at (x, y). */
    m.picture = (struct remote){.at = d->transport->chip.bank[0],
                                .low = DRAM_PICTURE + y * plan->picture_pitch + (x - x % NOC_ALIGN_DRAM),
                                .slot_bytes = plan->picture_slot_bytes};
    const uint32_t slot = (uint32_t)plan->slot_bytes;
    m.descriptors = offset_remote(&d->results_remote, FINISHED_BYTES + sp_bh_plan_descriptors_at(plan, k), slot);
    m.finished = d->results_remote;
    for (uint32_t n = 0; n < NEIGHBOURS; n++) {
        const int32_t other = sp_bh_plan_neighbour(plan, k, n);
        m.neighbour[n] = other < 0 ? NOC_NOWHERE : tile_at(d, (uint32_t)other);
    }
    return m;
}

static struct tail tile_tail(const bh_device *d, uint32_t k) {
    const bh_plan *plan = &d->plan;
    const bh_block block = sp_bh_plan_block(plan, k);
    const uint32_t slot = (uint32_t)plan->slot_bytes;
    const size_t first = ((size_t)block.y * SP_CELL * plan->width + block.x * SP_CELL) * sizeof(float);
    struct tail t = sp_bh_plan_tail(plan, k, d->logit_scale);
    t.scores_out = offset_remote(&d->results_remote, FINISHED_BYTES + plan->scores_offset + first, slot);
    t.kept_out = offset_remote(&d->results_remote, FINISHED_BYTES + plan->kept_offset + plan->kept_stride * k, slot);
    return t;
}

static void layer_table(const bh_device *d, uint32_t k, struct layer table[BH_LAYERS]) {
    for (uint32_t i = 0; i < BH_LAYERS; i++) {
        table[i] = sp_bh_plan_layer(&d->plan, k, i);
        if (i < SP_LAYERS) {
            table[i].weights_at = d->weights[i].at;
            table[i].weights = d->weights[i].address;
            table[i].weights_bytes = d->weights[i].bytes;
        }
    }
}

/* ------------------------------------------------------------------ loading -------------------- */

static sp_status hold_all(bh_device *d, sp_error *err) {
    sp_status status = SP_OK;
    for (size_t k = 0; k < d->transport->chip.tiles && status == SP_OK; k++)
        status = d->transport->hold(d->transport, d->transport->chip.tile[k], err);
    d->running = false;
    return status;
}

static sp_status load_programs(bh_device *d, sp_error *err) {
    sp_status status = SP_OK;
    for (uint32_t c = 0; c < CORES && status == SP_OK; c++)
        status = broadcast(d, d->firmware.core[c].place, d->firmware.core[c].image, d->firmware.core[c].bytes, err);
    for (uint32_t t = 0; t < 3 && status == SP_OK; t++)
        status = broadcast(d, TRISC_START_PC(t), &(uint32_t){PROGRAM_TRISC(t)}, 4, err);
    if (status == SP_OK)
        status = broadcast(d, TRISC_START_PC_ENABLE, &(uint32_t){7}, 4, err);
    if (status == SP_OK)
        status = broadcast(d, NCRISC_START_PC, &(uint32_t){PROGRAM_NCRISC}, 4, err);
    if (status == SP_OK)
        status = broadcast(d, NCRISC_START_PC_ENABLE, &(uint32_t){1}, 4, err);
    return status;
}

/* SrcB of the bias: channels 0 and 1 are 1.0. */
static sp_status load_ones(bh_device *d, sp_error *err) {
    uint16_t ones[ONES_PIXELS * PLANE_CHANNELS] = {0};
    for (uint32_t i = 0; i < ONES_PIXELS; i++)
        ones[i * PLANE_CHANNELS] = ones[i * PLANE_CHANNELS + 1] = HALF_ONE;
    sp_status status = broadcast(d, d->plan.buffer_a, ones, sizeof ones, err);
    return status == SP_OK ? broadcast(d, d->plan.buffer_b, ones, sizeof ones, err) : status;
}

static sp_status load_tile(bh_device *d, uint32_t k, sp_error *err) {
    bh_transport *t = d->transport;
    struct layer table[BH_LAYERS];
    layer_table(d, k, table);
    const struct mailbox mailbox = tile_mailbox(d, k);
    const struct tail tail = tile_tail(d, k);
    sp_status status = t->write(t, tile_at(d, k), MAILBOX, &mailbox, sizeof mailbox, err);
    if (status == SP_OK)
        status = t->write(t, tile_at(d, k), LAYER_TABLE, table, sizeof table, err);
    return status == SP_OK ? t->write(t, tile_at(d, k), TAIL, &tail, sizeof tail, err) : status;
}

static sp_status load_feeder(bh_device *d, const bh_side *s, sp_error *err) {
    bh_transport *t = d->transport;
    struct layer table[BH_LAYERS];
    layer_table(d, 0, table);
    const uint32_t x = NOC_X(s->feeder), y = NOC_Y(s->feeder);
    const bool inside = x >= s->x0 && x <= s->x1 && y >= s->y0 && y <= s->y1; /* a sender is not a receiver */
    const struct mailbox mailbox = {.layers = BH_LAYERS,
                                    .feeder = NOC_NOWHERE,
                                    .rectangle = NOC_RECT(s->x0, s->y0, s->x1, s->y1),
                                    .rectangle_tiles = (s->x1 - s->x0 + 1) * (s->y1 - s->y0 + 1) - inside,
                                    .users = s->users};
    sp_status status = t->write(t, s->feeder, MAILBOX, &mailbox, sizeof mailbox, err);
    if (status == SP_OK)
        status =
            t->write(t, s->feeder, d->firmware.feeder.place, d->firmware.feeder.image, d->firmware.feeder.bytes, err);
    if (status == SP_OK)
        status = t->write(t, s->feeder, LAYER_TABLE, table, sizeof table, err);
    return status;
}

/* [load-verified] The last word of every program, read back from every tile: the loads have arrived before a core is
 * released, whatever way they took, and a tile that a multicast missed is found. */
static sp_status verify_load(bh_device *d, uint32_t at, const bh_program *program, sp_error *err) {
    uint32_t there = 0, wanted;
    const size_t last = (program->bytes - sizeof wanted) & ~(sizeof wanted - 1);
    memcpy(&wanted, program->image + last, sizeof wanted);
    sp_status status = d->transport->read(d->transport, at, program->place + last, &there, sizeof there, err);
    if (status == SP_OK && there != wanted)
        status = sp_fail(err, SP_ERR_ENGINE, "blackhole: tile (%u, %u): the program of %s did not arrive", NOC_X(at),
                         NOC_Y(at), program->name);
    return status;
}

/* Start all cores, and make sure that each is there and was compiled for this host. */
static sp_status release(bh_device *d, sp_error *err) {
    sp_status status = SP_OK;
    for (uint32_t k = 0; k < d->plan.tiles; k++)
        for (uint32_t c = 0; c < CORES && status == SP_OK; c++)
            status = verify_load(d, tile_at(d, k), &d->firmware.core[c], err);
    for (uint32_t k = 0; k < d->plan.tiles && status == SP_OK; k++)
        status = write_word(d, tile_at(d, k), SOFT_RESET, 0, err);
    for (uint32_t k = 0; k < d->plan.tiles && status == SP_OK; k++)
        status = sp_bh_wait_started(d->transport, tile_at(d, k), CORES, err);
    for (uint32_t i = 0; i < BH_SIDES && status == SP_OK; i++) {
        if (d->side[i].feeder == NOC_NOWHERE || !d->side[i].users)
            continue;
        status = verify_load(d, d->side[i].feeder, &d->firmware.feeder, err);
        if (status == SP_OK)
            status = write_word(d, d->side[i].feeder, SOFT_RESET, RESET_CORES & ~RESET_BRISC, err);
        if (status == SP_OK)
            status = sp_bh_wait_started(d->transport, d->side[i].feeder, 1, err);
    }
    return status;
}

static sp_status load(bh_device *d, sp_error *err) {
    sp_bh_choose_sides(&d->transport->chip, d->plan.tiles, d->side);
    sp_status status = load_programs(d, err);
    if (status == SP_OK)
        status = load_ones(d, err);
    for (uint32_t k = 0; k < d->plan.tiles && status == SP_OK; k++)
        status = load_tile(d, k, err);
    for (uint32_t i = 0; i < BH_SIDES && status == SP_OK; i++)
        if (d->side[i].feeder != NOC_NOWHERE && d->side[i].users)
            status = load_feeder(d, &d->side[i], err);
    return status == SP_OK ? release(d, err) : status;
}

/* The results' room grows with the frame; whatever ran has been held before it moves. */
static sp_status make_room(bh_device *d, sp_error *err) {
    const size_t bytes = FINISHED_BYTES + 2 * d->plan.slot_bytes;
    sp_status status = hold_all(d, err);
    if (status == SP_OK && bytes > d->results_bytes) {
        d->transport->unshare(d->transport, d->results);
        d->results = NULL;
        d->results_bytes = 0;
        status = d->transport->share(d->transport, bytes, (void **)&d->results, &d->results_remote, err);
    }
    if (status != SP_OK)
        return status;
    d->results_bytes = bytes > d->results_bytes ? bytes : d->results_bytes;
    if ((uint64_t)DRAM_PICTURE + 2ull * d->plan.picture_slot_bytes > DRAM_WEIGHTS)
        return sp_fail(err, SP_ERR_LIMIT, "blackhole: a frame of %ux%u is too large for the picture area in DRAM",
                       d->plan.width, d->plan.height);
    free(d->picture);
    d->picture = calloc(1, d->plan.picture_slot_bytes);
    return d->picture ? SP_OK : sp_fail_memory(err, "picture", d->plan.picture_slot_bytes);
}

sp_status sp_bh_device_prepare(bh_device *d, uint32_t width, uint32_t height, sp_error *err) {
    if (d->running && d->plan.width == width && d->plan.height == height)
        return SP_OK;
    d->running = false;
    const bh_chip *chip = &d->transport->chip;
    /* Leave two tiles to feed the others, if there are enough. */
    const uint32_t tiles = (uint32_t)chip->tiles - (chip->tiles > 2 * BH_SIDES ? BH_SIDES : 0);
    if (d->config.grid_rows && d->config.grid_rows * d->config.grid_cols > chip->tiles)
        return sp_fail(err, SP_ERR_ARGUMENT, "blackhole: a grid of %ux%u tiles was asked for; the chip has %zu",
                       d->config.grid_rows, d->config.grid_cols, chip->tiles);
    sp_status status = sp_bh_plan_make(width, height, d->config.grid_rows ? (uint32_t)chip->tiles : tiles,
                                       d->config.grid_rows, d->config.grid_cols, d->config.phases, &d->plan, err);
    if (status == SP_OK)
        status = make_room(d, err);
    if (status == SP_OK) {
        memset(d->results, 0, FINISHED_BYTES);
        status = load(d, err);
    }
    d->running = status == SP_OK;
    d->hung = false;
    d->uploaded = d->frames = d->layers_run = 0;
    return status;
}

/* ------------------------------------------------------------------ running -------------------- */

sp_status sp_bh_device_upload(bh_device *d, const uint8_t *pixels, size_t stride, sp_error *err) {
    const bh_plan *plan = &d->plan;
    for (uint32_t y = 0; y < plan->height; y++)
        memcpy(d->picture + (size_t)(y + 1) * plan->picture_pitch + 1, pixels + y * stride, plan->width);
    const uint32_t slot = d->uploaded & 1 ? plan->picture_slot_bytes : 0;
    d->uploaded++;
    return d->transport->write(d->transport, d->transport->chip.bank[0], DRAM_PICTURE + slot, d->picture,
                               plan->picture_slot_bytes, err);
}

static sp_status start_layers(bh_device *d, uint32_t layers, sp_error *err) {
    d->layers_run += layers;
    return broadcast(d, MAILBOX + offsetof(struct mailbox, run), &d->layers_run, sizeof d->layers_run, err);
}

/* Frames that the root says are finished. */
static bool frame_finished(void *opaque) {
    const bh_device *d = opaque;
    const uint32_t finished = *(const volatile uint32_t *)d->results;
    __atomic_thread_fence(__ATOMIC_ACQUIRE); /* what follows reads what the chip wrote before this line */
    return (int32_t)(finished - (d->frames + 1)) >= 0;
}

sp_status sp_bh_device_start(bh_device *d, sp_error *err) {
    return start_layers(d, d->config.layer_by_layer ? 1 : BH_LAYERS, err);
}

sp_status sp_bh_device_advance(bh_device *d, sp_error *err) {
    const bh_watch watch = {d->transport, d->transport->chip.tile, d->plan.tiles, BH_LAYERS};
    sp_status status = start_layers(d, 1, err);
    return status == SP_OK ? sp_bh_watch_layers(&watch, d->layers_run, err) : status;
}

sp_status sp_bh_device_finish(bh_device *d, sp_error *err) {
    const bh_watch watch = {d->transport, d->transport->chip.tile, d->plan.tiles, BH_LAYERS};
    sp_status status = SP_OK;
    if (d->config.layer_by_layer)
        status = sp_bh_watch_layers(&watch, d->layers_run, err);
    while (status == SP_OK && d->layers_run < (d->frames + 1) * BH_LAYERS)
        status = sp_bh_device_advance(d, err);
    if (status == SP_OK)
        status = sp_bh_watch(&watch, frame_finished, d, err);
    d->hung = status == SP_ERR_ENGINE_HUNG;
    return status;
}

void sp_bh_device_collect(bh_device *d, float *scores, float *suppressed, float *descriptors) {
    const unsigned char *slot = d->results + FINISHED_BYTES + (d->frames & 1 ? d->plan.slot_bytes : 0);
    sp_bh_expand_results(&d->plan, slot, scores, suppressed, descriptors);
    d->frames++;
}

/* [at-rest] A tile is not reset in the middle of its work, if it still gets on: NoC transfers would be cut off, and the
 * Tensix units left with half an operation. Waits no longer than the watchdog does. */
static void settle(bh_device *d) {
    const bh_watch watch = {d->transport, d->transport->chip.tile, d->plan.tiles, BH_LAYERS};
    sp_error ignored;
    if (!d->running || d->hung || d->layers_run == d->frames * BH_LAYERS)
        return;
    if (sp_bh_watch_layers(&watch, d->layers_run, &ignored) == SP_OK && d->layers_run % BH_LAYERS == 0)
        sp_bh_watch(&watch, frame_finished, d, &ignored);
}

void sp_bh_device_stop(bh_device *d) {
    sp_error ignored; /* as far as it goes: it is the first error that is told */
    settle(d);
    hold_all(d, &ignored);
}

/* ------------------------------------------------------------------ life ----------------------- */

const bh_plan *sp_bh_device_plan(const bh_device *d) {
    return &d->plan;
}

sp_status sp_bh_device_make(bh_transport *transport, const bh_firmware *firmware, const bh_weights *weights,
                            const bh_config *config, bh_device **out, sp_error *err) {
    *out = NULL;
    bh_device *d = calloc(1, sizeof *d);
    if (!d)
        return sp_fail_memory(err, "blackhole device", sizeof *d);
    d->transport = transport;
    d->firmware = *firmware;
    d->config = *config;
    sp_status status = upload_weights(d, weights, err);
    if (status != SP_OK) {
        free(d);
        return status;
    }
    *out = d;
    return SP_OK;
}

void sp_bh_device_free(bh_device *d) {
    if (!d)
        return;
    sp_bh_device_stop(d);
    d->transport->unshare(d->transport, d->results);
    free(d->picture);
    free(d);
}
