/*
 * The forward pass of one engine: packed weights, the windows of rows between the layers, and the
 * walk of a frame through them, band by band.
 */
#ifndef SP_ENGINE_CPU_PLAN_H
#define SP_ENGINE_CPU_PLAN_H

#include "base/pool.h"
#include "engine/cpu/kernels.h"
#include "model/model.h"

typedef struct sp_plan sp_plan;

/* Pack `weights` for `kernels`. The plan keeps `pool`, and runs on its threads. `band_cells`: rows of
 * cells that walk through the layers together; 0 lets the plan choose. No result depends on it. */
sp_status sp_plan_create(const sp_weights *weights, const sp_kernels *kernels, sp_pool *pool, uint32_t band_cells,
                         sp_plan **plan, sp_error *err);
void sp_plan_free(sp_plan *plan);

/* Make room for frames of this size. sp_plan_run does it where it has not been done. */
sp_status sp_plan_prepare(sp_plan *plan, uint32_t width, uint32_t height, sp_error *err);

sp_status sp_plan_run(sp_plan *plan, const sp_frame *frame, sp_maps *maps, sp_error *err);

#endif
