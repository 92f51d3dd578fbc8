#include "describe.h"

#include <stdio.h>

json_t *describe_machine(void) {
    char cpu[128];
    sp_cpu_describe(cpu, sizeof cpu);
    json_t *levels = json_array();
    for (const char *const *level = sp_cpu_levels(); *level; level++)
        if (sp_cpu_level_available(*level))
            json_array_append_new(levels, json_string(*level));
    return json_pack("{s:s, s:o}", "cpu", cpu, "levels", levels);
}

json_t *describe_engine(const sp_engine *engine) {
    const sp_engine_info *e = sp_engine_get_info(engine);
    return json_pack("{s:s, s:s, s:s, s:s, s:i}", "name", e->engine, "device", e->device, "level", e->level,
                     "precision", sp_precision_text(e->precision), "threads", (int)e->threads);
}

json_t *describe_weights(const sp_model *model) {
    const sp_model_info *w = sp_model_get_info(model);
    return json_pack("{s:s, s:s}", "id", w->id, "sha256", w->sha256);
}

void describe_print(const sp_engine *engine, const sp_model *model) {
    const sp_engine_info *e = sp_engine_get_info(engine);
    printf("engine %s, level %s, %s, weights %s", e->engine, e->level, sp_precision_text(e->precision),
           sp_model_get_info(model)->id);
}
