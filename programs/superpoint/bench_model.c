/* What a frame should cost on an accelerator, by counting: a prediction beside the published package's times. */
#include <stdio.h>

#include "bench.h"

/* The published p150 package: milliseconds a frame of 640x480 as served, and of them on the chip. */
#define PACKAGE_FRAME_MS 5.1
#define PACKAGE_COMPUTE_MS 2.8

static void print_text(const bench_options *o, const sp_frame_estimate *e) {
    printf("PREDICTION by counting instructions and bytes; nothing was measured on a chip.\n"
           "%ux%u on %s at %.0f MHz: %.3f ms a frame (the published package: %.1f ms, of it %.1f ms on the chip, at "
           "640x480)\n\n%-36s %9s  %-8s",
           o->params.width, o->params.height, e->layout, e->clock_mhz, e->frame_ms, PACKAGE_FRAME_MS,
           PACKAGE_COMPUTE_MS, "stage", "cycles", "limit");
    for (int u = 0; u < SP_UNITS; u++)
        printf(" %8s", sp_unit_text((sp_unit)u));
    printf("\n");
    double sum[SP_UNITS] = {0}, cycles = 0;
    for (size_t i = 0; i < e->count; i++) {
        const sp_estimate *s = &e->stage[i];
        printf("%-36s %9.0f  %-8s", s->stage, s->cycles, sp_unit_text(s->limit));
        for (int u = 0; u < SP_UNITS; u++)
            printf(" %8.0f", s->unit[u]), sum[u] += s->unit[u];
        cycles += s->cycles;
        printf("\n");
    }
    printf("%-36s %9.0f  %-8s", "frame", cycles, "");
    for (int u = 0; u < SP_UNITS; u++)
        printf(" %8.0f", sum[u]);
    printf("\n");
}

static json_t *describe(const bench_options *o, const sp_frame_estimate *e) {
    json_t *stages = json_array();
    for (size_t i = 0; i < e->count; i++) {
        json_t *units = json_object();
        for (int u = 0; u < SP_UNITS; u++)
            json_object_set_new(units, sp_unit_text((sp_unit)u), json_real(e->stage[i].unit[u]));
        json_array_append_new(stages,
                              json_pack("{s:s, s:f, s:s, s:o}", "stage", e->stage[i].stage, "cycles",
                                        e->stage[i].cycles, "limit", sp_unit_text(e->stage[i].limit), "units", units));
    }
    return json_pack("{s:s, s:s, s:[i,i], s:s, s:f, s:f, s:f, s:f, s:o}", "kind", "prediction", "engine",
                     o->setup.engine.engine, "size", (int)o->params.height, (int)o->params.width, "layout", e->layout,
                     "clock_mhz", e->clock_mhz, "frame_ms", e->frame_ms, "package_frame_ms", PACKAGE_FRAME_MS,
                     "package_compute_ms", PACKAGE_COMPUTE_MS, "stages", stages);
}

sp_status bench_model(const bench_options *o, sp_error *err) {
    sp_frame_estimate estimate;
    const sp_status status = sp_engine_estimate(&o->setup.engine, &estimate, err);
    if (status != SP_OK)
        return status;
    if (!o->json) {
        print_text(o, &estimate);
        return SP_OK;
    }
    json_t *doc = describe(o, &estimate);
    json_dumpf(doc, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(6));
    printf("\n");
    json_decref(doc);
    return SP_OK;
}
