#include "base/params.h"

#include <math.h>
#include <string.h>

#include "base/error.h"

void sp_params_default(sp_params *params) {
    *params = (sp_params){.struct_size = sizeof *params,
                          .max_keypoints = 1024,
                          .keypoint_threshold = 0.005f,
                          .nms_radius = 4,
                          .border = 4,
                          .width = 640,
                          .height = 480,
                          .descriptors = true,
                          .descriptor_dtype = SP_DTYPE_FLOAT16,
                          .max_pixels = SP_DEFAULT_MAX_PIXELS};
}

static sp_status check_enums(const sp_params *p, sp_error *err) {
    const struct {
        const char *name;
        unsigned value, last;
    } enums[] = {{"nms", p->nms, SP_NMS_HF},
                 {"channel", p->channel, SP_CHANNEL_LUMA},
                 {"resize", p->resize, SP_RESIZE_MAX},
                 {"exif", p->exif, SP_EXIF_APPLY},
                 {"coordinates", p->coordinates, SP_COORDINATES_COLMAP},
                 {"descriptor_dtype", p->descriptor_dtype, SP_DTYPE_UINT8}};
    for (size_t i = 0; i < sizeof enums / sizeof enums[0]; i++)
        if (enums[i].value > enums[i].last)
            return sp_fail(err, SP_ERR_ARGUMENT, "%s: %u is not known", enums[i].name, enums[i].value);
    return SP_OK;
}

static sp_status check_ranges(const sp_params *p, sp_error *err) {
    if (p->max_keypoints < -1)
        return sp_fail(err, SP_ERR_ARGUMENT, "max_keypoints: %d is not -1 (all) or at least 0", p->max_keypoints);
    if (!isfinite(p->keypoint_threshold))
        return sp_fail(err, SP_ERR_ARGUMENT, "keypoint_threshold: is not a finite number");
    if (p->nms_radius < 0 || p->nms_radius > SP_MAX_NMS_RADIUS)
        return sp_fail(err, SP_ERR_ARGUMENT, "nms_radius: %d is not within 0...%d", p->nms_radius, SP_MAX_NMS_RADIUS);
    if (p->border < 0 || p->border > SP_MAX_BORDER)
        return sp_fail(err, SP_ERR_ARGUMENT, "border: %d is not within 0...%d", p->border, SP_MAX_BORDER);
    if (p->roi.width < 0 || p->roi.height < 0 || (p->roi.width == 0) != (p->roi.height == 0))
        return sp_fail(err, SP_ERR_ARGUMENT, "roi: %d x %d is not a rectangle", p->roi.width, p->roi.height);
    return SP_OK;
}

static sp_status check_size(const sp_params *p, sp_error *err) {
    if (p->resize == SP_RESIZE_NATIVE)
        return SP_OK;
    if (p->resize == SP_RESIZE_MAX) {
        if (p->width < 1 || p->width > SP_MAX_FRAME_SIDE)
            return sp_fail(err, SP_ERR_ARGUMENT, "resize: max:%u is not within 1...%d", p->width, SP_MAX_FRAME_SIDE);
        return SP_OK;
    }
    if (p->width < SP_CELL || p->height < SP_CELL || p->width % SP_CELL || p->height % SP_CELL ||
        p->width > SP_MAX_FRAME_SIDE || p->height > SP_MAX_FRAME_SIDE ||
        (uint64_t)p->width * p->height > SP_MAX_FRAME_PIXELS)
        return sp_fail(err, SP_ERR_ARGUMENT,
                       "resize: %ux%u is not allowed: sides must be multiples of %d up to %d, at most %u pixels",
                       p->width, p->height, SP_CELL, SP_MAX_FRAME_SIDE, SP_MAX_FRAME_PIXELS);
    return SP_OK;
}

sp_status sp_params_check(const sp_params *params, sp_error *err) {
    sp_params p;
    sp_status status = sp_params_complete(params, &p, err);
    if (status == SP_OK)
        status = check_enums(&p, err);
    if (status == SP_OK)
        status = check_ranges(&p, err);
    if (status == SP_OK)
        status = check_size(&p, err);
    return status == SP_OK ? sp_succeed(err) : status;
}

sp_status sp_params_complete(const sp_params *given, sp_params *params, sp_error *err) {
    sp_params_default(params);
    if (!given)
        return SP_OK;
    if (given->struct_size < sizeof(size_t) || given->struct_size > sizeof *params)
        return sp_fail(err, SP_ERR_ARGUMENT, "params: struct_size %zu is not of this version", given->struct_size);
    memcpy(params, given, given->struct_size);
    params->struct_size = sizeof *params;
    return SP_OK;
}
