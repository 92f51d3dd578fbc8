/* What the board's firmware says of itself and of its chip, in the memory of the ARC tile. */
#ifndef BH_TELEMETRY_H
#define BH_TELEMETRY_H

#include "transport.h"

/* Fills in the chip's tiles, DRAM banks and clock, and adds the firmware's version to `versions`. Needs t->read alone.
 */
sp_status sp_bh_read_telemetry(bh_transport *t, sp_error *err);

#endif
