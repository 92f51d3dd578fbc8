/* Two pictures side by side with lines between the points that were matched. */
#ifndef SUPERPOINT_MATCH_DRAW_PAIR_H
#define SUPERPOINT_MATCH_DRAW_PAIR_H

#include "superpoint.h"

/* Points are in pixels of their picture, centres at integers. Writes a PNG. */
sp_status draw_pair(const sp_image images[2], const float *const points[2], const sp_matches *matches, const char *path,
                    sp_error *err);

#endif
