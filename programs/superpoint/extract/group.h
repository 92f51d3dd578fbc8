/*
 * Several processes, started by mpirun, that share one extraction.
 *
 * Each begins with an equal part of the list. One that has nothing left asks the others in turn for
 * half of what they have left, and stops when all have refused. Every process writes its own journal
 * in the one folder, which all have to see; the first writes the output at the end. A process whose
 * engine fails still gives its part away; when mpirun ends all processes because one died, the
 * journals hold what was done, and the next run does the rest.
 *
 * A group of NULL is this process alone.
 */
#ifndef SUPERPOINT_EXTRACT_GROUP_H
#define SUPERPOINT_EXTRACT_GROUP_H

#include "extract/pipeline.h"
#include "extract/work.h"

typedef struct group group;

/* Join the processes that mpirun started; *g is NULL when there are none. */
sp_status group_join(group **g, sp_error *err);
void group_leave(group *g);

uint32_t group_rank(const group *g);
uint32_t group_size(const group *g);

/* The first process's status and path to all: *path is its text, made anew in the others. */
sp_status group_share_path(group *g, sp_status status, char **path, sp_error *err);

/* Wait for all; SP_OK when all had it. The text is emptied in processes that did not fail themselves,
 * and where the first process failed, which then says it for all. */
sp_status group_agree(group *g, sp_status status, sp_error *err);

/* This process's part of `count` items. */
typedef struct group_range {
    size_t first, last;
} group_range;
group_range group_divide(const group *g, size_t count);

/* Run the pipeline, sharing `w` with the others. */
sp_status group_run(group *g, work *w, const pipeline *p, sp_error *err);

/* Wait for all to have ended; sums over all. */
typedef struct group_sum {
    uint64_t failed, broken;
} group_sum;
group_sum group_end(group *g, group_sum mine);

#endif
