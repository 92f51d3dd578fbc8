/*
 * How far a mean can be trusted: a 95 % interval by bootstrap. Pairs of one picture resemble one another,
 * so whole pictures are drawn, with replacement. The same draws as train/metrics.py.
 */
#ifndef SUPERPOINT_EVAL_BOOTSTRAP_H
#define SUPERPOINT_EVAL_BOOTSTRAP_H

#include <stdbool.h>
#include <stddef.h>

enum { EVAL_BOOTSTRAP_ROUNDS = 2000, EVAL_BOOTSTRAP_SEED = 1 };

/*
 * The interval of the mean of values[n]; values[i] belongs to the picture named pictures[i]. Values that are
 * not finite do not count; when none does, the limits are NAN. False when out of memory.
 */
bool eval_bootstrap(const double *values, const char *const *pictures, size_t n, double *low, double *high);

#endif
