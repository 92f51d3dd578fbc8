/* What the parts of `superpoint bench` share. */
#ifndef SUPERPOINT_BENCH_H
#define SUPERPOINT_BENCH_H

#include <jansson.h>
#include <stdbool.h>

#include "common/setup.h"
#include "superpoint.h"

enum { BENCH_MAX_ROUNDS = 1000 };

/* Times of one thing over the rounds. */
typedef struct bench_times {
    double ms[BENCH_MAX_ROUNDS];
    int count;
} bench_times;

void bench_record(bench_times *times, double ms);
double bench_least(const bench_times *times);
double bench_median(const bench_times *times);

typedef struct bench_options {
    sp_setup setup; /* engine, level, precision and threads restrict what is run; threads 0: one, and all */
    sp_params params;
    const char *image; /* NULL: the sample */
    bool json, quick, model;
    double seconds; /* for each group of things that are measured in turn */
} bench_options;

/* The dense forward pass of every engine, level, precision and thread count; a row each into `results`. */
sp_status bench_forward(const bench_options *o, const sp_model *model, const sp_frame *frame, json_t *results,
                        sp_error *err);

/* Decoding, resizing, post-processing and encoding. */
sp_status bench_stages(const bench_options *o, const sp_model *model, const void *bytes, size_t size, json_t *results,
                       sp_error *err);

/* A request to `superpoint serve`, started for it with its own defaults, from the first byte sent to the last received.
 */
sp_status bench_http(const bench_options *o, const void *bytes, size_t size, json_t *results, sp_error *err);

/* Predict a frame on the engine's device by counting, and print that. */
sp_status bench_model(const bench_options *o, sp_error *err);

#endif
