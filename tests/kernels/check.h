/* What the parts of check-kernels share. */
#ifndef SP_CHECK_H
#define SP_CHECK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cpu.h"
#include "superpoint.h"

typedef struct check {
    uint64_t seed; /* of the random inputs; printed, so that a failure can be replayed */
    bool bench;
    const char *only; /* run only tests whose name contains this; NULL: all */
    unsigned passed, failed;
} check;

/* Count one comparison and, when it failed, say so. */
void check_that(check *c, bool ok, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* xorshift64*: the next 32 random bits. */
uint32_t check_random(check *c);

double check_largest_difference(const float *a, const float *b, size_t n);

/* Whole engines, level by level, against the reference engine. */
void check_engines(check *c, const sp_model *model);

/* Each layer of each set of kernels, strip by strip. */
void check_layers(check *c, const sp_model *model);

/* The layers in int8, bit by bit. */
void check_int8(check *c, const sp_model *model);

/* The loops of the post-processing. */
void check_rows(check *c);

/* Each kernel's speed. */
void bench_kernels(check *c, const sp_model *model);

#endif
