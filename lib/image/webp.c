/* WebP, still or the first frame of an animation, by libwebp. */
#include "base/error.h"
#include "image/codec.h"
#include "image/exif.h"
#include "image/pixel.h"

#include <stdlib.h>
#include <string.h>

#include <webp/decode.h>
#include <webp/demux.h>

static bool match(sp_bytes file) {
    return file.size >= 12 && memcmp(file.data, "RIFF", 4) == 0 && memcmp(file.data + 8, "WEBP", 4) == 0;
}

static sp_status open_file(sp_bytes file, WebPDemuxer **demuxer, sp_error *err) {
    const WebPData data = {file.data, file.size};
    WebPDemuxState state;
    *demuxer = WebPDemuxPartial(&data, &state);
    if (*demuxer && state == WEBP_DEMUX_DONE)
        return SP_OK;
    WebPDemuxDelete(*demuxer);
    *demuxer = NULL;
    if (state == WEBP_DEMUX_PARSE_ERROR)
        return sp_fail(err, SP_ERR_IMAGE_DATA, "WebP picture is broken: its chunks do not fit together");
    return sp_fail_cut(err, "WebP");
}

static int chunk_orientation(const WebPDemuxer *demuxer, const char *name, int (*read)(sp_bytes)) {
    WebPChunkIterator it;
    int orientation = 0;
    if (WebPDemuxGetChunk(demuxer, name, 1, &it)) {
        orientation = read((sp_bytes){it.chunk.bytes, it.chunk.size});
        WebPDemuxReleaseChunkIterator(&it);
    }
    return orientation;
}

static sp_status probe(sp_bytes file, sp_image_info *info, sp_error *err) {
    WebPDemuxer *demuxer;
    sp_status status = open_file(file, &demuxer, err);
    if (status != SP_OK)
        return status;
    info->width = WebPDemuxGetI(demuxer, WEBP_FF_CANVAS_WIDTH);
    info->height = WebPDemuxGetI(demuxer, WEBP_FF_CANVAS_HEIGHT);
    info->multiple = WebPDemuxGetI(demuxer, WEBP_FF_FRAME_COUNT) > 1;
    const int exif = chunk_orientation(demuxer, "EXIF", sp_exif_orientation);
    const int xmp = exif ? 0 : chunk_orientation(demuxer, "XMP ", sp_xmp_orientation);
    info->orientation = exif ? exif : xmp ? xmp : 1;
    WebPDemuxDelete(demuxer);
    return SP_OK;
}

/* Decode a frame into its place on a black canvas of RGB. */
static sp_status decode_frame(const WebPIterator *frame, const sp_image_info *info, uint8_t *canvas, sp_error *err) {
    WebPDecoderConfig config;
    if (!WebPInitDecoderConfig(&config))
        return sp_fail(err, SP_ERR_INTERNAL, "libwebp is of another version than its headers");
    const uint64_t right = (uint64_t)(uint32_t)frame->x_offset + (uint32_t)frame->width;
    const uint64_t bottom = (uint64_t)(uint32_t)frame->y_offset + (uint32_t)frame->height;
    if (right > info->width || bottom > info->height)
        return sp_fail(err, SP_ERR_IMAGE_DATA, "WebP picture is broken: its first frame lies outside");
    const size_t stride = (size_t)info->width * 3;
    const size_t offset = (size_t)frame->y_offset * stride + (size_t)frame->x_offset * 3;
    config.output.colorspace = MODE_RGB;
    config.output.is_external_memory = 1;
    config.output.u.RGBA.rgba = canvas + offset;
    config.output.u.RGBA.stride = (int)stride;
    config.output.u.RGBA.size = stride * info->height - offset;
    const VP8StatusCode code = WebPDecode(frame->fragment.bytes, frame->fragment.size, &config);
    if (code == VP8_STATUS_OUT_OF_MEMORY)
        return sp_fail(err, SP_ERR_MEMORY, "out of memory while decoding a WebP picture");
    if (code == VP8_STATUS_NOT_ENOUGH_DATA)
        return sp_fail_cut(err, "WebP");
    if (code != VP8_STATUS_OK)
        return sp_fail(err, SP_ERR_IMAGE_DATA, "WebP picture is broken: decoder status %d", (int)code);
    return SP_OK;
}

static sp_status decode(sp_bytes file, const sp_image_info *info, sp_pixels want, sp_row_sink *sink, sp_error *err) {
    WebPDemuxer *demuxer;
    sp_status status = open_file(file, &demuxer, err);
    if (status != SP_OK)
        return status;
    /* the picture, and one row of what is wanted below it */
    const size_t stride = (size_t)info->width * 3, bytes = stride * info->height;
    uint8_t *canvas = calloc(bytes + stride, 1);
    WebPIterator frame;
    if (!canvas)
        status = sp_fail_memory(err, "WebP picture", bytes);
    else if (!WebPDemuxGetFrame(demuxer, 1, &frame))
        status = sp_fail(err, SP_ERR_IMAGE_DATA, "WebP file has no picture in it");
    else {
        status = decode_frame(&frame, info, canvas, err);
        WebPDemuxReleaseIterator(&frame);
    }
    for (uint32_t y = 0; status == SP_OK && y < info->height; y++) {
        sp_row_from_rgb(want, canvas + y * stride, 3, info->width, canvas + bytes);
        sink->row(sink, canvas + bytes);
    }
    free(canvas);
    WebPDemuxDelete(demuxer);
    return status;
}

const sp_codec sp_codec_webp = {.name = "webp", .title = "WebP", .match = match, .probe = probe, .decode = decode};
