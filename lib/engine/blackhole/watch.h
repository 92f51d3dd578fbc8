/*
 * Waiting for the chip, with a watchdog: as long as some tile makes progress it may take its time; when none has for
 * the transport's hang_us, the tile that is furthest behind is named, with the core and the layer it stands in.
 */
#ifndef BH_WATCH_H
#define BH_WATCH_H

#include "transport.h"

typedef struct bh_watch {
    bh_transport *transport;
    const uint32_t *tile;
    uint32_t tiles;
    uint32_t layers; /* a frame */
} bh_watch;

/* Until finished(opaque) is true. SP_ERR_ENGINE_HUNG if nothing moves. */
sp_status sp_bh_watch(const bh_watch *watch, bool (*finished)(void *opaque), void *opaque, sp_error *err);

/* Until every tile has finished `number` layers since the start. */
sp_status sp_bh_watch_layers(const bh_watch *watch, uint32_t number, sp_error *err);

/* Until the first `cores` cores of a tile have reported the version they were compiled with, which must be
 * TILE_VERSION. */
sp_status sp_bh_wait_started(bh_transport *transport, uint32_t tile, uint32_t cores, sp_error *err);

#endif
