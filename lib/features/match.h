/*
 * Nearest neighbours among descriptors: the kernels behind sp_match.
 *
 * Similarity is the dot product. All products of a block of rows with a panel of columns are made in
 * registers, and each is used for both directions at once: the best and second best column of its
 * row, the best and second best row of its column. The products are never stored as a whole.
 */
#ifndef SP_FEATURES_MATCH_H
#define SP_FEATURES_MATCH_H

#include "base/cpu.h"
#include "superpoint.h"

/* The two largest similarities seen, and where the largest was; -1 when none was. */
typedef struct sp_nearest {
    float *best, *second;
    int32_t *index;
} sp_nearest;

/*
 * One set of kernels. `rows` descriptors of a are interleaved to a group [256][rows], `columns` of b
 * to a panel [256][columns]; what is missing at the end is zeros.
 */
typedef struct sp_match_kernel {
    sp_cpu_level level;
    uint32_t rows, columns;
    /* products[rows][columns] of one group and one panel. */
    void (*multiply)(const float *group, const float *panel, float *products);
    /*
     * Take `rows` x `columns` products in. `by_row` holds `columns` lanes for each row, `by_column`
     * one for each column; `row` and `column` are the numbers of the first ones.
     */
    void (*update)(const float *products, uint32_t rows, int32_t row, int32_t column, sp_nearest by_row,
                   sp_nearest by_column);
} sp_match_kernel;

/* The kernels of a level, or of the best level below it that has its own. */
const sp_match_kernel *sp_match_kernel_get(sp_cpu_level level);

extern const sp_match_kernel sp_match_kernel_c;
#if defined(__x86_64__)
extern const sp_match_kernel sp_match_kernel_avx2;
extern const sp_match_kernel sp_match_kernel_avx512;
#endif

/* Most rows and columns of any kernel. */
enum { SP_MATCH_MAX_ROWS = 16, SP_MATCH_MAX_COLUMNS = 64 };

#endif
