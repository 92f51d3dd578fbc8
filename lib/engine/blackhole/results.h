/* A slot of results, as the tiles have written it, in the form of the engine's maps. */
#ifndef BH_RESULTS_H
#define BH_RESULTS_H

#include "plan.h"

/* `scores` is [height][width], `suppressed` the same or NULL, `descriptors` [height/8][width/8][256]. */
void sp_bh_expand_results(const bh_plan *plan, const unsigned char *slot, float *scores, float *suppressed,
                          float *descriptors);

#endif
