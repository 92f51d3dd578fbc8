#include "stats.h"

#include <stdbool.h>
#include <stdlib.h>

static const double bounds_ms[STATS_BUCKETS] = {0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000};

/* Statuses that the service gives; the last stands for any other. */
static const int statuses[STATS_STATUSES] = {200, 204, 304, 400, 401, 403, 404, 405, 406, 408, 411,
                                             413, 414, 415, 417, 429, 431, 499, 500, 501, 503, 505};

void stats_stage(stats *s, stage which, double ms) {
    histogram *h = &s->stages[which];
    int i = 0;
    while (i < STATS_BUCKETS && ms > bounds_ms[i])
        i++;
    atomic_fetch_add_explicit(&h->buckets[i], 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&h->sum_us, ms > 0 ? (uint64_t)(ms * 1e3) : 0, memory_order_relaxed);
}

void stats_request(stats *s, unsigned route, int status) {
    int i = 0;
    while (i < STATS_STATUSES - 1 && statuses[i] && statuses[i] != status)
        i++;
    if (route < STATS_ROUTES)
        atomic_fetch_add_explicit(&s->requests[route][i], 1, memory_order_relaxed);
}

static void head(buffer *out, const char *name, const char *type, const char *help) {
    buffer_format(out, "# HELP superpoint_%s %s\n# TYPE superpoint_%s %s\n", name, help, name, type);
}

static void counter(buffer *out, const char *name, const char *help, uint64_t value) {
    head(out, name, "counter", help);
    buffer_format(out, "superpoint_%s %llu\n", name, (unsigned long long)value);
}

static void gauge(buffer *out, const char *name, const char *help, double value) {
    head(out, name, "gauge", help);
    buffer_format(out, "superpoint_%s %.17g\n", name, value);
}

/* A label's value: backslash, quote and newline are escaped. */
static void label(buffer *out, const char *name, const char *value, const char *after) {
    buffer_format(out, "%s=\"", name);
    for (; *value; value++) {
        if (*value == '\\' || *value == '"')
            buffer_char(out, '\\');
        if (*value == '\n')
            buffer_text(out, "\\n");
        else
            buffer_char(out, *value);
    }
    buffer_format(out, "\"%s", after);
}

static void requests(const stats *s, const stats_now *now, buffer *out) {
    head(out, "requests_total", "counter", "Answers by route and status.");
    for (unsigned r = 0; r < STATS_ROUTES && now->route_name(r); r++)
        for (int i = 0; i < STATS_STATUSES; i++) {
            uint64_t n = atomic_load_explicit(&s->requests[r][i], memory_order_relaxed);
            if (!n)
                continue;
            buffer_text(out, "superpoint_requests_total{");
            label(out, "route", now->route_name(r), ",");
            buffer_format(out, "status=\"%d\"} %llu\n", statuses[i], (unsigned long long)n);
        }
}

static void stages(const stats *s, buffer *out) {
    static const char *const names[STAGES] = {"queue", "preprocess", "forward", "postprocess", "encode", "total"};
    head(out, "stage_seconds", "histogram", "Time by stage of a request.");
    for (int i = 0; i < STAGES; i++) {
        uint64_t below = 0;
        for (int b = 0; b <= STATS_BUCKETS; b++) {
            below += atomic_load_explicit(&s->stages[i].buckets[b], memory_order_relaxed);
            buffer_format(out, "superpoint_stage_seconds_bucket{stage=\"%s\",le=\"", names[i]);
            if (b < STATS_BUCKETS)
                buffer_format(out, "%g\"} %llu\n", bounds_ms[b] / 1e3, (unsigned long long)below);
            else
                buffer_format(out, "+Inf\"} %llu\n", (unsigned long long)below);
        }
        double sum = (double)atomic_load_explicit(&s->stages[i].sum_us, memory_order_relaxed) / 1e6;
        buffer_format(out, "superpoint_stage_seconds_sum{stage=\"%s\"} %.6f\n", names[i], sum);
        buffer_format(out, "superpoint_stage_seconds_count{stage=\"%s\"} %llu\n", names[i], (unsigned long long)below);
    }
}

static void build_info(const stats_now *now, buffer *out) {
    head(out, "build_info", "gauge", "Always 1; the labels say what runs.");
    buffer_text(out, "superpoint_build_info{");
    label(out, "version", now->version, ",");
    label(out, "engine", now->engine, ",");
    label(out, "device", now->device, ",");
    label(out, "level", now->level, ",");
    label(out, "precision", now->precision, ",");
    label(out, "weights", now->weights, "} 1\n");
}

void stats_text(const stats *s, const stats_now *now, buffer *out) {
    requests(s, now, out);
    stages(s, out);
    counter(out, "pictures_total", "Pictures through the network.", s->pictures);
    counter(out, "keypoints_total", "Keypoints found.", s->keypoints);
    counter(out, "received_bytes_total", "Bytes of request bodies.", s->bytes_in);
    counter(out, "sent_bytes_total", "Bytes of answer bodies.", s->bytes_out);
    counter(out, "connections_total", "Connections accepted.", s->connections);
    counter(out, "connections_refused_total", "Connections refused or shed for want of room.", s->connections_refused);
    counter(out, "timeouts_total", "Connections closed by a deadline.", s->timeouts);
    counter(out, "malformed_total", "Connections closed for what is not HTTP.", s->malformed);
    counter(out, "clients_gone_total", "Requests dropped since their client had left.", s->clients_gone);
    counter(out, "expired_total", "Requests that reached their deadline unserved.", s->expired);
    counter(out, "log_dropped_total", "Lines of the access log that could not be written.", now->log_dropped);
    gauge(out, "queue_depth", "Requests admitted and not yet answered.", (double)now->queue_depth);
    gauge(out, "queue_limit", "Most requests that may be admitted.", (double)now->queue_limit);
    gauge(out, "connections_open", "Connections open.", (double)now->connections_open);
    gauge(out, "body_bytes", "Bytes of request bodies in memory.", (double)now->body_bytes);
    gauge(out, "ready", "1 when /health says ok.", now->ready);
    gauge(out, "engine_running_seconds", "Time that the frame in the engine has taken so far, 0 when idle.",
          now->running_s);
    gauge(out, "uptime_seconds", "Time since the start.", now->uptime_s);
    gauge(out, "resident_bytes", "Resident memory of the process.", (double)now->resident_bytes);
    build_info(now, out);
}
