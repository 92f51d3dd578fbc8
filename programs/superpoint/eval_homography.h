/*
 * A homography from matches that may be wrong: MSAC over a fixed number of random samples, then
 * Gauss-Newton on the inliers. The same steps, in the same order and from the same random numbers,
 * as train/metrics.py.
 */
#ifndef SUPERPOINT_EVAL_HOMOGRAPHY_H
#define SUPERPOINT_EVAL_HOMOGRAPHY_H

#include "eval_metrics.h"

#define EVAL_RANSAC_THRESHOLD 3.0 /* px */
enum { EVAL_RANSAC_SAMPLES = 3000, EVAL_RANSAC_SEED = 1, EVAL_REFINE_ROUNDS = 10 };

/* SplitMix64: a small generator with a 64-bit state, the same in both languages. */
uint64_t eval_random(uint64_t *state);

/* From n matches a[i] -> b[i] in frames of `size`. False when fewer than four fit any homography. */
bool eval_estimate(const double (*a)[2], const double (*b)[2], size_t n, eval_size size, double h[9]);

/* Mean distance of the frame's corners under an estimate and the truth. */
double eval_corner_error(const double h[9], const double truth[9], eval_size size);

#endif
