/*
 * How far an engine's results are from the reference's: the measures of the published package.
 */
#ifndef SUPERPOINT_ACCURACY_H
#define SUPERPOINT_ACCURACY_H

#include "superpoint.h"

/* What an engine must reach to be called accurate: the published package's own figures. */
#define GATE_SCORE_PCC 0.9971
#define GATE_DESCRIPTOR_PCC 0.9991
#define GATE_F1 0.9880

enum {
    TOP_POINTS = 500,  /* strongest points that are compared */
    TOP_RADIUS = 4,    /* their suppression radius */
    TOP_TOLERANCE = 2, /* Chebyshev distance at which two points are the same */
};

typedef struct accuracy {
    double score_pcc, descriptor_pcc; /* Pearson correlation over the flattened maps */
    double recall, precision, f1;     /* of the TOP_POINTS strongest, many to one */
    double score_max_abs;             /* largest difference of two scores */
    double descriptor_max_abs;        /* of two descriptors' elements */
    double norm_deviation;            /* largest | length - 1 | of a descriptor */
    uint64_t nms_mismatches;          /* pixels where the engine's suppression is not that of its own scores */
} accuracy;

/* `maps` against `reference`, both of `frame`. */
sp_status accuracy_measure(const sp_maps *maps, const sp_maps *reference, const sp_frame *frame, accuracy *out,
                           sp_error *err);

/* Whether all three gates are reached. */
bool accuracy_passes(const accuracy *a);

/* The worse of two, figure by figure. */
void accuracy_worst(accuracy *worst, const accuracy *a);

#endif
