/* What a frame should cost, by counting. */
#ifndef BH_ESTIMATE_H
#define BH_ESTIMATE_H

#include "plan.h"

/* Instructions of the scalar cores, counted by running the real firmware in the simulator, which retires one a clock:
 * the test blackhole.estimate counts them again and fails when one is off by more than a tenth, or the
 * suppression's, which depends on the scores, by more than a half. */
#define COUNT_TAPS_PIXEL 46.9     /* make_taps: the nine taps of a pixel */
#define COUNT_RING_ROW 60.0       /* zero_ring: both ends of one row of one plane */
#define COUNT_FACTOR_CELL 222.4   /* make_factors: one cell */
#define COUNT_SOFTMAX_CELL 2420.0 /* softmax: one cell */
#define COUNT_SUPPRESS_PIXEL 15.6 /* suppress, with its halo; it looks further where scores are alike */

/* The plan's busiest tile; `feeders`: weights are multicast, not fetched by every tile. */
void sp_bh_estimate(const bh_plan *plan, double clock_mhz, bool feeders, sp_frame_estimate *estimate);

#endif
