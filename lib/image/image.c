/* Telling formats apart, limits, and whole pictures in memory. */
#include "image/image.h"
#include "base/error.h"
#include "base/params.h"
#include "base/size.h"
#include "image/codec.h"

#include <stdlib.h>
#include <string.h>

static const sp_codec *const codecs[] = {
    &sp_codec_jpeg, &sp_codec_png, &sp_codec_webp, &sp_codec_gif, &sp_codec_bmp, &sp_codec_pnm,
};

sp_status sp_fail_cut(sp_error *err, const char *title) {
    return sp_fail(err, SP_ERR_IMAGE_DATA, "%s picture is cut short: the file ends before its pixels do", title);
}

sp_pixels sp_pixels_of(sp_channel channel) {
    return channel == SP_CHANNEL_LUMA ? SP_PIXELS_LUMA : SP_PIXELS_RED;
}

static sp_status check_size(const sp_codec *codec, const sp_image_info *info, uint64_t max_pixels, sp_error *err) {
    if (info->width == 0 || info->height == 0)
        return sp_fail(err, SP_ERR_IMAGE_DATA, "%s picture of %u x %u: it has no pixels", codec->title, info->width,
                       info->height);
    if (info->width > SP_MAX_IMAGE_SIDE || info->height > SP_MAX_IMAGE_SIDE)
        return sp_fail(err, SP_ERR_IMAGE_TOO_LARGE, "%s picture of %u x %u: no side may exceed %d pixels", codec->title,
                       info->width, info->height, SP_MAX_IMAGE_SIDE);
    if ((uint64_t)info->width * info->height > max_pixels)
        return sp_fail(err, SP_ERR_IMAGE_TOO_LARGE, "%s picture of %u x %u: more than the %llu pixels allowed",
                       codec->title, info->width, info->height, (unsigned long long)max_pixels);
    return SP_OK;
}

sp_status sp_codec_probe(sp_bytes file, uint64_t max_pixels, const sp_codec **codec, sp_image_info *info,
                         sp_error *err) {
    if (!file.data || file.size == 0)
        return sp_fail(err, SP_ERR_IMAGE_FORMAT, "picture is empty: 0 bytes");
    for (size_t i = 0; i < sizeof codecs / sizeof codecs[0]; i++) {
        if (!codecs[i]->match(file))
            continue;
        *codec = codecs[i];
        *info = (sp_image_info){.orientation = 1};
        memcpy(info->format, codecs[i]->name, sizeof info->format);
        sp_status status = codecs[i]->probe(file, info, err);
        return status != SP_OK ? status : check_size(codecs[i], info, max_pixels, err);
    }
    return sp_fail(err, SP_ERR_IMAGE_FORMAT,
                   "not a picture of a known kind: JPEG, PNG, WebP, GIF, BMP and PPM are read");
}

sp_status sp_image_probe(const void *bytes, size_t size, sp_image_info *info, sp_error *err) {
    if (!info)
        return sp_fail(err, SP_ERR_ARGUMENT, "sp_image_probe: info is NULL");
    const sp_codec *codec;
    sp_status status = sp_codec_probe((sp_bytes){bytes, size}, UINT64_MAX, &codec, info, err);
    if (status != SP_OK)
        *info = (sp_image_info){0};
    return status;
}

/* Stores rows one below the other. */
typedef struct store_sink {
    sp_row_sink base;
    uint8_t *next;
    size_t stride, bytes;
} store_sink;

static void store_row(sp_row_sink *base, const uint8_t *row) {
    store_sink *sink = (store_sink *)base;
    memcpy(sink->next, row, sink->bytes);
    sink->next += sink->stride;
}

sp_status sp_image_alloc(uint32_t width, uint32_t height, uint32_t channels, sp_image *image, sp_error *err) {
    size_t stride, bytes;
    *image = (sp_image){0};
    if (!sp_size_mul(width, channels, &stride) || !sp_size_mul(stride, height, &bytes))
        return sp_fail(err, SP_ERR_IMAGE_TOO_LARGE, "picture of %u x %u does not fit into memory", width, height);
    uint8_t *pixels = malloc(bytes ? bytes : 1);
    if (!pixels)
        return sp_fail_memory(err, "picture", bytes);
    *image = (sp_image){.width = width, .height = height, .channels = channels, .stride = stride, .pixels = pixels};
    return SP_OK;
}

sp_status sp_codec_decode_image(const sp_codec *codec, sp_bytes file, const sp_image_info *info, sp_pixels want,
                                sp_exif exif, sp_image *image, sp_error *err) {
    sp_status status = sp_image_alloc(info->width, info->height, sp_pixels_bytes(want), image, err);
    if (status != SP_OK)
        return status;
    store_sink sink = {.base = {store_row}, .next = image->pixels, .stride = image->stride, .bytes = image->stride};
    status = codec->decode(file, info, want, &sink.base, err);
    if (status == SP_OK && exif == SP_EXIF_APPLY)
        status = sp_image_orient(image, info->orientation, err);
    if (status != SP_OK)
        sp_image_free(image);
    return status;
}

sp_status sp_image_decode(const void *bytes, size_t size, const sp_params *given, sp_image *image, sp_image_info *info,
                          sp_error *err) {
    if (!image)
        return sp_fail(err, SP_ERR_ARGUMENT, "sp_image_decode: image is NULL");
    *image = (sp_image){0};
    sp_image_info own;
    if (!info)
        info = &own;
    *info = (sp_image_info){0};
    sp_params params;
    sp_status status = sp_params_check(given, err);
    if (status == SP_OK)
        status = sp_params_complete(given, &params, err);
    if (status != SP_OK)
        return status;
    const sp_bytes file = {bytes, size};
    const sp_codec *codec;
    status = sp_codec_probe(file, params.max_pixels, &codec, info, err);
    if (status == SP_OK)
        status = sp_codec_decode_image(codec, file, info, SP_PIXELS_RGB, params.exif, image, err);
    return status == SP_OK ? sp_succeed(err) : status;
}

void sp_image_free(sp_image *image) {
    if (!image)
        return;
    free(image->pixels);
    *image = (sp_image){0};
}
