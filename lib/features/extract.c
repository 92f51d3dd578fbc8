#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/params.h"
#include "base/size.h"
#include "engine/engine.h"
#include "features/features.h"

/* First and one past the last frame pixel whose original position p * scale lies in [from, from + length). */
static void roi_span(int32_t from, int32_t length, double scale, uint32_t size, uint32_t *first, uint32_t *last) {
    double a = ceil(from / scale), b = ceil(((double)from + length) / scale);
    *first = (uint32_t)fmin(fmax(a, 0), size);
    *last = (uint32_t)fmin(fmax(b, *first), size);
}

/* Mask and region together as one map of bytes; NULL when neither restricts anything. */
static sp_status make_mask(const sp_frame *frame, const sp_params *params, uint8_t **mask, sp_error *err) {
    *mask = NULL;
    if (!frame->mask && params->roi.width == 0)
        return SP_OK;
    const size_t pixels = (size_t)frame->width * frame->height;
    uint8_t *out = malloc(pixels);
    if (!out)
        return sp_fail_memory(err, "mask", pixels);
    if (frame->mask)
        memcpy(out, frame->mask, pixels);
    else
        memset(out, 255, pixels);
    if (params->roi.width > 0) {
        uint32_t x0, x1, y0, y1;
        roi_span(params->roi.x, params->roi.width, frame->scale_x, frame->width, &x0, &x1);
        roi_span(params->roi.y, params->roi.height, frame->scale_y, frame->height, &y0, &y1);
        for (uint32_t y = 0; y < frame->height; y++) {
            uint8_t *row = out + (size_t)y * frame->width;
            if (y < y0 || y >= y1) {
                memset(row, 0, frame->width);
                continue;
            }
            memset(row, 0, x0);
            memset(row + x1, 0, frame->width - x1);
        }
    }
    *mask = out;
    return SP_OK;
}

/* The score map after mask and suppression, into `out`. */
static sp_status suppress(const sp_maps *maps, const sp_params *params, const uint8_t *mask, float *out,
                          sp_error *err) {
    const size_t pixels = (size_t)maps->width * maps->height;
    const float *scores = maps->scores;
    float *masked = NULL;
    if (mask) {
        masked = malloc(pixels * sizeof *masked);
        if (!masked)
            return sp_fail_memory(err, "masked scores", pixels * sizeof *masked);
        for (size_t i = 0; i < pixels; i++)
            masked[i] = mask[i] ? scores[i] : 0;
        scores = masked;
    }
    sp_status status = (params->nms == SP_NMS_HF ? sp_nms_hf : sp_nms_single)(scores, maps->width, maps->height,
                                                                              params->nms_radius, out, err);
    free(masked);
    return status;
}

/* The part of the frame where points are kept: off the border, and not in the padding. */
static sp_area allowed_area(const sp_frame *frame, const sp_params *params, const uint8_t *mask) {
    const uint32_t b = (uint32_t)params->border;
    sp_area area = {.x0 = b, .y0 = b, .x1 = frame->width > b ? frame->width - b : 0, .mask = mask};
    area.y1 = frame->height > b ? frame->height - b : 0;
    if (area.x1 > frame->content_width)
        area.x1 = frame->content_width;
    if (area.y1 > frame->content_height)
        area.y1 = frame->content_height;
    return area;
}

static float to_original(double pixel, double scale, sp_coordinates coordinates) {
    switch (coordinates) {
    case SP_COORDINATES_CENTRE:
        return (float)((pixel + 0.5) * scale - 0.5);
    case SP_COORDINATES_COLMAP:
        return (float)((pixel + 0.5) * scale);
    default:
        return (float)(pixel * scale);
    }
}

/* One block for all arrays, each on its own cache lines. */
static sp_status allocate(sp_features *features, size_t count, const sp_params *params, sp_error *err) {
    const size_t line = 64;
    const size_t points = sp_round_up(count * 2 * sizeof(float), line);
    const size_t scores = sp_round_up(count * sizeof(float), line);
    const size_t pixels = sp_round_up(count * 2 * sizeof(uint16_t), line);
    const size_t descriptors =
        params->descriptors ? sp_round_up(count * SP_DESCRIPTOR_DIM * sp_dtype_size(params->descriptor_dtype), line)
                            : 0;
    char *block = aligned_alloc(line, points + scores + pixels + descriptors);
    if (!block)
        return sp_fail_memory(err, "features", points + scores + pixels + descriptors);
    features->memory = block;
    features->count = count;
    features->keypoints = (float *)block;
    features->scores = (float *)(block + points);
    features->pixels = (uint16_t *)(block + points + scores);
    features->descriptors = params->descriptors ? block + points + scores + pixels : NULL;
    return SP_OK;
}

static void fill(const sp_maps *maps, const sp_frame *frame, const sp_params *params, const sp_key *keys,
                 sp_features *features) {
    const size_t element = sp_dtype_size(params->descriptor_dtype);
    float descriptor[SP_DESCRIPTOR_DIM];
    for (size_t i = 0; i < features->count; i++) {
        const uint32_t x = sp_key_pixel(keys[i]) % maps->width, y = sp_key_pixel(keys[i]) / maps->width;
        double place[2] = {x, y};
        if (params->subpixel)
            sp_refine_peak(maps->scores, maps->width, maps->height, x, y, place);
        features->keypoints[2 * i] = to_original(place[0], frame->scale_x, params->coordinates);
        features->keypoints[2 * i + 1] = to_original(place[1], frame->scale_y, params->coordinates);
        features->scores[i] = sp_key_score(keys[i]);
        features->pixels[2 * i] = (uint16_t)x;
        features->pixels[2 * i + 1] = (uint16_t)y;
        if (!features->descriptors)
            continue;
        if (i + 1 < features->count)
            sp_sample_prefetch(maps->descriptors, maps->width / SP_CELL, maps->height / SP_CELL,
                               sp_key_pixel(keys[i + 1]) % maps->width, sp_key_pixel(keys[i + 1]) / maps->width);
        sp_sample_descriptor(maps->descriptors, maps->width / SP_CELL, maps->height / SP_CELL, (float)place[0],
                             (float)place[1], descriptor);
        sp_convert(descriptor, SP_DESCRIPTOR_DIM, params->descriptor_dtype,
                   (char *)features->descriptors + i * SP_DESCRIPTOR_DIM * element);
    }
}

/* The usual case, without mask and in one pass: suppressed rows are selected from as they come. */
static sp_status suppress_and_select(const sp_maps *maps, const sp_params *params, const sp_area *area, sp_key **keys,
                                     size_t *count, sp_error *err) {
    sp_selection *selection = NULL;
    sp_status status =
        sp_selection_begin(maps->width, area, params->keypoint_threshold, params->max_keypoints, &selection, err);
    if (status != SP_OK)
        return status;
    status = sp_nms_single_rows(maps->scores, maps->width, maps->height, params->nms_radius, sp_selection_row,
                                selection, err);
    if (status == SP_OK)
        return sp_selection_end(selection, keys, count, err);
    sp_selection_end(selection, NULL, NULL, NULL);
    return status;
}

/* By way of a map of suppressed scores. */
static sp_status suppress_then_select(const sp_maps *maps, const sp_params *params, const sp_area *area, sp_key **keys,
                                      size_t *count, sp_error *err) {
    const size_t bytes = (size_t)maps->width * maps->height * sizeof(float);
    float *room = malloc(bytes);
    if (!room)
        return sp_fail_memory(err, "suppressed scores", bytes);
    sp_status status = suppress(maps, params, area->mask, room, err);
    if (status == SP_OK)
        status =
            sp_select(room, maps->width, area, params->keypoint_threshold, params->max_keypoints, keys, count, err);
    free(room);
    return status;
}

static sp_status extract(const sp_maps *maps, const sp_frame *frame, const sp_params *params, sp_features *features,
                         sp_error *err) {
    uint8_t *mask = NULL;
    sp_key *keys = NULL;
    size_t count = 0;
    sp_status status = make_mask(frame, params, &mask, err);
    if (status == SP_OK) {
        const sp_area area = allowed_area(frame, params, mask);
        const bool plain = !mask && params->nms == SP_NMS_SINGLE;
        features->device_nms = plain && maps->suppressed && maps->nms_radius == params->nms_radius;
        if (features->device_nms)
            status = sp_select(maps->suppressed, maps->width, &area, params->keypoint_threshold, params->max_keypoints,
                               &keys, &count, err);
        else
            status = (plain ? suppress_and_select : suppress_then_select)(maps, params, &area, &keys, &count, err);
    }
    if (status == SP_OK && count > 0 && (status = allocate(features, count, params, err)) == SP_OK)
        fill(maps, frame, params, keys, features);
    free(keys);
    free(mask);
    return status;
}

sp_status sp_features_extract(const sp_maps *maps, const sp_frame *frame, const sp_params *given, sp_features *features,
                              sp_error *err) {
    const double start = sp_now_ms();
    memset(features, 0, sizeof *features);
    sp_params params;
    sp_status status = sp_params_check(given, err);
    if (status == SP_OK)
        status = sp_params_complete(given, &params, err);
    if (status == SP_OK)
        status = sp_frame_check(frame, err);
    if (status == SP_OK && (!maps || !maps->scores || maps->width != frame->width || maps->height != frame->height))
        status = sp_fail(err, SP_ERR_ARGUMENT, "maps: are not those of this frame");
    if (status != SP_OK)
        return status;
    features->descriptor_dtype = params.descriptor_dtype;
    status = extract(maps, frame, &params, features, err);
    features->extract_ms = sp_now_ms() - start;
    return status == SP_OK ? sp_succeed(err) : status;
}

void sp_features_free(sp_features *features) {
    if (!features)
        return;
    free(features->memory);
    memset(features, 0, sizeof *features);
}
