#include <math.h>

#include "features/features.h"

/*
 * The top of the parabola through log(before), log(at), log(after) at -1, 0, 1. A Gaussian's logarithm is a parabola:
 * of a peak of that shape this is the true place. With a = log(at / before) and b = log(at / after) it is
 * (a - b) / (2 (a + b)); the quotients keep the digits that differences of logarithms lose where scores are nearly
 * equal.
 */
static double offset(float before, float at, float after) {
    const double a = log((double)at / (double)before), b = log((double)at / (double)after), bend = a + b;
    if (!(bend > 0 && isfinite(bend)))
        return 0;
    return fmin(fmax((a - b) / (2 * bend), -0.5), 0.5);
}

void sp_refine_peak(const float *scores, uint32_t width, uint32_t height, uint32_t x, uint32_t y, double place[2]) {
    const float *at = scores + (size_t)y * width + x;
    place[0] = x;
    place[1] = y;
    if (x > 0 && x + 1 < width)
        place[0] += offset(at[-1], at[0], at[1]);
    if (y > 0 && y + 1 < height)
        place[1] += offset(*(at - width), at[0], at[width]);
}
