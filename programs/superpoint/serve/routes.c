/* The paths of the service, and the answers that need no body. */
#include <stdio.h>
#include <string.h>

#include "common/clock.h"
#include "common/jsonout.h"
#include "common/params.h"
#include "http.h"
#include "openapi.h"
#include "page.h"

const char *server_trouble(server *s, char *room, size_t size) {
    if (atomic_load(&s->draining))
        return "draining";
    if (!atomic_load(&s->ready))
        return "starting";
    return pipeline_stuck(s->pipeline, room, size) ? room : NULL;
}

static enum MHD_Result answer_text(request *r, int status, const char *text) {
    return http_answer_static(r, status, "application/json", text, strlen(text));
}

static enum MHD_Result health(request *r) {
    char room[300];
    const char *trouble = server_trouble(r->server, room, sizeof room);
    if (!trouble)
        return answer_text(r, 200, "{\"status\":\"ok\"}\n");
    buffer body = {0};
    buffer_text(&body, "{\"status\": \"unavailable\", \"detail\": ");
    json_put_string(&body, trouble);
    buffer_text(&body, "}\n");
    return http_answer(r, 503, "application/json", &body);
}

static enum MHD_Result alive(request *r) {
    return answer_text(r, 200, "{\"status\":\"ok\"}\n");
}

static void put_default(const sp_params *p, const param_spec *spec, buffer *out) {
    char text[64];
    params_text(p, spec, text, sizeof text);
    buffer_format(out, "\"%s\": ", spec->name);
    if (spec->kind == PARAM_INTEGER || spec->kind == PARAM_NUMBER || spec->kind == PARAM_BOOLEAN)
        buffer_text(out, text);
    else if (spec->kind == PARAM_RECT && p->roi.width == 0)
        buffer_text(out, "null");
    else
        json_put_string(out, text);
}

static void put_model(const server *s, buffer *out) {
    const sp_model_info *m = sp_model_get_info(s->model);
    buffer_text(out, "\"model\": {\"name\": ");
    json_put_string(out, s->config.model_name);
    buffer_format(out,
                  ", \"architecture\": \"SuperPoint (arXiv:1712.07629)\", \"parameters\": %llu, \"weights\": {\"id\": ",
                  (unsigned long long)m->parameters);
    json_put_string(out, m->id);
    buffer_text(out, ", \"revision\": ");
    json_put_string(out, m->revision);
    buffer_text(out, ", \"sha256\": ");
    json_put_string(out, m->sha256);
    buffer_text(out, ", \"licence\": ");
    json_put_string(out, m->licence);
    buffer_text(out, "}}");
}

static void put_engine(const server *s, buffer *out) {
    const sp_engine_info *e = sp_engine_get_info(s->engine);
    buffer_text(out, "\"engine\": ");
    json_put_string(out, e->engine);
    buffer_text(out, ", \"device\": ");
    json_put_string(out, e->device);
    buffer_text(out, ", \"level\": ");
    json_put_string(out, e->level);
    buffer_format(out, ", \"precision\": \"%s\", \"threads\": %u, \"frame\": {\"height\": %u, \"width\": %u}",
                  sp_precision_text(e->precision), e->threads, s->defaults.height, s->defaults.width);
    buffer_format(out, ", \"serving_path\": {\"traced\": %s, \"device_nms\": %s, \"nms_radius_traced\": ",
                  e->traced ? "true" : "false", e->device_nms ? "true" : "false");
    if (e->device_nms)
        buffer_format(out, "%d", e->nms_radius);
    else
        buffer_text(out, "null");
    buffer_text(out, ", \"fused_stages\": [");
    const char *p = e->fused_stages ? e->fused_stages : "";
    for (bool first = true; *p; first = false) {
        size_t length = strcspn(p, ",");
        buffer_text(out, first ? "" : ", ");
        json_put_string_n(out, p, length);
        p += length + (p[length] == ',');
        p += strspn(p, " ");
    }
    buffer_text(out, "]}");
}

static void put_limits(const server *s, buffer *out) {
    const char *name, *unit;
    double value;
    buffer_text(out, "\"limits\": {");
    for (size_t i = 0; config_limit(&s->config, i, &name, &unit, &value); i++)
        buffer_format(out, "%s\"%s\": %.15g", i ? ", " : "", name, value);
    buffer_text(out, "}");
}

static enum MHD_Result info(request *r) {
    const server *s = r->server;
    size_t count;
    const param_spec *specs = params_specs(&count);
    buffer body = {0};
    buffer_format(&body, "{\"name\": \"superpoint\", \"version\": \"%s\", ", sp_version());
    put_model(s, &body);
    buffer_text(&body, ", ");
    put_engine(s, &body);
    buffer_text(&body, ", \"defaults\": {");
    for (size_t i = 0; i < count; i++) {
        buffer_text(&body, i ? ", " : "");
        put_default(&s->defaults, &specs[i], &body);
    }
    buffer_text(&body, "}, ");
    put_limits(s, &body);
    buffer_text(&body, ", \"formats\": [\"jpeg\", \"png\", \"ppm\", \"bmp\", \"webp\", \"gif\"]");
    buffer_format(&body, ", \"provenance\": {\"weights_file\": ");
    json_put_string(&body, sp_model_get_info(s->model)->path);
    buffer_format(&body, ", \"library\": \"%s\", \"http\": \"libmicrohttpd %s\"}", sp_version(), MHD_get_version());
    buffer_format(&body, ", \"uptime_s\": %.3f}\n", (now_ms() - s->started_ms) / 1e3);
    return http_answer(r, 200, "application/json", &body);
}

static enum MHD_Result models(request *r) {
    buffer body = {0};
    buffer_text(&body, "{\"object\":\"list\",\"data\":[{\"id\":");
    json_put_string(&body, r->server->config.model_name);
    buffer_text(&body, ",\"object\":\"model\",\"owned_by\":\"superpoint\"}]}\n");
    return http_answer(r, 200, "application/json", &body);
}

static double resident_bytes(void) {
    unsigned long pages = 0, all = 0;
    FILE *f = fopen("/proc/self/statm", "re");
    if (!f)
        return 0;
    int got = fscanf(f, "%lu %lu", &all, &pages);
    fclose(f);
    return got == 2 ? (double)pages * 4096 : 0;
}

static enum MHD_Result metrics(request *r) {
    server *s = r->server;
    const sp_engine_info *e = sp_engine_get_info(s->engine);
    char room[300];
    stats_now now = {.route_name = route_name,
                     .queue_depth = pipeline_depth(s->pipeline),
                     .queue_limit = (unsigned long)s->config.limits.max_queue,
                     .connections_open = gate_open_connections(s->gate),
                     .body_bytes = atomic_load(&s->body_bytes),
                     .log_dropped = log_dropped(s->log),
                     .ready = server_trouble(s, room, sizeof room) == NULL,
                     .uptime_s = (now_ms() - s->started_ms) / 1e3,
                     .running_s = pipeline_running_ms(s->pipeline) / 1e3,
                     .engine = e->engine,
                     .device = e->device,
                     .level = e->level,
                     .precision = sp_precision_text(e->precision),
                     .version = sp_version(),
                     .weights = sp_model_get_info(s->model)->sha256,
                     .resident_bytes = (uint64_t)resident_bytes()};
    buffer body = {0};
    stats_text(&s->stats, &now, &body);
    return http_answer(r, 200, "text/plain; version=0.0.4; charset=utf-8", &body);
}

static enum MHD_Result v2(request *r) {
    buffer body = {0};
    buffer_format(&body, "{\"name\": \"superpoint\", \"version\": \"%s\", \"extensions\": [\"binary_tensor_data\"]}\n",
                  sp_version());
    return http_answer(r, 200, "application/json", &body);
}

static enum MHD_Result v2_live(request *r) {
    return answer_text(r, 200, "{\"live\": true}\n");
}

static enum MHD_Result v2_ready(request *r) {
    char room[300];
    bool ready = server_trouble(r->server, room, sizeof room) == NULL;
    return answer_text(r, ready ? 200 : 503, ready ? "{\"ready\": true}\n" : "{\"ready\": false}\n");
}

static enum MHD_Result v2_model(request *r) {
    return answer_text(r, 200,
                       "{\"name\": \"superpoint\", \"versions\": [\"1\"], \"platform\": \"superpoint\", \"inputs\": "
                       "[{\"name\": \"image\", \"datatype\": \"BYTES\", \"shape\": [-1]}], \"outputs\": "
                       "[{\"name\": \"num_keypoints\", \"datatype\": \"INT32\", \"shape\": [-1]}, "
                       "{\"name\": \"keypoints\", \"datatype\": \"FP32\", \"shape\": [-1, 2]}, "
                       "{\"name\": \"scores\", \"datatype\": \"FP32\", \"shape\": [-1]}, "
                       "{\"name\": \"descriptors\", \"datatype\": \"FP16\", \"shape\": [-1, 256]}]}\n");
}

static enum MHD_Result openapi(request *r) {
    buffer body = {0};
    openapi_text(r->server, &body);
    return http_answer(r, 200, "application/json", &body);
}

/* A file of the page, by the path's last part. */
static enum MHD_Result page(request *r) {
    static const char *const types[][2] = {{".html", "text/html; charset=utf-8"},
                                           {".css", "text/css; charset=utf-8"},
                                           {".js", "text/javascript; charset=utf-8"},
                                           {".svg", "image/svg+xml"}};
    const char *name = strcmp(r->path, "/") == 0       ? "index.html"
                       : strcmp(r->path, "/docs") == 0 ? "docs.html"
                                                       : r->path + 1;
    const page_file *f = page_files;
    while (f->name && strcmp(f->name, name) != 0)
        f++;
    for (size_t i = 0; f->name && i < sizeof types / sizeof types[0]; i++)
        if (strstr(f->name, types[i][0]))
            return http_answer_static(r, 200, types[i][1], f->bytes, f->size);
    return http_error(r, 404, "there is nothing at %.100s", r->path);
}

#define GET "GET, HEAD, OPTIONS"

static const route routes[] = {
    {"/predict", "POST, OPTIONS", false, false, NULL, BODY_JSON},
    {"/health", GET, true, true, health, BODY_JSON},
    {"/healthz", GET, true, true, health, BODY_JSON},
    {"/livez", GET, true, true, alive, BODY_JSON},
    {"/readyz", GET, true, true, health, BODY_JSON},
    {"/info", GET, false, false, info, BODY_JSON},
    {"/v1/models", GET, false, false, models, BODY_JSON},
    {"/metrics", GET, false, false, metrics, BODY_JSON},
    {"/v2", GET, false, true, v2, BODY_KSERVE},
    {"/v2/health/live", GET, true, true, v2_live, BODY_KSERVE},
    {"/v2/health/ready", GET, true, true, v2_ready, BODY_KSERVE},
    {"/v2/models/superpoint", GET, false, false, v2_model, BODY_KSERVE},
    {"/v2/models/superpoint/ready", GET, true, true, v2_ready, BODY_KSERVE},
    {"/v2/models/superpoint/infer", "POST, OPTIONS", false, false, NULL, BODY_KSERVE},
    {"/v2/models/superpoint/versions/1", GET, false, false, v2_model, BODY_KSERVE},
    {"/v2/models/superpoint/versions/1/ready", GET, true, true, v2_ready, BODY_KSERVE},
    {"/v2/models/superpoint/versions/1/infer", "POST, OPTIONS", false, false, NULL, BODY_KSERVE},
    {"/openapi.json", GET, true, false, openapi, BODY_JSON},
    {"/", GET, true, true, page, BODY_JSON},
    {"/docs", GET, true, true, page, BODY_JSON},
    {"/app.js", GET, true, true, page, BODY_JSON},
    {"/docs.js", GET, true, true, page, BODY_JSON},
    {"/icon.svg", GET, true, true, page, BODY_JSON},
    {"/matcher.js", GET, true, true, page, BODY_JSON},
    {"/npz.js", GET, true, true, page, BODY_JSON},
    {"/style.css", GET, true, true, page, BODY_JSON},
    {NULL, "OPTIONS", true, true, NULL, BODY_JSON}, /* any other */
};
enum { ROUTES = sizeof routes / sizeof routes[0] };

const route *route_find(const char *path) {
    unsigned i = 0;
    while (routes[i].path && strcmp(routes[i].path, path) != 0)
        i++;
    return &routes[i];
}

unsigned route_index(const route *r) {
    return (unsigned)(r - routes);
}

const char *route_name(unsigned index) {
    return index >= ROUTES ? NULL : routes[index].path ? routes[index].path : "other";
}
