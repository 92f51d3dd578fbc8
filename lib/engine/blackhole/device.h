/*
 * One chip, loaded and ready to run frames of one size.
 */
#ifndef BH_DEVICE_H
#define BH_DEVICE_H

#include "calibrate.h"
#include "firmware.h"
#include "model/network.h"
#include "plan.h"
#include "transport.h"

typedef struct bh_config {
    uint32_t grid_rows, grid_cols; /* of tiles; 0: as the plan likes */
    uint32_t phases;               /* fidelity phases, 2...4 */
    bool suppress;                 /* NCRISC suppresses with SUPPRESS_RADIUS */
    bool layer_by_layer;           /* the host starts each layer; else one start a frame */
} bh_config;

typedef struct bh_device bh_device;

/* Put the weights into DRAM. The transport and the firmware's images are the caller's and must outlive the device. */
sp_status sp_bh_device_make(bh_transport *transport, const bh_firmware *firmware, const sp_weights *weights,
                            const bh_config *config, bh_device **device, sp_error *err);

/* Load programs and tables for frames of width x height and start the cores; nothing if that is what runs already. */
sp_status sp_bh_device_prepare(bh_device *device, uint32_t width, uint32_t height, sp_error *err);

/* Run one frame of the size prepared: `pixels` height rows of `stride` bytes; `scores` [height][width], `suppressed`
 * the same or NULL, `descriptors` [height/8][width/8][256]. After a failure the next prepare loads everything anew. */
sp_status sp_bh_device_run(bh_device *device, const uint8_t *pixels, size_t stride, float *scores, float *suppressed,
                           float *descriptors, sp_error *err);

/* The plan that is loaded. */
const bh_plan *sp_bh_device_plan(const bh_device *device);

/* Hold every tile in reset and forget the device. The transport stays open. NULL does nothing. */
void sp_bh_device_free(bh_device *device);

#endif
