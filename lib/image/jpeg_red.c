/*
 * Red alone, R = Y + 1.402 (Cr - 128): libjpeg gives the samples of Y and Cr before upsampling and colour conversion,
 * and leaves Cb alone; this file does for red what libjpeg would do for all three, with the same rounding. The default
 * way of a picture, so it pays.
 */
#include "base/size.h"
#include "image/jpeg.h"
#include "image/kernels.h"

#include <stdlib.h>

enum { Y = 0, CB = 1, CR = 2, MOST_ROWS = MAX_SAMP_FACTOR * DCTSIZE };

typedef struct red_decoder {
    j_decompress_ptr cinfo;
    const sp_image_kernels *kernels;
    uint32_t width, height;
    uint32_t cr_width, cr_height; /* real samples of Cr */
    uint32_t scale_x, scale_y;    /* pixels to a sample of Cr */
    bool smooth_x, smooth_y;      /* upsampled by the triangle filter */
    size_t y_stride, cr_stride;
    uint32_t y_rows, cr_rows; /* rows of a row of MCUs */
    uint8_t *y[2], *cr[2];    /* this row of MCUs and the one before it */
    uint8_t *line;            /* Cr of one row of pixels */
} red_decoder;

bool sp_jpeg_red_possible(const sp_jpeg *jpeg, const sp_jpeg_job *job) {
    const struct jpeg_decompress_struct *c = &jpeg->cinfo;
    if (job->want != SP_PIXELS_RED || c->num_components != 3 || c->jpeg_color_space != JCS_YCbCr)
        return false;
    const jpeg_component_info *y = &c->comp_info[Y], *cr = &c->comp_info[CR];
    return y->h_samp_factor == c->max_h_samp_factor && y->v_samp_factor == c->max_v_samp_factor &&
           c->max_h_samp_factor % cr->h_samp_factor == 0 && c->max_v_samp_factor % cr->v_samp_factor == 0 &&
           c->max_h_samp_factor % c->comp_info[CB].h_samp_factor == 0 && /* else libjpeg says what is wrong */
           c->max_v_samp_factor % c->comp_info[CB].v_samp_factor == 0;
}

static size_t plane_stride(const jpeg_component_info *component) {
    return sp_round_up(component->width_in_blocks, MAX_SAMP_FACTOR) * DCTSIZE;
}

/* Which filter libjpeg takes: triangles for 2:1 both ways, 2:1 across (of more than two samples) and 2:1 down; else
 * samples are repeated. */
static void choose_filter(red_decoder *d) {
    const bool wide = d->cr_width > 2;
    d->smooth_x = d->scale_x == 2 && d->scale_y <= 2 && wide;
    d->smooth_y = d->scale_y == 2 && (d->scale_x == 1 || (d->scale_x == 2 && wide));
}

static void open_planes(sp_jpeg *jpeg, red_decoder *d) {
    const jpeg_component_info *y = &d->cinfo->comp_info[Y], *cr = &d->cinfo->comp_info[CR];
    d->y_stride = plane_stride(y);
    d->cr_stride = plane_stride(cr);
    d->y_rows = (uint32_t)y->v_samp_factor * DCTSIZE;
    d->cr_rows = (uint32_t)cr->v_samp_factor * DCTSIZE;
    const size_t y_bytes = d->y_stride * d->y_rows, cr_bytes = d->cr_stride * d->cr_rows;
    const size_t line = d->cr_stride * d->scale_x;
    jpeg->planes = malloc(2 * y_bytes + 2 * cr_bytes + line);
    jpeg->out = malloc(d->width);
    if (!jpeg->planes || !jpeg->out)
        sp_jpeg_stop(jpeg, SP_JPEG_MEMORY_OUT);
    d->y[0] = jpeg->planes;
    d->y[1] = d->y[0] + y_bytes;
    d->cr[0] = d->y[1] + y_bytes;
    d->cr[1] = d->cr[0] + cr_bytes;
    d->line = d->cr[1] + cr_bytes;
}

static void read_mcu_row(const red_decoder *d, uint32_t which) {
    JSAMPROW y[MOST_ROWS], cr[MOST_ROWS], none[MOST_ROWS];
    JSAMPARRAY planes[3] = {[Y] = y, [CB] = none, [CR] = cr};
    for (uint32_t i = 0; i < d->y_rows; i++)
        y[i] = d->y[which & 1] + i * d->y_stride;
    for (uint32_t i = 0; i < d->cr_rows; i++)
        cr[i] = d->cr[which & 1] + i * d->cr_stride;
    for (uint32_t i = 0; i < MOST_ROWS; i++)
        none[i] = d->line; /* not written: Cb is not needed */
    jpeg_read_raw_data(d->cinfo, planes, d->y_rows);
}

static const uint8_t *cr_row(const red_decoder *d, uint32_t row) {
    return d->cr[row / d->cr_rows & 1] + row % d->cr_rows * d->cr_stride;
}

/* Down only: no kernel, since few cameras turn a picture after sampling it. */
static void upsample_h1v2(const uint8_t *near, const uint8_t *far, size_t n, uint32_t bias, uint8_t *out) {
    for (size_t i = 0; i < n; i++)
        out[i] = (uint8_t)((3u * near[i] + far[i] + bias) >> 2);
}

static void repeat(const uint8_t *in, uint32_t width, uint32_t times, uint8_t *out) {
    for (uint32_t x = 0, i = 0; x < width; i++)
        for (uint32_t t = 0; t < times && x < width; t++)
            out[x++] = in[i];
}

/* Cr of row `y`. Outside the picture its first and last rows go on. */
static const uint8_t *cr_line(const red_decoder *d, uint32_t y) {
    const uint32_t row = y / d->scale_y;
    const uint8_t *near = cr_row(d, row), *far = near;
    const bool upper = y % 2 == 0;
    if (d->smooth_y && upper && row > 0)
        far = cr_row(d, row - 1);
    else if (d->smooth_y && !upper && row + 1 < d->cr_height)
        far = cr_row(d, row + 1);
    if (d->smooth_x && d->smooth_y)
        d->kernels->upsample_h2v2(near, far, d->cr_width, d->line);
    else if (d->smooth_x)
        d->kernels->upsample_h2v1(near, d->cr_width, d->line);
    else if (d->smooth_y)
        upsample_h1v2(near, far, d->cr_width, upper ? 1 : 2, d->line);
    else if (d->scale_x > 1)
        repeat(near, d->width, d->scale_x, d->line);
    else
        return near;
    return d->line;
}

/* The last row of Cr that row `y` needs. */
static uint32_t last_cr_row(const red_decoder *d, uint32_t y) {
    const uint32_t row = y / d->scale_y;
    return d->smooth_y && y % 2 == 1 && row + 1 < d->cr_height ? row + 1 : row;
}

void sp_jpeg_decode_red(sp_jpeg *jpeg, const sp_jpeg_job *job) {
    j_decompress_ptr cinfo = &jpeg->cinfo;
    cinfo->raw_data_out = TRUE;
    cinfo->comp_info[CB].component_needed = FALSE;
    jpeg_start_decompress(cinfo);
    const jpeg_component_info *cr = &cinfo->comp_info[CR];
    red_decoder d = {
        .cinfo = cinfo,
        .kernels = sp_image_kernels_here(),
        .width = cinfo->output_width,
        .height = cinfo->output_height,
        .cr_width = cr->downsampled_width,
        .cr_height = cr->downsampled_height,
        .scale_x = (uint32_t)(cinfo->max_h_samp_factor / cr->h_samp_factor),
        .scale_y = (uint32_t)(cinfo->max_v_samp_factor / cr->v_samp_factor),
    };
    choose_filter(&d);
    open_planes(jpeg, &d);
    uint32_t y = 0;
    for (uint32_t k = 0; y < d.height; k++) {
        read_mcu_row(&d, k);
        const uint32_t y_end = (k + 1) * d.y_rows < d.height ? (k + 1) * d.y_rows : d.height;
        const uint32_t cr_end = (k + 1) * d.cr_rows;
        for (; y < y_end && last_cr_row(&d, y) < cr_end; y++) {
            const uint8_t *row = d.y[y / d.y_rows & 1] + y % d.y_rows * d.y_stride;
            d.kernels->red(row, cr_line(&d, y), d.width, jpeg->out);
            job->sink->row(job->sink, jpeg->out);
        }
    }
}
