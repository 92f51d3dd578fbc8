#include "standin.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "common.h"

static uint32_t tile_number(const standin *chip, uint32_t at) {
    uint32_t k = 0;
    while (k < STANDIN_TILES && chip->base.chip.tile[k] != at)
        k++;
    return k;
}

static struct mailbox *mailbox_of(standin *chip, uint32_t k) {
    return (struct mailbox *)(chip->l1[k] + MAILBOX);
}

/* What each core reports first: the version that stands in its program. */
static void release_tile(standin *chip, uint32_t k, bool all) {
    static const uint32_t place[CORES] = {PROGRAM_BRISC, PROGRAM_TRISC(0), PROGRAM_TRISC(1), PROGRAM_TRISC(2),
                                          PROGRAM_NCRISC};
    struct mailbox *m = mailbox_of(chip, k);
    for (uint32_t c = 0; c < (all ? CORES : 1); c++)
        memcpy(&m->version[c], chip->l1[k] + place[c] + PROGRAM_VERSION_OFFSET, sizeof m->version[c]);
    chip->running[k] = all; /* a feeder's layers are nobody's */
}

static sp_status standin_read(bh_transport *t, uint32_t at, uint64_t address, void *to, size_t n, sp_error *err) {
    standin *chip = (standin *)t;
    (void)err;
    const uint32_t k = tile_number(chip, at);
    memset(to, 0, n);
    if (k < STANDIN_TILES && address + n <= L1_BYTES)
        memcpy(to, chip->l1[k] + address, n);
    return SP_OK;
}

static sp_status standin_write(bh_transport *t, uint32_t at, uint64_t address, const void *from, size_t n,
                               sp_error *err) {
    standin *chip = (standin *)t;
    (void)err;
    const uint32_t k = tile_number(chip, at);
    if (k == STANDIN_TILES) /* DRAM */
        return SP_OK;
    if (address + n <= L1_BYTES) {
        memcpy(chip->l1[k] + address, from, n);
    } else if (address == SOFT_RESET) {
        uint32_t reset;
        memcpy(&reset, from, sizeof reset);
        if (reset & RESET_BRISC)
            chip->running[k] = false;
        else
            release_tile(chip, k, reset == 0);
    }
    return SP_OK;
}

static sp_status standin_multicast(bh_transport *t, uint32_t first, uint32_t last, uint64_t address, const void *from,
                                   size_t n, sp_error *err) {
    sp_status status = SP_OK;
    for (uint32_t x = NOC_X(first); x <= NOC_X(last); x++)
        for (uint32_t y = NOC_Y(first); y <= NOC_Y(last) && status == SP_OK; y++)
            status = standin_write(t, NOC_AT(x, y), address, from, n, err);
    return status;
}

static sp_status standin_hold(bh_transport *t, uint32_t at, sp_error *err) {
    return standin_write(t, at, SOFT_RESET, &(uint32_t){RESET_CORES}, sizeof(uint32_t), err);
}

/* A layer may begin when every neighbour has finished the one before. */
static bool may_work(standin *chip, uint32_t k) {
    const struct mailbox *m = mailbox_of(chip, k);
    if (!chip->running[k] || m->done >= m->run || (k == chip->stuck && m->done >= chip->stuck_after))
        return false;
    for (uint32_t n = 0; n < NEIGHBOURS; n++)
        if (m->neighbour[n] != NOC_NOWHERE && mailbox_of(chip, tile_number(chip, m->neighbour[n]))->done < m->done)
            return false;
    return true;
}

static sp_status standin_tick(bh_transport *t, uint64_t *now_us, sp_error *err) {
    standin *chip = (standin *)t;
    (void)err;
    bool works[STANDIN_TILES];
    uint32_t least = UINT32_MAX, layers = 1;
    for (uint32_t k = 0; k < STANDIN_TILES; k++)
        works[k] = may_work(chip, k);
    for (uint32_t k = 0; k < STANDIN_TILES; k++) {
        struct mailbox *m = mailbox_of(chip, k);
        m->done += works[k];
        for (uint32_t c = 0; c < CORES && chip->running[k]; c++)
            m->step[c] = STEP(m->done + 1, m->done < m->run ? STEP_WORK : STEP_WAIT_RUN);
        if (chip->running[k] && m->done < least)
            least = m->done, layers = m->layers;
    }
    if (chip->shared && least != UINT32_MAX)
        *(volatile uint32_t *)chip->shared = least / layers;
    chip->now_us += STANDIN_TICK_US;
    *now_us = chip->now_us;
    return SP_OK;
}

static sp_status standin_share(bh_transport *t, size_t bytes, void **memory, struct remote *remote, sp_error *err) {
    standin *chip = (standin *)t;
    assert_null(chip->shared); /* what was shared has been given back */
    chip->shared = calloc(1, bytes);
    if (!chip->shared)
        return sp_fail_memory(err, "shared memory", bytes);
    *memory = chip->shared;
    *remote = (struct remote){.at = BH_PCIE_PORT};
    return SP_OK;
}

static void standin_unshare(bh_transport *t, void *memory) {
    standin *chip = (standin *)t;
    if (!memory)
        return;
    assert_ptr_equal(memory, chip->shared);
    free(memory);
    chip->shared = NULL;
}

void standin_init(standin *chip) {
    *chip = (standin){.stuck = STANDIN_TILES};
    chip->base = (bh_transport){.chip = {.name = "stand-in", .clock_mhz = 1350, .tiles = STANDIN_TILES},
                                .hang_us = 1000000, /* the driver's */
                                .read = standin_read,
                                .write = standin_write,
                                .multicast = standin_multicast,
                                .hold = standin_hold,
                                .tick = standin_tick,
                                .share = standin_share,
                                .unshare = standin_unshare};
    for (uint32_t k = 0; k < STANDIN_TILES; k++) {
        chip->base.chip.tile[k] = NOC_AT(1 + k % 2, 2 + k / 2);
        chip->l1[k] = malloc(L1_BYTES);
        assert_non_null(chip->l1[k]);
        memset(chip->l1[k], 0xA5, L1_BYTES); /* what a previous user left */
    }
    for (uint32_t b = 0; b < BH_BANKS; b++)
        chip->base.chip.bank[b] = BH_DRAM_PORT(b);
}

void standin_free(standin *chip) {
    assert_null(chip->shared);
    for (uint32_t k = 0; k < STANDIN_TILES; k++)
        free(chip->l1[k]);
}
