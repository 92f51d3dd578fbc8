/* What /metrics tells: counters and histograms that any thread adds to without a lock. */
#ifndef SP_SERVE_STATS_H
#define SP_SERVE_STATS_H

#include <stdatomic.h>
#include <stdint.h>

#include "common/buffer.h"

/* The stages of a request that have a histogram. */
typedef enum stage {
    STAGE_QUEUE,       /* waiting, in all */
    STAGE_PREPROCESS,  /* parsing, decoding, resampling */
    STAGE_FORWARD,     /* the network */
    STAGE_POSTPROCESS, /* suppression, selection, sampling */
    STAGE_ENCODE,      /* writing the answer */
    STAGE_TOTAL,       /* from the whole body to the answer */
    STAGES
} stage;

enum { STATS_BUCKETS = 14, STATS_ROUTES = 32, STATS_STATUSES = 32 };

typedef struct histogram {
    _Atomic uint64_t buckets[STATS_BUCKETS + 1]; /* the last: above all bounds */
    _Atomic uint64_t sum_us;
} histogram;

typedef struct stats {
    histogram stages[STAGES];
    _Atomic uint64_t requests[STATS_ROUTES][STATS_STATUSES];
    _Atomic uint64_t pictures, keypoints, bytes_in, bytes_out;
    _Atomic uint64_t connections, connections_refused, timeouts, malformed, clients_gone, expired;
} stats;

void stats_stage(stats *s, stage which, double ms);

/* Count an answer. `route` is an index below STATS_ROUTES. */
void stats_request(stats *s, unsigned route, int status);

/* The values of now that stats do not hold. */
typedef struct stats_now {
    const char *(*route_name)(unsigned route); /* NULL behind the last */
    unsigned long queue_depth, queue_limit, connections_open, body_bytes;
    uint64_t log_dropped;
    bool ready;
    double uptime_s, running_s;
    const char *engine, *device, *level, *precision, *version, *weights;
    uint64_t resident_bytes;
} stats_now;

/* Everything in the text format of Prometheus 0.0.4. */
void stats_text(const stats *s, const stats_now *now, buffer *out);

#endif
