/*
 * One chip, loaded and ready to run frames of one size.
 */
#ifndef BH_DEVICE_H
#define BH_DEVICE_H

#include "firmware.h"
#include "pack.h"
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
sp_status sp_bh_device_make(bh_transport *transport, const bh_firmware *firmware, const bh_weights *weights,
                            const bh_config *config, bh_device **device, sp_error *err);

/* Load programs and tables for frames of width x height and start the cores; nothing if that is what runs already. */
sp_status sp_bh_device_prepare(bh_device *device, uint32_t width, uint32_t height, sp_error *err);

/*
 * One frame of the size prepared is: upload its picture, start, finish, collect. The next picture may be
 * uploaded between start and finish: there are two slots. After a failure call stop; the next prepare loads everything
 * anew.
 *
 * `pixels` has height rows of `stride` bytes. `scores` is [height][width], `suppressed` the same or NULL, `descriptors`
 * [height/8][width/8][256].
 */
sp_status sp_bh_device_upload(bh_device *device, const uint8_t *pixels, size_t stride, sp_error *err);
sp_status sp_bh_device_start(bh_device *device, sp_error *err);
/* Instead of start: run the next layer alone, and wait for it. Finish then runs what is left. */
sp_status sp_bh_device_advance(bh_device *device, sp_error *err);
sp_status sp_bh_device_finish(bh_device *device, sp_error *err);
void sp_bh_device_collect(bh_device *device, float *scores, float *suppressed, float *descriptors);

/* Hold every tile in reset, as far as the transport goes. */
void sp_bh_device_stop(bh_device *device);

/* The plan that is loaded. */
const bh_plan *sp_bh_device_plan(const bh_device *device);

/* Hold every tile in reset and forget the device. The transport stays open. NULL does nothing. */
void sp_bh_device_free(bh_device *device);

#endif
