/*
 * PBM, PGM and PPM, plain and raw (P1...P6). Samples are scaled from 0...maxval to 0...255 as Pillow does; grey of more
 * than 8 bits is scaled to 16 and counts by its high byte.
 */
#include "base/error.h"
#include "image/codec.h"
#include "image/pixel.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_TOKEN = 10 }; /* digits */

typedef struct reader {
    sp_bytes file;
    size_t at;
} reader;

typedef struct pnm {
    int kind; /* the digit after P */
    uint32_t width, height, maxval;
} pnm;

static bool is_space(int c) {
    return c == ' ' || (c >= 9 && c <= 13);
}

static bool match(sp_bytes file) {
    return file.size >= 3 && file.data[0] == 'P' && file.data[1] >= '1' && file.data[1] <= '6' &&
           is_space(file.data[2]);
}

static bool is_bitmap(const pnm *p) {
    return p->kind == 1 || p->kind == 4;
}

static bool is_plain(const pnm *p) {
    return p->kind <= 3;
}

static uint32_t samples(const pnm *p) {
    return p->kind == 3 || p->kind == 6 ? 3 : 1;
}

/* The next character outside comments, which run to the end of their line; -1 at the end of the file. */
static int next_char(reader *r) {
    while (r->at < r->file.size) {
        int c = r->file.data[r->at++];
        if (c != '#')
            return c;
        while (r->at < r->file.size && r->file.data[r->at] != '\n' && r->file.data[r->at] != '\r')
            r->at++;
        if (r->at < r->file.size)
            r->at++;
    }
    return -1;
}

/* A number and the one character after it. */
static bool next_number(reader *r, uint32_t *out) {
    uint64_t value = 0;
    int digits = 0, c;
    do
        c = next_char(r);
    while (is_space(c));
    for (; c >= '0' && c <= '9'; c = next_char(r)) {
        value = value * 10 + (uint64_t)(c - '0');
        if (++digits > MAX_TOKEN)
            return false;
    }
    *out = value > UINT32_MAX ? UINT32_MAX : (uint32_t)value;
    return digits > 0 && (c == -1 || is_space(c));
}

static sp_status read_header(reader *r, pnm *p, sp_error *err) {
    *p = (pnm){.kind = r->file.data[1] - '0', .maxval = 1};
    r->at = 2;
    if (!next_number(r, &p->width) || !next_number(r, &p->height) || (!is_bitmap(p) && !next_number(r, &p->maxval)))
        return sp_fail(err, SP_ERR_IMAGE_DATA, "PPM picture is broken: its header does not hold the numbers it should");
    if (p->maxval == 0 || p->maxval > 65535)
        return sp_fail(err, SP_ERR_IMAGE_DATA, "PPM picture has a largest value of %u: it must be 1 to 65535",
                       p->maxval);
    return SP_OK;
}

static sp_status probe(sp_bytes file, sp_image_info *info, sp_error *err) {
    reader r = {file, 0};
    pnm p;
    sp_status status = read_header(&r, &p, err);
    info->width = p.width;
    info->height = p.height;
    return status;
}

/* What each value of a sample becomes. Round to even, as Python's round(). */
static uint8_t *make_scale(const pnm *p) {
    const bool wide_grey = p->maxval > 255 && samples(p) == 1;
    const double out_max = wide_grey ? 65535 : 255;
    uint8_t *scale = malloc(65536);
    for (uint32_t v = 0; scale && v < 65536; v++) {
        double scaled = rint((double)v / p->maxval * out_max);
        uint32_t value = (uint32_t)(scaled < out_max ? scaled : out_max);
        scale[v] = (uint8_t)(wide_grey ? value >> 8 : value);
    }
    return scale;
}

static sp_status read_plain_row(reader *r, const pnm *p, const uint8_t *scale, uint8_t *out, sp_error *err) {
    const size_t n = (size_t)p->width * samples(p);
    for (size_t i = 0; i < n; i++) {
        if (p->kind == 1) { /* digits may touch */
            int c;
            do
                c = next_char(r);
            while (is_space(c));
            if (c == -1)
                return sp_fail_cut(err, "PPM");
            if (c != '0' && c != '1')
                return sp_fail(err, SP_ERR_IMAGE_DATA, "PPM picture is broken: a bit is neither 0 nor 1");
            out[i] = c == '0' ? 255 : 0;
            continue;
        }
        uint32_t value;
        if (!next_number(r, &value))
            return r->at >= r->file.size
                       ? sp_fail_cut(err, "PPM")
                       : sp_fail(err, SP_ERR_IMAGE_DATA, "PPM picture is broken: a value is not a number");
        if (value > p->maxval)
            return sp_fail(err, SP_ERR_IMAGE_DATA, "PPM picture is broken: a value of %u is above its largest, %u",
                           value, p->maxval);
        out[i] = scale[value];
    }
    return SP_OK;
}

static void read_raw_row(reader *r, const pnm *p, const uint8_t *scale, uint8_t *out) {
    const uint8_t *in = r->file.data + r->at;
    const size_t n = (size_t)p->width * samples(p);
    if (p->kind == 4) {
        for (size_t i = 0; i < n; i++)
            out[i] = sp_packed_pixel(in, 1, i) ? 0 : 255;
        r->at += (n + 7) / 8;
    } else if (p->maxval > 255) {
        for (size_t i = 0; i < n; i++)
            out[i] = scale[(uint32_t)in[2 * i] << 8 | in[2 * i + 1]];
        r->at += 2 * n;
    } else {
        for (size_t i = 0; i < n; i++)
            out[i] = scale[in[i]];
        r->at += n;
    }
}

static size_t raw_row_bytes(const pnm *p) {
    if (p->kind == 4)
        return ((size_t)p->width + 7) / 8;
    return (size_t)p->width * samples(p) * (p->maxval > 255 ? 2 : 1);
}

static sp_status decode_rows(reader *r, const pnm *p, const uint8_t *scale, uint8_t *row, sp_pixels want,
                             sp_row_sink *sink, sp_error *err) {
    uint8_t *out = row + (size_t)p->width * 3;
    for (uint32_t y = 0; y < p->height; y++) {
        if (is_plain(p)) {
            sp_status status = read_plain_row(r, p, scale, row, err);
            if (status != SP_OK)
                return status;
        } else {
            read_raw_row(r, p, scale, row);
        }
        if (samples(p) == 1)
            sp_row_from_grey(want, row, 1, p->width, out);
        else
            sp_row_from_rgb(want, row, 3, p->width, out);
        sink->row(sink, out);
    }
    return SP_OK;
}

static sp_status decode(sp_bytes file, const sp_image_info *info, sp_pixels want, sp_row_sink *sink, sp_error *err) {
    (void)info;
    reader r = {file, 0};
    pnm p;
    sp_status status = read_header(&r, &p, err);
    if (status != SP_OK)
        return status;
    if (!is_plain(&p) && (file.size - r.at) / raw_row_bytes(&p) < p.height)
        return sp_fail_cut(err, "PPM");
    uint8_t *scale = make_scale(&p), *row = malloc((size_t)p.width * 6);
    if (!scale || !row)
        status = sp_fail_memory(err, "PPM picture", (size_t)p.width * 6);
    else
        status = decode_rows(&r, &p, scale, row, want, sink, err);
    free(scale);
    free(row);
    return status;
}

const sp_codec sp_codec_pnm = {.name = "ppm", .title = "PPM", .match = match, .probe = probe, .decode = decode};
