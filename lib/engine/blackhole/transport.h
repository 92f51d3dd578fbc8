/*
 * How the host reaches one chip: a dozen calls, by the kernel driver or by the simulator's library.
 *
 * Places on the chip are NOC_AT(x, y) of its NoC 0, in the translated coordinates that the chip's own firmware gives
 * (disabled columns are gone from them). The list of tiles is data: no tile is assumed to exist.
 */
#ifndef BH_TRANSPORT_H
#define BH_TRANSPORT_H

#include "firmware/tile.h"
#include "superpoint.h"

enum { BH_MAX_TILES = 140, BH_BANKS = 8 };

/* Translated coordinates of what does not depend on the board: the first of the three ports of DRAM bank b, the PCIe
 * tile, and the ARC tile, which is not translated. Source: tt-isa-documentation, BlackholeA0/NoC/Coordinates. */
#define BH_DRAM_PORT(b) NOC_AT((b) < 4 ? 17 : 18, 12 + 3 * ((b) % 4))
#define BH_PCIE_PORT NOC_AT(19, 24)
#define BH_ARC NOC_AT(8, 0)

typedef struct bh_chip {
    char name[96];      /* "Tenstorrent Blackhole p150a, /dev/tenstorrent/0" */
    char versions[96];  /* of driver and board firmware */
    uint32_t clock_mhz; /* of the Tensix tiles, now; 0: not known */
    size_t tiles;       /* Tensix tiles, by columns */
    uint32_t tile[BH_MAX_TILES];
    uint32_t bank[BH_BANKS]; /* one port of each DRAM bank, 4 GiB each */
    bool simulated;
} bh_chip;

typedef struct bh_transport bh_transport;
struct bh_transport {
    bh_chip chip;
    uint64_t hang_us; /* device time without progress after which the chip is said to hang */

    /* n bytes at `address` of tile or port `at`. Registers are read and written 4 bytes at a time. A write is in
     * order with every earlier one to the same place. */
    sp_status (*read)(bh_transport *t, uint32_t at, uint64_t address, void *to, size_t n, sp_error *err);
    sp_status (*write)(bh_transport *t, uint32_t at, uint64_t address, const void *from, size_t n, sp_error *err);

    /* The same write to all Tensix tiles of a rectangle, corners included. */
    sp_status (*multicast)(bh_transport *t, uint32_t first, uint32_t last, uint64_t address, const void *from, size_t n,
                           sp_error *err);

    /* Stop whatever runs in a tile: all cores held in reset, the Tensix units reset. */
    sp_status (*hold)(bh_transport *t, uint32_t at, sp_error *err);

    /* Let the device work a little; its time since opening in microseconds. */
    sp_status (*tick)(bh_transport *t, uint64_t *now_us, sp_error *err);

    /* Memory of this process that the chip can write, zeroed, and where the chip sees it. Lives until unshare or close;
     * no core may run that knows it by then. */
    sp_status (*share)(bh_transport *t, size_t bytes, void **memory, struct remote *remote, sp_error *err);
    void (*unshare)(bh_transport *t, void *memory);

    /* Give everything back; frees t. */
    void (*close)(bh_transport *t);
};

/* The simulator's library, built for Blackhole. One user per process at a time; the chip keeps its state from one to
 * the next. */
sp_status sp_bh_open_simulator(const char *library, bh_transport **transport, sp_error *err);

#endif
