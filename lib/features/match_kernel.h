/*
 * The kernels of one level. The file that includes this is compiled for that level and defines
 *   LANES   floats in a vector
 *   VECTORS vectors in a row of products
 *   ROWS    rows of products; ROWS x VECTORS accumulators, VECTORS loads and one broadcast have to fit
 *           into the registers
 *   LEVEL, KERNEL  the level and the name of its sp_match_kernel
 */
#include <math.h>

#include "features/match.h"

enum { COLUMNS = LANES * VECTORS };

_Static_assert(ROWS <= SP_MATCH_MAX_ROWS && LANES * VECTORS <= SP_MATCH_MAX_COLUMNS, "room for products");

typedef float vector __attribute__((vector_size(LANES * sizeof(float))));
/* The same in memory: of any alignment, and may alias floats. */
typedef float loose __attribute__((vector_size(LANES * sizeof(float)), aligned(4), may_alias));

static void multiply(const float *group, const float *panel, float *products) {
    vector sum[ROWS][VECTORS];
#pragma GCC unroll 16
    for (int r = 0; r < ROWS; r++)
#pragma GCC unroll 16
        for (int v = 0; v < VECTORS; v++)
            sum[r][v] = (vector){0};
    for (int k = 0; k < SP_DESCRIPTOR_DIM; k++) {
        vector b[VECTORS];
#pragma GCC unroll 16
        for (int v = 0; v < VECTORS; v++)
            b[v] = *(const loose *)(panel + k * COLUMNS + v * LANES);
#pragma GCC unroll 16
        for (int r = 0; r < ROWS; r++)
#pragma GCC unroll 16
            for (int v = 0; v < VECTORS; v++)
                sum[r][v] += group[k * ROWS + r] * b[v];
    }
#pragma GCC unroll 16
    for (int r = 0; r < ROWS; r++)
#pragma GCC unroll 16
        for (int v = 0; v < VECTORS; v++)
            *(loose *)(products + r * COLUMNS + v * LANES) = sum[r][v];
}

/* Written so that compilers turn each line into a comparison and a blend. A value that is not a
 * number is greater than nothing, and so is never chosen. */
static void take(const float *restrict values, int32_t step, int32_t number, float *restrict best,
                 float *restrict second, int32_t *restrict index) {
    for (int c = 0; c < COLUMNS; c++) {
        const float value = values[c], old = best[c];
        const float lesser = value > old ? old : value;
        second[c] = lesser > second[c] ? lesser : second[c];
        best[c] = value > old ? value : old;
        index[c] = value > old ? number + step * c : index[c];
    }
}

static void update(const float *products, uint32_t rows, int32_t row, int32_t column, sp_nearest by_row,
                   sp_nearest by_column) {
    for (uint32_t r = 0; r < rows; r++) {
        const float *values = products + r * COLUMNS;
        const size_t lane = (size_t)r * COLUMNS;
        take(values, 1, column, by_row.best + lane, by_row.second + lane, by_row.index + lane);
        take(values, 0, row + (int32_t)r, by_column.best, by_column.second, by_column.index);
    }
}

const sp_match_kernel KERNEL = {LEVEL, ROWS, COLUMNS, multiply, update};
