#include <string.h>

#include "superpoint.h"

sp_status sp_detect(sp_engine *engine, const void *bytes, size_t size, const sp_params *params, sp_features *features,
                    sp_error *err) {
    memset(features, 0, sizeof *features);
    sp_frame frame = {0};
    sp_maps maps = {0};
    sp_status status = sp_frame_decode(bytes, size, params, &frame, NULL, err);
    if (status == SP_OK)
        status = sp_engine_run(engine, &(const sp_frame *){&frame}, 1, &maps, err);
    if (status == SP_OK)
        status = sp_features_extract(&maps, &frame, params, features, err);
    sp_maps_free(&maps);
    sp_frame_free(&frame);
    return status;
}
