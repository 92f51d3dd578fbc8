/*
 * What points and descriptors are worth on two pictures with a known homography.
 *
 * The definitions are those of train/metrics.py, number for number, so that the shipped engines and
 * the training tools can be compared. Points are x, y in pixels of their frame; a homography is nine
 * numbers, row by row, and maps picture a to picture b; both frames have the same size.
 */
#ifndef SUPERPOINT_EVAL_METRICS_H
#define SUPERPOINT_EVAL_METRICS_H

#include <stddef.h>

#include "superpoint.h"

#define EVAL_EPSILON 3.0 /* px: two points within it are the same point */

typedef struct eval_points {
    size_t count;
    double *xy;               /* [count][2] */
    const float *descriptors; /* [count][256], each of length 1; NULL when there are none */
} eval_points;

typedef struct eval_size {
    double width, height;
} eval_size;

/* p through h. */
void eval_warp(const double h[9], const double p[2], double q[2]);

/* Inverse of a 3x3 matrix; false when it has none. */
bool eval_invert(const double h[9], double out[9]);

/*
 * Share of the points in the shared view that the other picture repeats within EVAL_EPSILON, and the
 * mean distance of those, NAN when none is. False when out of memory.
 */
bool eval_repeatability(const eval_points *a, const eval_points *b, const double h[9], eval_size size,
                        double *repeatability, double *error);

/*
 * Nearest neighbours by descriptor, both directions averaged: the share of points in the shared view
 * whose nearest neighbour is right, and the area under the precision-recall curve. `mutual` receives
 * index pairs that are each other's nearest (room for min(a, b) pairs), *pairs their number.
 */
bool eval_matching(const eval_points *a, const eval_points *b, const double h[9], eval_size size, double *score,
                   double *average_precision, size_t (*mutual)[2], size_t *pairs);

#endif
