#include <math.h>

#include "features/features.h"
#include "features/rows.h"

/* Where a pixel, or a place between two, falls on the coarse map along one axis of `cells`. */
static float map_position(float pixel, uint32_t cells) {
    return (pixel - 3.5f) / (8.0f * (float)cells - 4.5f) * (float)(cells - 1);
}

void sp_sample_prefetch(const float *map, uint32_t columns, uint32_t rows, uint32_t x, uint32_t y) {
    const int cx = (int)floorf(map_position((float)x, columns)), cy = (int)floorf(map_position((float)y, rows));
    const size_t line = 64 / sizeof(float);
    for (int i = 0; i < 2; i++) {
        if (cx < 0 || cy + i < 0 || cy + i >= (int)rows || cx + 1 >= (int)columns)
            continue;
        /* two cells side by side are one piece of memory */
        const float *cells = map + ((size_t)(cy + i) * columns + (size_t)cx) * SP_DESCRIPTOR_DIM;
        for (size_t k = 0; k < 2 * SP_DESCRIPTOR_DIM; k += line)
            __builtin_prefetch(cells + k);
    }
}

void sp_sample_descriptor(const float *map, uint32_t columns, uint32_t rows, float x, float y, float *out) {
    static const float zero[SP_DESCRIPTOR_DIM];
    const float fx = map_position(x, columns), fy = map_position(y, rows);
    const float left = floorf(fx), top = floorf(fy);
    const float wx = fx - left, wy = fy - top;
    const int cx = (int)left, cy = (int)top;
    const float *corner[4];
    for (int i = 0; i < 4; i++) {
        int px = cx + (i & 1), py = cy + (i >> 1);
        bool inside = px >= 0 && py >= 0 && px < (int)columns && py < (int)rows;
        corner[i] = inside ? map + ((size_t)py * columns + (size_t)px) * SP_DESCRIPTOR_DIM : zero;
    }
    const float w[4] = {(1 - wx) * (1 - wy), wx * (1 - wy), (1 - wx) * wy, wx * wy};
    sp_row_kernels_best()->blend(corner, w, out);
}
