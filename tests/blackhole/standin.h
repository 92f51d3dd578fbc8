/*
 * A chip for tests of the host's side that need no simulator: a transport with real memory in every tile, whose tiles
 * do at once what the host waits for. Released from reset, a tile reports the versions that its programs carry; with
 * every tick it finishes one more of the layers that it may run, when its neighbours are as far; the root tile counts
 * frames in the memory shared with the host. No network is computed: results stay zero.
 */
#ifndef TEST_BLACKHOLE_STANDIN_H
#define TEST_BLACKHOLE_STANDIN_H

#include "transport.h"

enum { STANDIN_TILES = 8 };
#define STANDIN_TICK_US 50u

typedef struct standin {
    bh_transport base;
    unsigned char *l1[STANDIN_TILES];
    bool running[STANDIN_TILES]; /* BRISC is out of reset */
    unsigned char *shared;       /* NULL: none */
    uint64_t now_us;
    uint32_t stuck;       /* number of a tile that finishes no more layers than the next; STANDIN_TILES: none */
    uint32_t stuck_after; /* layers */
} standin;

void standin_init(standin *chip);
void standin_free(standin *chip);

#endif
