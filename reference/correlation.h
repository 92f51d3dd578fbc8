/* Pearson's correlation, by its definition. */
#ifndef SP_REFERENCE_CORRELATION_H
#define SP_REFERENCE_CORRELATION_H

#include <stddef.h>

/* Of n pairs, in double precision. Two equal constant rows correlate fully. */
double sp_reference_correlation(const float *a, const float *b, size_t n);

#endif
