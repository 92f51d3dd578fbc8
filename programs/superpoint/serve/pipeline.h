/*
 * The way of a job: parsed and decoded by a worker, run by the engine's thread, suppressed, sampled
 * and encoded by a worker. Stages of different jobs overlap; each job's answer depends on it alone.
 *
 * A bounded number of jobs is inside at any time. A job whose client has left, or whose deadline has
 * passed, goes no further; one that sits in an engine that does not come back is answered for it.
 */
#ifndef SP_SERVE_PIPELINE_H
#define SP_SERVE_PIPELINE_H

#include "config.h"
#include "job.h"
#include "stats.h"

typedef struct pipeline pipeline;

typedef enum admission {
    ADMITTED,
    REFUSED_FULL,  /* as many jobs as may be are inside */
    REFUSED_LATE,  /* those inside take longer than this one's deadline */
    REFUSED_STUCK, /* the engine does not come back */
} admission;

sp_status pipeline_create(const config *c, sp_engine *engine, stats *s, pipeline **out, sp_error *err);

/*
 * Take a job and a reference to it; its received_ms is set. Unless ADMITTED nothing happens to it, and
 * *retry_s is the number of seconds after which another try makes sense.
 */
admission pipeline_submit(pipeline *p, job *j, unsigned *retry_s);

/* Whether a job would be refused now for want of room. */
bool pipeline_full(pipeline *p);

/* Answer for jobs whose deadline has passed. To be called several times a second. */
void pipeline_tick(pipeline *p);

size_t pipeline_depth(pipeline *p);

/* Milliseconds that the frame in the engine has taken so far; 0 when there is none. */
double pipeline_running_ms(pipeline *p);

/* Why the engine counts as stuck or broken, or false. */
bool pipeline_stuck(pipeline *p, char *why, size_t size);

/* Stop the threads, which finish what they have begun. False when the engine does not come back within
 * `timeout_ms`: nothing has been freed then. */
bool pipeline_free(pipeline *p, double timeout_ms);

#endif
