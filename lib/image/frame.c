/* From pictures to what the network sees: one plane, resized and padded. */
#include "base/error.h"
#include "base/params.h"
#include "base/size.h"
#include "image/image.h"
#include "image/pixel.h"
#include "image/resample.h"

#include <stdlib.h>
#include <string.h>

/* n * numerator / denominator, rounded to nearest, and at least 1. */
static uint32_t scale_side(uint32_t n, uint32_t numerator, uint32_t denominator) {
    uint64_t scaled = ((uint64_t)n * numerator + denominator / 2) / denominator;
    return scaled < 1 ? 1 : scaled > UINT32_MAX ? UINT32_MAX : (uint32_t)scaled;
}

static void content_size(const sp_params *params, uint32_t width, uint32_t height, uint32_t *out_width,
                         uint32_t *out_height) {
    const uint32_t longer = width > height ? width : height;
    switch (params->resize) {
    case SP_RESIZE_NATIVE:
        *out_width = width;
        *out_height = height;
        break;
    case SP_RESIZE_MAX:
        *out_width = scale_side(width, params->width, longer);
        *out_height = scale_side(height, params->width, longer);
        break;
    case SP_RESIZE_FIXED:
    default:
        *out_width = params->width;
        *out_height = params->height;
        break;
    }
}

/* Everything but the content's pixels: sizes, scale, and padding in zeros. */
static sp_status make_frame(const sp_params *params, uint32_t width, uint32_t height, sp_frame *frame, sp_error *err) {
    uint32_t content_width, content_height;
    content_size(params, width, height, &content_width, &content_height);
    const size_t padded_width = sp_round_up(content_width, SP_CELL),
                 padded_height = sp_round_up(content_height, SP_CELL);
    if (padded_width > SP_MAX_FRAME_SIDE || padded_height > SP_MAX_FRAME_SIDE ||
        (uint64_t)padded_width * padded_height > SP_MAX_FRAME_PIXELS)
        return sp_fail(err, SP_ERR_LIMIT,
                       "a picture of %u x %u needs a frame of %zu x %zu: at most %d a side and %u pixels are allowed",
                       width, height, padded_width, padded_height, SP_MAX_FRAME_SIDE, SP_MAX_FRAME_PIXELS);
    uint8_t *pixels = malloc(padded_width * padded_height);
    if (!pixels)
        return sp_fail_memory(err, "frame", padded_width * padded_height);
    for (size_t y = 0; y < padded_height; y++) {
        const size_t from = y < content_height ? content_width : 0;
        memset(pixels + y * padded_width + from, 0, padded_width - from);
    }
    *frame = (sp_frame){
        .width = (uint32_t)padded_width,
        .height = (uint32_t)padded_height,
        .content_width = content_width,
        .content_height = content_height,
        .original_width = width,
        .original_height = height,
        .scale_x = (double)width / content_width,
        .scale_y = (double)height / content_height,
        .stride = padded_width,
        .pixels = pixels,
    };
    return SP_OK;
}

static sp_status take_params(const sp_params *given, sp_params *params, sp_error *err) {
    sp_status status = sp_params_check(given, err);
    return status == SP_OK ? sp_params_complete(given, params, err) : status;
}

/* Frame for a picture of that size, and the sink that fills it. */
static sp_status open_frame(const sp_params *params, uint32_t width, uint32_t height, sp_frame *frame, sp_resampler *r,
                            sp_error *err) {
    sp_status status = make_frame(params, width, height, frame, err);
    if (status == SP_OK)
        status = sp_resampler_open(r, width, height, 1, frame->content_width, frame->content_height, frame->pixels,
                                   frame->stride, err);
    if (status != SP_OK)
        sp_frame_free(frame);
    return status;
}

sp_status sp_frame_from_image(const sp_image *image, const sp_params *given, sp_frame *frame, sp_error *err) {
    if (!frame)
        return sp_fail(err, SP_ERR_ARGUMENT, "sp_frame_from_image: frame is NULL");
    *frame = (sp_frame){0};
    sp_params params;
    sp_status status = take_params(given, &params, err);
    if (status == SP_OK)
        status = sp_image_check(image, "sp_frame_from_image", err);
    if (status != SP_OK)
        return status;
    uint8_t *row = malloc(image->width);
    if (!row)
        return sp_fail_memory(err, "row", image->width);
    sp_resampler r;
    status = open_frame(&params, image->width, image->height, frame, &r, err);
    for (size_t y = 0; status == SP_OK && y < image->height; y++) {
        const uint8_t *in = image->pixels + y * image->stride;
        if (image->channels == 1)
            memcpy(row, in, image->width);
        else
            sp_row_from_rgb(sp_pixels_of(params.channel), in, 3, image->width, row);
        r.base.row(&r.base, row);
    }
    if (status == SP_OK)
        sp_resampler_close(&r);
    free(row);
    return status == SP_OK ? sp_succeed(err) : status;
}

/* The rows go from the decoder straight into the resampler. */
static sp_status stream(const sp_codec *codec, sp_bytes file, const sp_params *params, const sp_image_info *info,
                        sp_frame *frame, sp_error *err) {
    sp_resampler r;
    sp_status status = open_frame(params, info->width, info->height, frame, &r, err);
    if (status != SP_OK)
        return status;
    status = codec->decode(file, info, sp_pixels_of(params->channel), &r.base, err);
    sp_resampler_close(&r);
    if (status != SP_OK)
        sp_frame_free(frame);
    return status;
}

/* A picture that must be turned first: its plane is decoded whole. */
static sp_status turn(const sp_codec *codec, sp_bytes file, const sp_params *params, const sp_image_info *info,
                      sp_frame *frame, sp_error *err) {
    sp_image plane;
    sp_status status =
        sp_codec_decode_image(codec, file, info, sp_pixels_of(params->channel), SP_EXIF_APPLY, &plane, err);
    if (status != SP_OK)
        return status;
    status = sp_frame_from_image(&plane, params, frame, err);
    sp_image_free(&plane);
    return status;
}

sp_status sp_frame_decode(const void *bytes, size_t size, const sp_params *given, sp_frame *frame, sp_image_info *info,
                          sp_error *err) {
    if (!frame)
        return sp_fail(err, SP_ERR_ARGUMENT, "sp_frame_decode: frame is NULL");
    *frame = (sp_frame){0};
    sp_image_info own;
    if (!info)
        info = &own;
    *info = (sp_image_info){0};
    sp_params params;
    sp_status status = take_params(given, &params, err);
    if (status != SP_OK)
        return status;
    const sp_bytes file = {bytes, size};
    const sp_codec *codec;
    status = sp_codec_probe(file, params.max_pixels, &codec, info, err);
    if (status != SP_OK)
        return status;
    if (params.exif == SP_EXIF_APPLY && info->orientation > 1)
        status = turn(codec, file, &params, info, frame, err);
    else
        status = stream(codec, file, &params, info, frame, err);
    return status == SP_OK ? sp_succeed(err) : status;
}

sp_status sp_frame_set_mask(sp_frame *frame, const sp_image *mask, sp_error *err) {
    if (!frame || !frame->pixels)
        return sp_fail(err, SP_ERR_ARGUMENT, "sp_frame_set_mask: the frame is empty");
    sp_status status = sp_image_check(mask, "mask", err);
    if (status != SP_OK)
        return status;
    uint8_t *plane = calloc(frame->width, frame->height); /* nothing is found in the padding */
    if (!plane)
        return sp_fail_memory(err, "mask", (size_t)frame->width * frame->height);
    for (uint32_t y = 0; y < frame->content_height; y++) {
        /* the mask's pixel under the centre of the frame's */
        const size_t v = (size_t)(((uint64_t)2 * y + 1) * mask->height / ((uint64_t)2 * frame->content_height));
        for (uint32_t x = 0; x < frame->content_width; x++) {
            const size_t u = (size_t)(((uint64_t)2 * x + 1) * mask->width / ((uint64_t)2 * frame->content_width));
            plane[(size_t)y * frame->width + x] = mask->pixels[v * mask->stride + u * mask->channels] ? 255 : 0;
        }
    }
    free(frame->mask);
    frame->mask = plane;
    return sp_succeed(err);
}

void sp_frame_free(sp_frame *frame) {
    if (!frame)
        return;
    free(frame->pixels);
    free(frame->mask);
    *frame = (sp_frame){0};
}
