/*
 * JPEG by libjpeg-turbo with its defaults: accurate integer IDCT and fancy upsampling, which is what
 * Pillow uses. libjpeg reports errors by a call that must not return: it jumps back to run().
 */
#include "image/jpeg.h"

#include "base/error.h"
#include "image/jpeg_header.h"
#include "image/pixel.h"

#include <stdlib.h>
#include <string.h>

static void on_error(j_common_ptr cinfo) {
    sp_jpeg *jpeg = (sp_jpeg *)cinfo->client_data;
    longjmp(jpeg->jump, 1);
}

static void on_message(j_common_ptr cinfo, int level) {
    (void)cinfo, (void)level; /* warnings of broken pixels are accepted, as by Pillow */
}

void sp_jpeg_stop(sp_jpeg *jpeg, int why) {
    jpeg->why = why;
    longjmp(jpeg->jump, 1);
}

static void on_progress(j_common_ptr cinfo) {
    sp_jpeg *jpeg = (sp_jpeg *)cinfo->client_data;
    if (jpeg->cinfo.input_scan_number > SP_MAX_JPEG_SCANS)
        sp_jpeg_stop(jpeg, SP_JPEG_SCANS);
}

static void source_nothing(j_decompress_ptr cinfo) {
    (void)cinfo;
}

/* The whole file lay in the buffer: whoever wants more has met its end. */
static boolean source_fill(j_decompress_ptr cinfo) {
    sp_jpeg_stop((sp_jpeg *)cinfo->client_data, SP_JPEG_CUT);
}

static void source_skip(j_decompress_ptr cinfo, long bytes) {
    if (bytes <= 0)
        return;
    if ((size_t)bytes > cinfo->src->bytes_in_buffer)
        source_fill(cinfo);
    cinfo->src->next_input_byte += bytes;
    cinfo->src->bytes_in_buffer -= (size_t)bytes;
}

static void open_decoder(sp_jpeg *jpeg, sp_bytes file, const sp_image_info *info) {
    j_decompress_ptr cinfo = &jpeg->cinfo;
    jpeg_create_decompress(cinfo);
    jpeg->source = (struct jpeg_source_mgr){
        .next_input_byte = file.data,
        .bytes_in_buffer = file.size,
        .init_source = source_nothing,
        .fill_input_buffer = source_fill,
        .skip_input_data = source_skip,
        .resync_to_restart = jpeg_resync_to_restart,
        .term_source = source_nothing,
    };
    cinfo->src = &jpeg->source;
    jpeg->progress.progress_monitor = on_progress;
    cinfo->progress = &jpeg->progress;
    uint64_t memory = SP_JPEG_MEMORY((uint64_t)info->width * info->height);
    cinfo->mem->max_memory_to_use = memory < LONG_MAX ? (long)memory : LONG_MAX;
}

/* Rows in libjpeg's own RGB, grey or CMYK. */
static void decode_rows(sp_jpeg *jpeg, const sp_jpeg_job *job) {
    j_decompress_ptr cinfo = &jpeg->cinfo;
    cinfo->out_color_space = cinfo->num_components == 1   ? JCS_GRAYSCALE
                             : cinfo->num_components == 3 ? JCS_RGB
                                                          : JCS_CMYK;
    jpeg_start_decompress(cinfo);
    const uint32_t width = job->info->width, channels = (uint32_t)cinfo->output_components;
    jpeg->in = malloc((size_t)width * channels);
    jpeg->out = malloc((size_t)width * 3);
    if (!jpeg->in || !jpeg->out)
        sp_jpeg_stop(jpeg, SP_JPEG_MEMORY_OUT);
    while (cinfo->output_scanline < cinfo->output_height) {
        JSAMPROW row = jpeg->in;
        jpeg_read_scanlines(cinfo, &row, 1);
        if (channels == 4)
            sp_jpeg_cmyk_to_rgb(jpeg->in, width);
        if (channels == 1)
            sp_row_from_grey(job->want, jpeg->in, 1, width, jpeg->out);
        else
            sp_row_from_rgb(job->want, jpeg->in, channels, width, jpeg->out);
        job->sink->row(job->sink, jpeg->out);
    }
}

/* a * b / 255, rounded, as Pillow does. */
static uint32_t mul_div_255(uint32_t a, uint32_t b) {
    uint32_t t = a * b + 128;
    return ((t >> 8) + t) >> 8;
}

void sp_jpeg_cmyk_to_rgb(uint8_t *pixels, uint32_t n) {
    for (uint8_t *p = pixels; n > 0; n--, p += 4) {
        const uint32_t key = p[3]; /* stored inverted: white is 255 */
        for (int c = 0; c < 3; c++)
            p[c] = (uint8_t)(key - mul_div_255(255u - p[c], key));
    }
}

static sp_status explain(sp_jpeg *jpeg, sp_error *err) {
    char text[JMSG_LENGTH_MAX];
    switch (jpeg->why) {
    case SP_JPEG_CUT:
        return sp_fail_cut(err, "JPEG");
    case SP_JPEG_SCANS:
        return sp_fail(err, SP_ERR_LIMIT, "JPEG picture has more than %d scans", SP_MAX_JPEG_SCANS);
    case SP_JPEG_MEMORY_OUT:
        return sp_fail(err, SP_ERR_MEMORY, "out of memory while decoding a JPEG picture");
    case SP_JPEG_BROKEN:
        break;
    }
    if (jpeg->errors.msg_code == JERR_OUT_OF_MEMORY)
        return sp_fail(err, SP_ERR_MEMORY, "out of memory while decoding a JPEG picture");
    if (jpeg->errors.msg_code == JERR_NO_BACKING_STORE)
        return sp_fail(err, SP_ERR_LIMIT, "JPEG picture needs more memory to decode than its size allows");
    jpeg->errors.format_message((j_common_ptr)&jpeg->cinfo, text);
    return sp_fail(err, SP_ERR_IMAGE_DATA, "JPEG picture is broken: %s", text);
}

/* The one function that jumps come back to: it has no variables that a jump could spoil. */
static sp_status run(sp_jpeg *jpeg, sp_bytes file, const sp_jpeg_job *job, sp_error *err) {
    jpeg->cinfo.err = jpeg_std_error(&jpeg->errors);
    jpeg->errors.error_exit = on_error;
    jpeg->errors.emit_message = on_message;
    jpeg->cinfo.client_data = jpeg;
    if (setjmp(jpeg->jump))
        return explain(jpeg, err);
    open_decoder(jpeg, file, job->info);
    jpeg_read_header(&jpeg->cinfo, TRUE);
    if (jpeg->cinfo.image_width != job->info->width || jpeg->cinfo.image_height != job->info->height)
        return sp_fail(err, SP_ERR_IMAGE_DATA, "JPEG picture has two frame headers that disagree");
    if (sp_jpeg_red_possible(jpeg, job))
        sp_jpeg_decode_red(jpeg, job);
    else
        decode_rows(jpeg, job);
    return SP_OK; /* not finished: what follows the pixels does not matter, not even that it is missing */
}

static sp_status decode(sp_bytes file, const sp_image_info *info, sp_pixels want, sp_row_sink *sink, sp_error *err) {
    sp_jpeg *jpeg = calloc(1, sizeof *jpeg);
    if (!jpeg)
        return sp_fail_memory(err, "JPEG decoder", sizeof *jpeg);
    const sp_jpeg_job job = {.info = info, .want = want, .sink = sink};
    sp_status status = run(jpeg, file, &job, err);
    jpeg_destroy_decompress(&jpeg->cinfo);
    free(jpeg->in);
    free(jpeg->out);
    free(jpeg->planes);
    free(jpeg);
    return status;
}

const sp_codec sp_codec_jpeg = {
    .name = "jpeg", .title = "JPEG", .match = sp_jpeg_match, .probe = sp_jpeg_probe, .decode = decode};
