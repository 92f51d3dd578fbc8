/*
 * Which chip, from the environment.
 *
 * TTSIM names the simulator's library, which takes the place of a card when "blackhole" is asked for by name (never for
 * "auto"); SUPERPOINT_BLACKHOLE_DEVICE names the card's device file; SUPERPOINT_BLACKHOLE_GRID forces a grid of
 * tiles, ROWSxCOLUMNS.
 */
#ifndef BH_ENVIRONMENT_H
#define BH_ENVIRONMENT_H

#include "device.h"

/* Whether there is a chip to open. */
sp_status sp_bh_find_chip(const sp_engine_options *options, sp_error *err);
sp_status sp_bh_open_chip(const sp_engine_options *options, bh_transport **transport, sp_error *err);

/* Reset the card; SP_ERR_UNAVAILABLE for a simulated one. */
sp_status sp_bh_reset_chip(const sp_engine_options *options, sp_error *err);

/* grid_rows and grid_cols of the config; 0 when nothing is forced. */
sp_status sp_bh_read_grid(bh_config *config, sp_error *err);

#endif
