/* Numbers that users write, checked against what they may be. */
#ifndef SP_COMMON_NUMBER_H
#define SP_COMMON_NUMBER_H

#include <stdint.h>

#include "superpoint.h"

/* A decimal number and nothing else: no hexadecimal, no "inf", no white space. False for anything else, and beyond the
 * range of a double. */
bool number_parse(const char *text, double *value);

/* SP_ERR_ARGUMENT and `NAME: "x" is not a number` or `NAME: x is not within MINIMUM...MAXIMUM`; the value stays then.
 */
sp_status number_real(const char *name, const char *text, double minimum, double maximum, double *value, sp_error *err);

/* The same for whole numbers, which may be written 5, 5.0 or 5e2; the bounds are below 2^53. */
sp_status number_whole(const char *name, const char *text, int64_t minimum, int64_t maximum, int64_t *value,
                       sp_error *err);

#endif
