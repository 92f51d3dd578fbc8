#include "correlation.h"

#include <math.h>

/* Two passes, in double: the maps have 10^5 to 10^6 values. */
double sp_reference_correlation(const float *a, const float *b, size_t n) {
    double mean_a = 0, mean_b = 0, aa = 0, bb = 0, ab = 0;
    for (size_t i = 0; i < n; i++) {
        mean_a += a[i];
        mean_b += b[i];
    }
    mean_a /= (double)n;
    mean_b /= (double)n;
    for (size_t i = 0; i < n; i++) {
        const double x = a[i] - mean_a, y = b[i] - mean_b;
        aa += x * x;
        bb += y * y;
        ab += x * y;
    }
    if (aa == 0 || bb == 0)
        return aa == bb ? 1 : 0;
    return ab / sqrt(aa * bb);
}
