/*
 * Pictures through the engine: several threads read and decode, one runs the engine, one selects and
 * samples. A fixed number of pictures is under way, so memory is bounded.
 */
#ifndef SUPERPOINT_EXTRACT_PIPELINE_H
#define SUPERPOINT_EXTRACT_PIPELINE_H

#include "extract/inputs.h"
#include "output/record.h"

typedef struct pipeline {
    sp_engine *engine;
    const input_list *inputs;
    const sp_params *params;
    uint32_t decoders;

    void *context;
    /* The next picture to do; false when there are no more. Called by several threads. */
    bool (*next)(void *context, size_t *index);
    /* One picture is done. Called by one thread; a failure ends the run. */
    sp_status (*done)(void *context, size_t index, const record *r, sp_error *err);
    /* One picture cannot be read. Called by several threads. */
    void (*bad)(void *context, size_t index, const sp_error *err);
} pipeline;

/* Run until there are no more pictures, in the calling thread and others. Fails when the engine or
 * `done` fails, not for a bad picture. */
sp_status pipeline_run(const pipeline *p, sp_error *err);

#endif
