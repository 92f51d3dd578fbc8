/* Pictures with points on them. */
#ifndef SUPERPOINT_DRAW_H
#define SUPERPOINT_DRAW_H

#include "superpoint.h"

/*
 * Mark each point on an RGB picture by a ring: yellow for the strongest, over red to violet for the
 * weakest by rank. `points` are x, y in the picture's pixels, centres at integers; strongest first.
 * `radius` in pixels.
 */
void draw_points(sp_image *image, const float *points, size_t count, double radius);

/* Write an RGB picture as PNG; the file appears whole or not at all. */
sp_status draw_write_png(const sp_image *image, const char *path, sp_error *err);

#endif
