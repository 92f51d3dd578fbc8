/* State of one JPEG decoder, shared by the ways of decoding. */
#ifndef SP_IMAGE_JPEG_H
#define SP_IMAGE_JPEG_H

#include "image/codec.h"

#include <limits.h>
#include <setjmp.h>
#include <stdio.h>

#include <jpeglib.h>

#include <jerror.h>

typedef struct sp_jpeg_job {
    const sp_image_info *info;
    sp_pixels want;
    sp_row_sink *sink;
} sp_jpeg_job;

typedef struct sp_jpeg {
    struct jpeg_decompress_struct cinfo;
    struct jpeg_error_mgr errors;
    struct jpeg_source_mgr source;
    struct jpeg_progress_mgr progress;
    jmp_buf jump;
    enum { SP_JPEG_BROKEN, SP_JPEG_CUT, SP_JPEG_SCANS, SP_JPEG_MEMORY_OUT } why;
    uint8_t *in, *out; /* one row each */
    uint8_t *planes;   /* what jpeg_red.c holds of the components */
} sp_jpeg;

/* Give up with that reason; does not return. */
void sp_jpeg_stop(sp_jpeg *jpeg, int why) __attribute__((noreturn));

/* Whether sp_jpeg_decode_red can do it, after the header has been read. */
bool sp_jpeg_red_possible(const sp_jpeg *jpeg, const sp_jpeg_job *job);

/* Red alone of a YCbCr picture: the other components are not computed. May jump. */
void sp_jpeg_decode_red(sp_jpeg *jpeg, const sp_jpeg_job *job);

/* In place: four bytes of inverted CMYK to red, green, blue and one that is not used. */
void sp_jpeg_cmyk_to_rgb(uint8_t *pixels, uint32_t n);

#endif
