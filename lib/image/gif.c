/* The first frame of a GIF, by giflib. */
#include "base/error.h"
#include "image/codec.h"
#include "image/pixel.h"

#include <stdlib.h>
#include <string.h>

#include <gif_lib.h>

static bool match(sp_bytes file) {
    return file.size >= 6 && (memcmp(file.data, "GIF87a", 6) == 0 || memcmp(file.data, "GIF89a", 6) == 0);
}

/* A walk over the blocks of the file. */
typedef struct blocks {
    sp_bytes file;
    size_t at;
} blocks;

static uint32_t read16(const uint8_t *p) {
    return (uint32_t)p[0] | (uint32_t)p[1] << 8;
}

static bool skip(blocks *b, size_t bytes) {
    if (b->file.size - b->at < bytes)
        return false;
    b->at += bytes;
    return true;
}

static bool skip_sub_blocks(blocks *b) {
    for (;;) {
        if (b->at >= b->file.size)
            return false;
        size_t length = b->file.data[b->at++];
        if (length == 0)
            return true;
        if (!skip(b, length))
            return false;
    }
}

static size_t colour_table_bytes(uint8_t flags) {
    return flags & 0x80 ? (size_t)3 << ((flags & 7) + 1) : 0;
}

/* Go to the next frame and past its descriptor, which is returned; NULL when there is none. */
static const uint8_t *next_frame(blocks *b) {
    while (b->at < b->file.size) {
        uint8_t kind = b->file.data[b->at++];
        if (kind == ',') {
            const uint8_t *descriptor = b->file.data + b->at;
            return skip(b, 9) ? descriptor : NULL;
        }
        if (kind == ';')
            return NULL;
        if (kind == '!' && (!skip(b, 1) || !skip_sub_blocks(b)))
            return NULL;
    }
    return NULL;
}

/* The screen, widened where the first frame reaches over it. */
static sp_status probe(sp_bytes file, sp_image_info *info, sp_error *err) {
    blocks b = {file, 13};
    if (file.size < 13 || !skip(&b, colour_table_bytes(file.data[10])))
        return sp_fail(err, SP_ERR_IMAGE_DATA, "GIF picture is cut short: the file ends in its header");
    const uint8_t *frame = next_frame(&b);
    if (!frame)
        return sp_fail(err, SP_ERR_IMAGE_DATA, "GIF file has no picture in it");
    const uint32_t right = read16(frame) + read16(frame + 4), bottom = read16(frame + 2) + read16(frame + 6);
    info->width = read16(file.data + 6) > right ? read16(file.data + 6) : right;
    info->height = read16(file.data + 8) > bottom ? read16(file.data + 8) : bottom;
    info->multiple = skip(&b, colour_table_bytes(frame[8]) + 1) && skip_sub_blocks(&b) && next_frame(&b);
    return SP_OK;
}

static int read_bytes(GifFileType *gif, GifByteType *out, int want) {
    blocks *b = gif->UserData;
    size_t left = b->file.size - b->at, n = (size_t)want < left ? (size_t)want : left;
    memcpy(out, b->file.data + b->at, n);
    b->at += n;
    return (int)n;
}

static sp_status fail(sp_error *err, int code) {
    switch (code) {
    case D_GIF_ERR_READ_FAILED:
    case D_GIF_ERR_EOF_TOO_SOON:
        return sp_fail_cut(err, "GIF");
    case D_GIF_ERR_NOT_ENOUGH_MEM:
        return sp_fail(err, SP_ERR_MEMORY, "out of memory while decoding a GIF picture");
    default: {
        const char *text = GifErrorString(code);
        return sp_fail(err, SP_ERR_IMAGE_DATA, "GIF picture is broken: %s", text ? text : "unknown error");
    }
    }
}

/* Read up to the first frame's pixels; the index that means "transparent" goes to *clear, which stays 0 otherwise. */
static sp_status read_to_frame(GifFileType *gif, int *clear, sp_error *err) {
    for (;;) {
        GifRecordType kind;
        if (DGifGetRecordType(gif, &kind) == GIF_ERROR)
            return fail(err, gif->Error);
        if (kind == IMAGE_DESC_RECORD_TYPE)
            return DGifGetImageDesc(gif) == GIF_ERROR ? fail(err, gif->Error) : SP_OK;
        if (kind != EXTENSION_RECORD_TYPE)
            return sp_fail(err, SP_ERR_IMAGE_DATA, "GIF file has no picture in it");
        int code;
        GifByteType *data;
        if (DGifGetExtension(gif, &code, &data) == GIF_ERROR)
            return fail(err, gif->Error);
        GraphicsControlBlock control;
        if (data && code == GRAPHICS_EXT_FUNC_CODE && DGifExtensionToGCB(data[0], data + 1, &control) == GIF_OK &&
            control.TransparentColor != NO_TRANSPARENT_COLOR)
            *clear = control.TransparentColor;
        while (data)
            if (DGifGetExtensionNext(gif, &data) == GIF_ERROR)
                return fail(err, gif->Error);
    }
}

/* Without a colour table an index is its own grey; entries that a table lacks are black. */
static void read_palette(const GifFileType *gif, uint8_t palette[256][3]) {
    const ColorMapObject *map = gif->Image.ColorMap ? gif->Image.ColorMap : gif->SColorMap;
    for (int i = 0; i < 256; i++) {
        if (!map)
            memset(palette[i], i, 3);
        else if (i < map->ColorCount)
            memcpy(palette[i], (uint8_t[3]){map->Colors[i].Red, map->Colors[i].Green, map->Colors[i].Blue}, 3);
        else
            memset(palette[i], 0, 3);
    }
}

/* The frame into its place on a canvas of indices. */
static sp_status read_frame(GifFileType *gif, uint8_t *canvas, size_t stride, sp_error *err) {
    static const struct { uint8_t first, step; } passes[4] = {{0, 8}, {4, 8}, {2, 4}, {1, 2}}, straight[1] = {{0, 1}};
    const GifImageDesc *frame = &gif->Image;
    uint8_t *origin = canvas + (size_t)frame->Top * stride + (size_t)frame->Left;
    const size_t n = frame->Interlace ? 4 : 1;
    for (size_t pass = 0; pass < n; pass++) {
        const uint8_t first = frame->Interlace ? passes[pass].first : straight[pass].first;
        const uint8_t step = frame->Interlace ? passes[pass].step : straight[pass].step;
        for (int y = first; y < frame->Height; y += step)
            if (DGifGetLine(gif, origin + (size_t)y * stride, frame->Width) == GIF_ERROR)
                return fail(err, gif->Error);
    }
    return SP_OK;
}

static bool frame_fits(const GifImageDesc *frame, const sp_image_info *info) {
    return frame->Left >= 0 && frame->Top >= 0 && frame->Width > 0 && frame->Height > 0 &&
           (uint32_t)frame->Left + (uint32_t)frame->Width <= info->width &&
           (uint32_t)frame->Top + (uint32_t)frame->Height <= info->height;
}

static sp_status decode_with(GifFileType *gif, const sp_image_info *info, sp_pixels want, sp_row_sink *sink,
                             uint8_t **canvas, sp_error *err) {
    int clear = 0;
    sp_status status = read_to_frame(gif, &clear, err);
    if (status != SP_OK)
        return status;
    if (!frame_fits(&gif->Image, info))
        return sp_fail(err, SP_ERR_IMAGE_DATA, "GIF picture is broken: its first frame lies outside");
    /* the indices, and one row of what is wanted below them */
    const size_t pixels = (size_t)info->width * info->height;
    *canvas = malloc(pixels + (size_t)info->width * sp_pixels_bytes(want));
    if (!*canvas)
        return sp_fail_memory(err, "GIF picture", pixels);
    memset(*canvas, clear, pixels);
    status = read_frame(gif, *canvas, info->width, err);
    if (status != SP_OK)
        return status;
    uint8_t palette[256][3], *row = *canvas + pixels;
    read_palette(gif, palette);
    for (uint32_t y = 0; y < info->height; y++) {
        sp_row_from_palette(want, palette, *canvas + (size_t)y * info->width, info->width, row);
        sink->row(sink, row);
    }
    return SP_OK;
}

static sp_status decode(sp_bytes file, const sp_image_info *info, sp_pixels want, sp_row_sink *sink, sp_error *err) {
    blocks source = {file, 0};
    int code = 0;
    GifFileType *gif = DGifOpen(&source, read_bytes, &code);
    if (!gif)
        return fail(err, code);
    uint8_t *canvas = NULL;
    sp_status status = decode_with(gif, info, want, sink, &canvas, err);
    free(canvas);
    DGifCloseFile(gif, &code);
    return status;
}

const sp_codec sp_codec_gif = {.name = "gif", .title = "GIF", .match = match, .probe = probe, .decode = decode};
