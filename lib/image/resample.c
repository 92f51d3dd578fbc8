#include "image/resample.h"

#include "base/error.h"
#include "base/size.h"
#include "image/image.h"
#include "image/kernels.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The weights of one output before they are rounded; they add up to 1. */
static void weigh(const sp_filter *f, uint32_t i, double centre, double support, double *w) {
    const double reach = 1.0 / support;
    double sum = 0;
    for (uint32_t t = 0; t < f->count[i]; t++) {
        double distance = fabs(((double)f->first[i] + t - centre + 0.5) * reach);
        w[t] = distance < 1.0 ? 1.0 - distance : 0.0;
        sum += w[t];
    }
    for (uint32_t t = 0; sum != 0 && t < f->count[i]; t++)
        w[t] /= sum;
}

static void fill_filter(sp_filter *f, double *w) {
    const double scale = (double)f->in / f->out, support = scale < 1.0 ? 1.0 : scale;
    for (uint32_t i = 0; i < f->out; i++) {
        const double centre = (i + 0.5) * scale;
        const int64_t first = (int64_t)(centre - support + 0.5), last = (int64_t)(centre + support + 0.5);
        f->first[i] = first < 0 ? 0 : (uint32_t)first;
        f->count[i] = (last > f->in ? f->in : (uint32_t)last) - f->first[i];
        weigh(f, i, centre, support, w);
        for (uint32_t t = 0; t < f->count[i]; t++)
            f->weights[(size_t)i * f->taps + t] = (int32_t)(0.5 + w[t] * (1 << SP_WEIGHT_BITS));
    }
}

sp_status sp_filter_make(uint32_t in, uint32_t out, sp_filter *f, sp_error *err) {
    const double scale = (double)in / out, support = scale < 1.0 ? 1.0 : scale;
    *f = (sp_filter){.in = in, .out = out, .taps = (uint32_t)ceil(support) * 2 + 1};
    size_t weights;
    if (in == 0 || out == 0 || !sp_size_mul(out, f->taps, &weights) || weights > SIZE_MAX / sizeof *f->weights)
        return sp_fail(err, SP_ERR_ARGUMENT, "a row of %u pixels cannot be resampled to %u", in, out);
    f->first = malloc(out * sizeof *f->first);
    f->count = malloc(out * sizeof *f->count);
    f->weights = calloc(weights, sizeof *f->weights);
    double *w = malloc(f->taps * sizeof *w);
    sp_status status = SP_OK;
    if (f->first && f->count && f->weights && w)
        fill_filter(f, w);
    else
        status = sp_fail_memory(err, "resampling weights", weights * sizeof *f->weights);
    free(w);
    if (status != SP_OK)
        sp_filter_free(f);
    return status;
}

void sp_filter_free(sp_filter *f) {
    free(f->first);
    free(f->count);
    free(f->weights);
    free(f->packed);
    *f = (sp_filter){0};
}

/* Three channels side by side. */
static void resample_row_rgb(const sp_filter *f, const uint8_t *in, uint8_t *out) {
    for (uint32_t i = 0; i < f->out; i++, out += 3) {
        const int32_t *w = f->weights + (size_t)i * f->taps;
        const uint8_t *from = in + (size_t)f->first[i] * 3;
        int32_t sum[3] = {1 << (SP_WEIGHT_BITS - 1), 1 << (SP_WEIGHT_BITS - 1), 1 << (SP_WEIGHT_BITS - 1)};
        for (size_t t = 0; t < f->count[i]; t++)
            for (int c = 0; c < 3; c++)
                sum[c] += from[3 * t + (size_t)c] * w[t];
        for (int c = 0; c < 3; c++) /* weights may add up to a little more than 1 */
            out[c] = (uint8_t)(sum[c] >> SP_WEIGHT_BITS > 255 ? 255 : sum[c] >> SP_WEIGHT_BITS);
    }
}

static void along_row(const sp_resampler *r, const uint8_t *in, uint8_t *out) {
    if (r->x.in == r->x.out) /* Pillow leaves a pass out that would not change the size */
        memcpy(out, in, (size_t)r->x.out * r->channels);
    else if (r->channels == 1)
        r->x.row(&r->x, in, out);
    else
        resample_row_rgb(&r->x, in, out);
}

static void send_row(sp_resampler *r) {
    const uint32_t first = r->y.first[r->sent], count = r->y.count[r->sent];
    const int32_t *weights = r->y.weights + (size_t)r->sent * r->y.taps;
    uint8_t *out = r->out + r->sent * r->out_stride;
    for (uint32_t t = 0; t < count; t++)
        r->window[t] = r->ring + (size_t)((first + t) % r->held) * r->held_bytes;
    r->kernels->resample_columns(r->window, weights, count, r->held_bytes, r->columns_first ? r->line : out);
    if (r->columns_first)
        along_row(r, r->line, out);
    r->sent++;
}

static void take_row(sp_row_sink *base, const uint8_t *row) {
    sp_resampler *r = (sp_resampler *)base;
    if (r->y.in == r->y.out) {
        along_row(r, row, r->out + r->sent++ * r->out_stride);
        return;
    }
    uint8_t *held = r->ring + (size_t)(r->received % r->held) * r->held_bytes;
    if (r->columns_first)
        memcpy(held, row, r->held_bytes);
    else
        along_row(r, row, held);
    r->received++;
    while (r->sent < r->y.out && r->y.first[r->sent] + r->y.count[r->sent] <= r->received)
        send_row(r);
}

/* Pillow 13's rule. */
static bool columns_come_first(const sp_filter *x, const sp_filter *y) {
    return y->out < y->in && 2 * ((int64_t)x->in - x->out) < (int64_t)y->in - y->out;
}

static sp_status allocate(sp_resampler *r, sp_error *err) {
    r->columns_first = columns_come_first(&r->x, &r->y);
    r->held = r->y.taps < r->y.in ? r->y.taps : r->y.in;
    r->held_bytes = (size_t)(r->columns_first ? r->x.in : r->x.out) * r->channels;
    size_t bytes;
    const bool fits = sp_size_mul(r->held_bytes, r->held, &bytes);
    r->ring = fits ? malloc(bytes) : NULL;
    r->window = malloc(r->held * sizeof *r->window);
    r->line = malloc(r->held_bytes);
    if (!r->ring || !r->window || !r->line)
        return sp_fail_memory(err, "resampling", fits ? bytes : SIZE_MAX);
    return SP_OK;
}

sp_status sp_resampler_open(sp_resampler *r, uint32_t in_width, uint32_t in_height, uint32_t channels,
                            uint32_t out_width, uint32_t out_height, uint8_t *out, size_t out_stride, sp_error *err) {
    *r = (sp_resampler){.base = {take_row}, .channels = channels, .out = out, .out_stride = out_stride};
    r->kernels = sp_image_kernels_here();
    sp_status status = sp_filter_make(in_width, out_width, &r->x, err);
    if (status == SP_OK)
        status = sp_filter_make(in_height, out_height, &r->y, err);
    if (status == SP_OK && channels == 1 && !r->kernels->choose_row(&r->x))
        status = sp_fail(err, SP_ERR_MEMORY, "out of memory: resampling weights");
    if (status == SP_OK)
        status = allocate(r, err);
    if (status != SP_OK)
        sp_resampler_close(r);
    return status;
}

void sp_resampler_close(sp_resampler *r) {
    sp_filter_free(&r->x);
    sp_filter_free(&r->y);
    free(r->ring);
    free(r->window);
    free(r->line);
    *r = (sp_resampler){0};
}

sp_status sp_image_check(const sp_image *image, const char *what, sp_error *err) {
    if (!image || !image->pixels || image->width == 0 || image->height == 0 ||
        (image->channels != 1 && image->channels != 3) || image->stride < (size_t)image->width * image->channels)
        return sp_fail(err, SP_ERR_ARGUMENT, "%s: not a picture of 1 or 3 channels", what);
    if (image->width > SP_MAX_IMAGE_SIDE || image->height > SP_MAX_IMAGE_SIDE)
        return sp_fail(err, SP_ERR_IMAGE_TOO_LARGE, "%s: picture of %u x %u: no side may exceed %d pixels", what,
                       image->width, image->height, SP_MAX_IMAGE_SIDE);
    return SP_OK;
}

sp_status sp_image_resize(const sp_image *image, uint32_t width, uint32_t height, sp_image *out, sp_error *err) {
    if (!out)
        return sp_fail(err, SP_ERR_ARGUMENT, "sp_image_resize: out is NULL");
    *out = (sp_image){0};
    sp_status status = sp_image_check(image, "sp_image_resize", err);
    if (status != SP_OK)
        return status;
    if (width == 0 || height == 0 || width > SP_MAX_IMAGE_SIDE || height > SP_MAX_IMAGE_SIDE)
        return sp_fail(err, SP_ERR_ARGUMENT, "sp_image_resize: cannot resize to %u x %u: sides are 1 to %d", width,
                       height, SP_MAX_IMAGE_SIDE);
    status = sp_image_alloc(width, height, image->channels, out, err);
    if (status != SP_OK)
        return status;
    sp_resampler r;
    status = sp_resampler_open(&r, image->width, image->height, image->channels, width, height, out->pixels,
                               out->stride, err);
    if (status != SP_OK) {
        sp_image_free(out);
        return status;
    }
    for (size_t y = 0; y < image->height; y++)
        r.base.row(&r.base, image->pixels + y * image->stride);
    sp_resampler_close(&r);
    return sp_succeed(err);
}
