/*
 * What an engine must do. Each engine is one `sp_engine_kind` in its own folder; none knows another.
 *
 * In: an 8-bit plane, height x width multiples of 8. Out: the dense score map (softmax, dustbin
 * dropped, cells unfolded) and the coarse descriptor map (unit length), and where the engine can,
 * the score map after suppression. Results depend on nothing but the frame, the weights and the
 * options that made the engine.
 */
#ifndef SP_ENGINE_ENGINE_H
#define SP_ENGINE_ENGINE_H

#include "model/model.h"
#include "superpoint.h"

typedef struct sp_engine_kind {
    const char *name;

    /* Whether this machine can run it: SP_OK, or SP_ERR_UNAVAILABLE with the reason. Cheap. */
    sp_status (*probe)(const sp_engine_options *options, sp_error *err);

    /* Make the state. `info` comes with `engine` and `precision` as asked and is completed here; its
     * strings belong to the state. Options have been checked; threads is at least 1. */
    sp_status (*create)(const sp_model *model, const sp_engine_options *options, void **state, sp_engine_info *info,
                        sp_error *err);

    /* Run one frame. `maps` has been shaped for it: width and height set, scores and descriptors
     * large enough, suppressed NULL (point it into the room of sp_maps_room_for_suppressed to deliver it). */
    sp_status (*run)(void *state, const sp_frame *frame, sp_maps *maps, sp_error *err);

    void (*destroy)(void *state);

    /* May be NULL. The same for n frames in turn, for an engine that can take one in while it runs another; sets
     * forward_ms of each. */
    sp_status (*run_many)(void *state, const sp_frame *const *frames, size_t n, sp_maps *maps, sp_error *err);

    /* May be NULL: see sp_engine_estimate and sp_engine_check. */
    sp_status (*estimate)(const sp_engine_options *options, sp_frame_estimate *estimate, sp_error *err);
    sp_status (*check)(const sp_model *model, const sp_engine_options *options, bool reset, sp_check_report *report,
                       void *context, sp_error *err);
} sp_engine_kind;

extern const sp_engine_kind sp_engine_cpu;
extern const sp_engine_kind sp_engine_reference;
extern const sp_engine_kind sp_engine_blackhole;

/* Give `maps` the shape of a width x height frame, growing its memory when it must. */
sp_status sp_maps_shape(sp_maps *maps, uint32_t width, uint32_t height, sp_error *err);

/* Room for [height][width] suppressed scores inside the maps' memory. */
float *sp_maps_room_for_suppressed(sp_maps *maps);

/* A frame that an engine can take: sides multiples of SP_CELL, within the limits, pixels present. */
sp_status sp_frame_check(const sp_frame *frame, sp_error *err);

#endif
