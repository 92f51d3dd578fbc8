/*
 * How picture files are read: each format is one sp_codec, told by its first bytes. A codec first
 * reads the header alone, so that sizes are judged before anything is allocated for pixels, and then
 * hands the rows one by one to a sink: rows are stored, or resampled at once, as the caller needs.
 *
 * Bytes come from outside and are not trusted.
 */
#ifndef SP_IMAGE_CODEC_H
#define SP_IMAGE_CODEC_H

#include "superpoint.h"

/* Bytes that libjpeg may hold for a JPEG of so many pixels: four components of 16-bit coefficients, with room for
 * padding to whole blocks, and tables. */
#define SP_JPEG_MEMORY(pixels) (16 * (uint64_t)(pixels) + (32u << 20))

/* A PNG chunk other than the pixels that libspng may hold, and all of them together. */
#define SP_PNG_MAX_CHUNK ((size_t)16 << 20)
#define SP_PNG_MAX_CHUNKS ((size_t)32 << 20)

/* The file, whole in memory. */
typedef struct sp_bytes {
    const uint8_t *data;
    size_t size;
} sp_bytes;

/* What is wanted of each pixel. */
typedef enum sp_pixels {
    SP_PIXELS_RGB,  /* 3 bytes */
    SP_PIXELS_RED,  /* 1 byte */
    SP_PIXELS_LUMA, /* 1 byte, see SP_CHANNEL_LUMA */
} sp_pixels;

static inline uint32_t sp_pixels_bytes(sp_pixels pixels) {
    return pixels == SP_PIXELS_RGB ? 3 : 1;
}

/* Takes the rows of a picture, top to bottom, each once. A sink is made for one width; it cannot fail. */
typedef struct sp_row_sink {
    void (*row)(struct sp_row_sink *sink, const uint8_t *row);
} sp_row_sink;

typedef struct sp_codec {
    char name[8];      /* sp_image_info.format */
    const char *title; /* for messages */
    bool (*match)(sp_bytes file);
    /* Fill in all of `info` but the format. Sides are at least 1. */
    sp_status (*probe)(sp_bytes file, sp_image_info *info, sp_error *err);
    /* Send exactly info->height rows of info->width pixels. `info` is the probe's. */
    sp_status (*decode)(sp_bytes file, const sp_image_info *info, sp_pixels want, sp_row_sink *sink, sp_error *err);
} sp_codec;

extern const sp_codec sp_codec_jpeg, sp_codec_png, sp_codec_pnm, sp_codec_bmp, sp_codec_webp, sp_codec_gif;

/* Tell the format, read the header and hold it against the limits. */
sp_status sp_codec_probe(sp_bytes file, uint64_t max_pixels, const sp_codec **codec, sp_image_info *info,
                         sp_error *err);

/* "JPEG is cut short" and the like. */
sp_status sp_fail_cut(sp_error *err, const char *title);

/* The channel that params ask for. */
sp_pixels sp_pixels_of(sp_channel channel);

#endif
