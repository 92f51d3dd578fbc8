/*
 * Several processes, started by mpirun, that share one extraction.
 *
 * Each begins with an equal part of the list. One that has nothing left asks the others in turn for
 * half of what they have left, and stops when all have refused. Every process writes its own journal
 * in the one folder, which all have to see; the first writes the output at the end. A process whose
 * engine fails still gives its part away; when mpirun ends all processes because one died, the
 * journals hold what was done, and the next run does the rest.
 *
 * While they work, each says from time to time that it gets on. One that does not, because it, its
 * device or its machine hangs, is given up by all: they do its part in another round, the first of
 * those that are left writes the output, and then ends the job as failed.
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

/* Leave; with the exit code `code` for the whole job when a process was given up. */
void group_leave(group *g, int code);

uint32_t group_rank(const group *g);
uint32_t group_size(const group *g);

/* The first process's status and path to all: *path is its text, made anew in the others. */
sp_status group_share_path(group *g, sp_status status, char **path, sp_error *err);

/* Wait for all; SP_OK when all had it. The text is emptied in processes that did not fail themselves,
 * and where the first process failed, which then says it for all. */
sp_status group_agree(group *g, sp_status status, sp_error *err);

/* Processes that were given up; and whether this is the first of those that are left. */
uint32_t group_lost_count(const group *g);
bool group_is_lost(const group *g, uint32_t rank);
bool group_leads(const group *g);

/* This process's part of `count` items, divided among those that are left. */
typedef struct group_range {
    size_t first, last;
} group_range;
group_range group_divide(const group *g, size_t count);

/*
 * Run the pipeline, sharing `w` with the others, until all have ended. A process that finishes nothing
 * for `patience` seconds is given up; what it had is then still open, for another call.
 */
sp_status group_run(group *g, work *w, const pipeline *p, double patience, sp_error *err);

/* Over all that are left, after group_run: items that failed, since the first round; processes whose pipeline
 * failed, and those that were told to stop. */
typedef struct group_sum {
    uint64_t failed, broken, stopped;
} group_sum;
group_sum group_total(const group *g);

#endif
