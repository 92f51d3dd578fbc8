/* BMP: headers of every usual size, palettes, 15/16/24/32 bits, RLE. Which layouts are read, and how, is Pillow's. */
#include "base/error.h"
#include "image/codec.h"
#include "image/pixel.h"

#include <stdlib.h>
#include <string.h>

enum { FILE_HEADER = 14, CORE_HEADER = 12, INFO_HEADER = 40, V2_HEADER = 52 };
enum { RAW = 0, RLE8 = 1, RLE4 = 2, BITFIELDS = 3 };

typedef struct bmp {
    uint32_t width, height;
    bool top_down;
    uint32_t bits, compression;
    uint32_t mask[3]; /* red, green, blue */
    size_t offset;    /* of the pixels */
    uint8_t palette[256][3];
} bmp;

static uint32_t read16(const uint8_t *p) {
    return (uint32_t)p[0] | (uint32_t)p[1] << 8;
}

static uint32_t read32(const uint8_t *p) {
    return read16(p) | read16(p + 2) << 16;
}

static bool match(sp_bytes file) {
    return file.size >= 2 && file.data[0] == 'B' && file.data[1] == 'M';
}

static bool known_header(uint32_t size) {
    return size == CORE_HEADER || size == INFO_HEADER || size == V2_HEADER || size == 56 || size == 64 || size == 108 ||
           size == 124;
}

static sp_status fail_cut_header(sp_error *err) {
    return sp_fail(err, SP_ERR_IMAGE_DATA, "BMP picture is cut short: the file ends in its header");
}

/*
 * A palette of `colours` entries at `at`. When every entry is the grey of its own number, it stands for all 256 greys;
 * otherwise entries that are not given are black.
 */
static sp_status read_palette(sp_bytes file, size_t at, size_t entry, uint32_t colours, bmp *b, sp_error *err) {
    if (colours == 0 || colours > 65536)
        return sp_fail(err, SP_ERR_IMAGE_DATA, "BMP picture has a palette of %u colours", colours);
    if (at > file.size || (file.size - at) / entry < colours)
        return fail_cut_header(err);
    bool grey = true;
    for (uint32_t i = 0; i < colours && i < 256; i++) {
        const uint8_t *p = file.data + at + i * entry;
        memcpy(b->palette[i], (uint8_t[3]){p[2], p[1], p[0]}, 3);
        const uint32_t own = colours == 2 ? 255 * i : i;
        grey = grey && p[0] == own && p[1] == own && p[2] == own;
    }
    for (uint32_t i = colours; grey && colours > 2 && i < 256; i++)
        memset(b->palette[i], (int)i, 3);
    return SP_OK;
}

/* Only the layouts with whole bytes, 5-5-5 and 5-6-5 are read. */
static bool known_masks(bmp *b) {
    const uint32_t *m = b->mask;
    if (b->bits == 16)
        return (m[0] == 0xF800 && m[1] == 0x7E0 && m[2] == 0x1F) || (m[0] == 0x7C00 && m[1] == 0x3E0 && m[2] == 0x1F);
    if (b->bits == 24)
        return m[0] == 0xFF0000 && m[1] == 0xFF00 && m[2] == 0xFF;
    if (b->bits != 32)
        return false;
    if (m[0] == 0 && m[1] == 0 && m[2] == 0)
        memcpy(b->mask, (uint32_t[3]){0xFF0000, 0xFF00, 0xFF}, sizeof b->mask);
    for (int c = 0; c < 3; c++)
        if (m[c] != 0xFF && m[c] != 0xFF00 && m[c] != 0xFF0000 && m[c] != 0xFF000000)
            return false;
    return true;
}

static sp_status check_kind(bmp *b, sp_error *err) {
    const bool indexed = b->bits == 1 || b->bits == 4 || b->bits == 8;
    if (!indexed && b->bits != 16 && b->bits != 24 && b->bits != 32)
        return sp_fail(err, SP_ERR_IMAGE_FORMAT, "BMP picture of %u bits a pixel is not read here", b->bits);
    const bool rle = (b->compression == RLE8 && b->bits == 8) || (b->compression == RLE4 && b->bits == 4);
    if (b->compression != RAW && b->compression != BITFIELDS && !rle)
        return sp_fail(err, SP_ERR_IMAGE_FORMAT, "BMP picture of %u bits with compression %u is not read here", b->bits,
                       b->compression);
    if (b->compression == BITFIELDS && !known_masks(b))
        return sp_fail(err, SP_ERR_IMAGE_FORMAT, "BMP picture with colour masks %08x %08x %08x is not read here",
                       b->mask[0], b->mask[1], b->mask[2]);
    return SP_OK;
}

static sp_status read_header(sp_bytes file, bmp *b, sp_error *err) {
    *b = (bmp){.mask = {0x7C00, 0x3E0, 0x1F}};
    if (file.size < FILE_HEADER + 4)
        return fail_cut_header(err);
    const uint32_t size = read32(file.data + FILE_HEADER);
    if (!known_header(size))
        return sp_fail(err, SP_ERR_IMAGE_FORMAT, "BMP header of %u bytes is not read here", size);
    if (file.size - FILE_HEADER < size)
        return fail_cut_header(err);
    const uint8_t *h = file.data + FILE_HEADER;
    size_t at = FILE_HEADER + (size_t)size, entry = 4;
    uint32_t colours = 0;
    if (size == CORE_HEADER) {
        b->width = read16(h + 4);
        b->height = read16(h + 6);
        b->bits = read16(h + 10);
        entry = 3;
    } else {
        b->top_down = h[11] == 0xFF; /* a negative height */
        b->width = read32(h + 4);
        b->height = b->top_down ? 0u - read32(h + 8) : read32(h + 8);
        b->bits = read16(h + 14);
        b->compression = read32(h + 16);
        colours = read32(h + 32);
    }
    if (b->compression == BITFIELDS) { /* in the header, or behind the short one */
        if (size < V2_HEADER && file.size - at < 12)
            return fail_cut_header(err);
        const uint8_t *masks = size >= V2_HEADER ? h + 40 : file.data + at;
        for (int c = 0; c < 3; c++)
            b->mask[c] = read32(masks + 4 * c);
        at += size < V2_HEADER ? 12 : 0;
    }
    sp_status status = check_kind(b, err);
    if (status != SP_OK)
        return status;
    b->offset = read32(file.data + 10);
    if (b->bits <= 8) {
        if (colours == 0)
            colours = 1u << b->bits;
        status = read_palette(file, at, entry, colours, b, err);
        if (status != SP_OK)
            return status;
        if (b->offset == FILE_HEADER + (size_t)size) /* some writers forget the palette */
            b->offset += entry * colours;
        at += entry * colours;
    }
    if (b->offset == 0)
        b->offset = at;
    return SP_OK;
}

static sp_status probe(sp_bytes file, sp_image_info *info, sp_error *err) {
    bmp b;
    sp_status status = read_header(file, &b, err);
    info->width = b.width;
    info->height = b.height;
    return status;
}

/* Byte of a pixel in which the channel of `mask` lies. */
static size_t mask_byte(uint32_t mask) {
    return mask == 0xFF ? 0 : mask == 0xFF00 ? 1 : mask == 0xFF0000 ? 2 : 3;
}

static void rgb_from_16(const bmp *b, const uint8_t *in, uint8_t *out) {
    const bool six = b->mask[1] == 0x7E0;
    for (size_t i = 0; i < b->width; i++) {
        const uint32_t v = read16(in + 2 * i);
        out[3 * i] = (uint8_t)((v >> (six ? 11 : 10) & 31) * 255 / 31);
        out[3 * i + 1] = (uint8_t)(six ? (v >> 5 & 63) * 255 / 63 : (v >> 5 & 31) * 255 / 31);
        out[3 * i + 2] = (uint8_t)((v & 31) * 255 / 31);
    }
}

/* One row of the file to RGB or indices in `out`. */
static void unpack_row(const bmp *b, const uint8_t *in, uint8_t *out) {
    if (b->bits <= 8) {
        for (size_t i = 0; i < b->width; i++)
            out[i] = sp_packed_pixel(in, b->bits, i);
    } else if (b->bits == 16) {
        rgb_from_16(b, in, out);
    } else {
        const size_t step = b->bits / 8;
        const bool masked = b->compression == BITFIELDS && b->bits == 32;
        const size_t red = masked ? mask_byte(b->mask[0]) : 2, green = masked ? mask_byte(b->mask[1]) : 1,
                     blue = masked ? mask_byte(b->mask[2]) : 0;
        for (size_t i = 0; i < b->width; i++, in += step, out += 3)
            out[0] = in[red], out[1] = in[green], out[2] = in[blue];
    }
}

/* Run lengths to indices, in the file's order of rows; false when they end before the picture does. */
static bool unpack_rle(const bmp *b, sp_bytes file, uint8_t *out) {
    const bool four = b->compression == RLE4;
    const size_t total = (size_t)b->width * b->height;
    size_t at = b->offset, done = 0, x = 0;
    while (done < total) {
        if (at > file.size || file.size - at < 2)
            return false;
        size_t count = file.data[at];
        const uint8_t value = file.data[at + 1];
        at += 2;
        if (count > 0) { /* a run, which ends with its row */
            if (x + count > b->width)
                count = x < b->width ? b->width - x : 0;
            for (size_t i = 0; i < count && done < total; i++)
                out[done++] = four ? (i & 1 ? value & 15 : value >> 4) : value;
            x += count;
        } else if (value == 0) { /* end of the row */
            while (done % b->width != 0)
                out[done++] = 0;
            x = 0;
        } else if (value == 1) { /* end of the picture */
            return false;
        } else if (value == 2) { /* move right and up */
            if (file.size - at < 2)
                return false;
            size_t skip = file.data[at] + (size_t)file.data[at + 1] * b->width;
            at += 2;
            for (; skip > 0 && done < total; skip--)
                out[done++] = 0;
            x = done % b->width;
        } else { /* as they are, padded to 16 bits */
            count = total - done < value ? total - done : value;
            const size_t bytes = four ? (count + 1) / 2 : count;
            if (file.size - at < bytes)
                return false;
            for (size_t i = 0; i < count; i++)
                out[done++] = four ? sp_packed_pixel(file.data + at, 4, i) : file.data[at + i];
            at += bytes;
            at += at & 1;
            x += value;
        }
    }
    return true;
}

static void send_row(bmp *b, const uint8_t *unpacked, sp_pixels want, sp_row_sink *sink, uint8_t *row) {
    if (b->bits <= 8)
        sp_row_from_palette(want, b->palette, unpacked, b->width, row);
    else
        sp_row_from_rgb(want, unpacked, 3, b->width, row);
    sink->row(sink, row);
}

static sp_status decode(sp_bytes file, const sp_image_info *info, sp_pixels want, sp_row_sink *sink, sp_error *err) {
    (void)info;
    bmp b;
    sp_status status = read_header(file, &b, err);
    if (status != SP_OK)
        return status;
    const bool rle = b.compression == RLE8 || b.compression == RLE4;
    const size_t stride = (((size_t)b.width * b.bits + 31) >> 3) & ~(size_t)3;
    if (!rle && (b.offset > file.size || (file.size - b.offset) / stride < b.height))
        return sp_fail_cut(err, "BMP");
    /* indices of a run-length coded picture, or one row; and below it one row of what is wanted */
    const size_t unpacked = rle ? (size_t)b.width * b.height : (size_t)b.width * 3;
    uint8_t *memory = malloc(unpacked + (size_t)b.width * 3);
    if (!memory)
        return sp_fail_memory(err, "BMP picture", unpacked);
    if (rle && !unpack_rle(&b, file, memory))
        status = sp_fail_cut(err, "BMP");
    for (uint32_t y = 0; status == SP_OK && y < b.height; y++) {
        const size_t stored = b.top_down ? y : b.height - 1 - y;
        if (!rle)
            unpack_row(&b, file.data + b.offset + stored * stride, memory);
        send_row(&b, rle ? memory + stored * b.width : memory, want, sink, memory + unpacked);
    }
    free(memory);
    return status;
}

const sp_codec sp_codec_bmp = {.name = "bmp", .title = "BMP", .match = match, .probe = probe, .decode = decode};
