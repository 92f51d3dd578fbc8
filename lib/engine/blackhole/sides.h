/* The chip's two sides: Tensix tiles are in the columns up to 7 and from 10 on, so a multicast, which goes to a
 * rectangle of them, stays on one side. */
#ifndef BH_SIDES_H
#define BH_SIDES_H

#include "transport.h"

enum { BH_SIDES = 2 }; /* left and right */

/* The tiles of one side that take part: their bounding rectangle, if every place in it is a tile. */
typedef struct bh_side {
    uint32_t x0, y0, x1, y1, users;
    bool whole;      /* a multicast may go to the rectangle */
    uint32_t feeder; /* NOC_AT of the tile that multicasts weights, or NOC_NOWHERE */
} bh_side;

/* 0 or 1: which of the two a tile is on. */
uint32_t sp_bh_side_of(uint32_t at);

/* The rectangles of the chip's first `tiles` tiles, which take part, and a spare tile to feed each: on the same side if
 * there is one. */
void sp_bh_choose_sides(const bh_chip *chip, uint32_t tiles, bh_side side[BH_SIDES]);

/* The same bytes to all tiles that take part. */
sp_status sp_bh_broadcast(bh_transport *t, const bh_side side[BH_SIDES], uint32_t tiles, uint64_t address,
                          const void *from, size_t n, sp_error *err);

#endif
