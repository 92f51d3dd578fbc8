/* PNG by libspng, row by row. Samples of 16 bits count by their high byte; alpha and tRNS are dropped. */
#include "base/error.h"
#include "image/codec.h"
#include "image/exif.h"
#include "image/pixel.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <spng.h>

static const uint8_t signature[8] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1A, '\n'};

static bool match(sp_bytes file) {
    return file.size >= sizeof signature && memcmp(file.data, signature, sizeof signature) == 0;
}

static uint32_t read32(const uint8_t *p) {
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

typedef struct chunk {
    uint8_t type[4];
    sp_bytes body;
} chunk;

/* The chunk at *at; false at the end of the file and for one that runs over it. */
static bool next_chunk(sp_bytes file, size_t *at, chunk *out) {
    if (file.size - *at < 12)
        return false;
    const uint8_t *p = file.data + *at;
    size_t length = read32(p);
    if (length > file.size - *at - 12)
        return false;
    memcpy(out->type, p + 4, 4);
    out->body = (sp_bytes){p + 8, length};
    *at += length + 12;
    return true;
}

static bool is_type(const chunk *c, const char *type) {
    return memcmp(c->type, type, 4) == 0;
}

/* The text of an uncompressed iTXt chunk that holds XMP. */
static sp_bytes xmp_of(sp_bytes body) {
    static const char keyword[] = "XML:com.adobe.xmp";
    const size_t head = sizeof keyword + 2; /* the keyword and its zero, compression flag and method */
    if (body.size < head || memcmp(body.data, keyword, sizeof keyword) != 0 || body.data[sizeof keyword] != 0)
        return (sp_bytes){0};
    return (sp_bytes){body.data + head, body.size - head};
}

static sp_status probe(sp_bytes file, sp_image_info *info, sp_error *err) {
    size_t at = sizeof signature;
    chunk c;
    if (!next_chunk(file, &at, &c))
        return sp_fail(err, SP_ERR_IMAGE_DATA, "PNG picture is cut short: the file ends in its header");
    if (!is_type(&c, "IHDR") || c.body.size != 13)
        return sp_fail(err, SP_ERR_IMAGE_DATA, "PNG picture does not begin with its header");
    info->width = read32(c.body.data);
    info->height = read32(c.body.data + 4);
    int exif = 0, xmp = 0;
    while (next_chunk(file, &at, &c) && !is_type(&c, "IEND")) { /* EXIF may follow the pixels */
        if (is_type(&c, "eXIf"))
            exif = sp_exif_orientation(c.body);
        else if (is_type(&c, "iTXt") && xmp == 0)
            xmp = sp_xmp_orientation(xmp_of(c.body));
        else if (is_type(&c, "acTL") && c.body.size == 8)
            info->multiple = read32(c.body.data) > 1;
    }
    info->orientation = exif ? exif : xmp ? xmp : 1;
    return SP_OK;
}

typedef struct png {
    spng_ctx *ctx;
    struct spng_ihdr ihdr;
    sp_pixels want;
    uint8_t palette[256][3];
    uint8_t *raw;     /* one row as in the file */
    uint8_t *row;     /* the same, as wanted */
    uint8_t *picture; /* the whole picture, only when interlaced */
} png;

/* libspng tells of memory that zlib lacks as of a broken stream: malloc's errno, which decode() has
 * cleared, tells them apart. */
static sp_status fail(sp_error *err, int code) {
    if (errno == ENOMEM)
        code = SPNG_EMEM;
    switch (code) {
    case SPNG_EMEM:
    case SPNG_EZLIB_INIT:
        return sp_fail(err, SP_ERR_MEMORY, "out of memory while decoding a PNG picture");
    case SPNG_IO_EOF:
    case SPNG_EOF:
    case SPNG_EIDAT_TOO_SHORT:
        return sp_fail_cut(err, "PNG");
    case SPNG_ECHUNK_LIMITS:
        return sp_fail(err, SP_ERR_LIMIT, "PNG picture has chunks beside its pixels of more than %zu bytes",
                       SP_PNG_MAX_CHUNK);
    default:
        return sp_fail(err, SP_ERR_IMAGE_DATA, "PNG picture is broken: %s", spng_strerror(code));
    }
}

/* Entries that the file does not give are black, as in Pillow. */
static int read_palette(png *p) {
    struct spng_plte plte;
    int code = spng_get_plte(p->ctx, &plte);
    if (code != 0)
        return code;
    for (uint32_t i = 0; i < plte.n_entries && i < 256; i++) {
        p->palette[i][0] = plte.entries[i].red;
        p->palette[i][1] = plte.entries[i].green;
        p->palette[i][2] = plte.entries[i].blue;
    }
    return 0;
}

static uint32_t samples(const png *p) {
    switch (p->ihdr.color_type) {
    case SPNG_COLOR_TYPE_TRUECOLOR:
        return 3;
    case SPNG_COLOR_TYPE_GRAYSCALE_ALPHA:
        return 2;
    case SPNG_COLOR_TYPE_TRUECOLOR_ALPHA:
        return 4;
    default:
        return 1;
    }
}

/* Bytes of `n` pixels in the file. */
static size_t raw_bytes(const png *p, uint32_t n) {
    return ((size_t)n * samples(p) * p->ihdr.bit_depth + 7) / 8;
}

/* `n` pixels of p->raw into `out`. Big-endian, so that the high byte of a sample comes first. */
static void convert(png *p, uint32_t n, uint8_t *out) {
    const uint32_t depth = p->ihdr.bit_depth, bytes = depth / 8;
    const bool indexed = p->ihdr.color_type == SPNG_COLOR_TYPE_INDEXED;
    if (depth < 8) {
        const uint32_t scale = indexed ? 1 : 255 / ((1u << depth) - 1);
        uint8_t unpacked[256];
        for (uint32_t x = 0; x < n; x += sizeof unpacked) {
            uint32_t part = n - x < sizeof unpacked ? n - x : (uint32_t)sizeof unpacked;
            for (uint32_t i = 0; i < part; i++)
                unpacked[i] = (uint8_t)(sp_packed_pixel(p->raw, depth, x + i) * scale);
            uint8_t *to = out + (size_t)x * sp_pixels_bytes(p->want);
            if (indexed)
                sp_row_from_palette(p->want, p->palette, unpacked, part, to);
            else
                sp_row_from_grey(p->want, unpacked, 1, part, to);
        }
    } else if (indexed) {
        sp_row_from_palette(p->want, p->palette, p->raw, n, out);
    } else if (samples(p) <= 2) {
        sp_row_from_grey(p->want, p->raw, samples(p) * bytes, n, out);
    } else if (bytes == 1) {
        sp_row_from_rgb(p->want, p->raw, samples(p), n, out);
    } else { /* high bytes together, in place */
        for (size_t i = 0; i < (size_t)n * samples(p); i++)
            p->raw[i] = p->raw[2 * i];
        sp_row_from_rgb(p->want, p->raw, samples(p), n, out);
    }
}

/* PNG, 8.2: where the pixels of each pass of Adam7 lie. */
static const struct {
    uint8_t x, y, dx, dy;
} adam7[7] = {{0, 0, 8, 8}, {4, 0, 8, 8}, {0, 4, 4, 8}, {2, 0, 4, 4}, {0, 2, 2, 4}, {1, 0, 2, 2}, {0, 1, 1, 2}};

static void place_row(png *p, const struct spng_row_info *at) {
    const uint32_t bytes = sp_pixels_bytes(p->want), x0 = adam7[at->pass].x, dx = adam7[at->pass].dx;
    const uint32_t n = (p->ihdr.width - x0 + dx - 1) / dx;
    convert(p, n, p->row);
    uint8_t *to = p->picture + ((size_t)at->row_num * p->ihdr.width + x0) * bytes;
    for (size_t i = 0; i < n; i++)
        memcpy(to + i * dx * bytes, p->row + i * bytes, bytes);
}

static sp_status decode_rows(png *p, sp_row_sink *sink, sp_error *err) {
    int code = 0;
    const bool interlaced = p->ihdr.interlace_method != SPNG_INTERLACE_NONE;
    while (code == 0) { /* the last row answers SPNG_EOI */
        struct spng_row_info at;
        code = spng_get_row_info(p->ctx, &at);
        if (code != 0)
            return fail(err, code);
        uint32_t n = p->ihdr.width;
        if (interlaced) {
            const uint32_t x0 = adam7[at.pass].x, dx = adam7[at.pass].dx;
            n = (p->ihdr.width - x0 + dx - 1) / dx;
        }
        code = spng_decode_scanline(p->ctx, p->raw, raw_bytes(p, n));
        if (code != 0 && code != SPNG_EOI)
            return fail(err, code);
        if (interlaced) {
            place_row(p, &at);
        } else {
            convert(p, n, p->row);
            sink->row(sink, p->row);
        }
    }
    for (uint32_t y = 0; interlaced && y < p->ihdr.height; y++)
        sink->row(sink, p->picture + (size_t)y * p->ihdr.width * sp_pixels_bytes(p->want));
    return SP_OK;
}

static sp_status start(png *p, sp_bytes file, sp_error *err) {
    int code = spng_set_chunk_limits(p->ctx, SP_PNG_MAX_CHUNK, SP_PNG_MAX_CHUNKS);
    if (code == 0)
        code = spng_set_image_limits(p->ctx, SP_MAX_IMAGE_SIDE, SP_MAX_IMAGE_SIDE);
    if (code == 0)
        code = spng_set_png_buffer(p->ctx, file.data, file.size);
    if (code == 0)
        code = spng_get_ihdr(p->ctx, &p->ihdr);
    if (code == 0 && p->ihdr.color_type == SPNG_COLOR_TYPE_INDEXED)
        code = read_palette(p);
    if (code == 0)
        code = spng_decode_image(p->ctx, NULL, 0, SPNG_FMT_RAW, SPNG_DECODE_PROGRESSIVE);
    return code == 0 ? SP_OK : fail(err, code);
}

static sp_status decode_with(png *p, sp_bytes file, sp_row_sink *sink, sp_error *err) {
    sp_status status = start(p, file, err);
    if (status != SP_OK)
        return status;
    const size_t width = p->ihdr.width, row = width * sp_pixels_bytes(p->want);
    p->raw = malloc(raw_bytes(p, p->ihdr.width));
    p->row = malloc(row);
    if (p->ihdr.interlace_method != SPNG_INTERLACE_NONE)
        p->picture = malloc(row * p->ihdr.height);
    if (!p->raw || !p->row || (p->ihdr.interlace_method != SPNG_INTERLACE_NONE && !p->picture))
        return sp_fail_memory(err, "PNG picture", row * p->ihdr.height);
    return decode_rows(p, sink, err);
}

static sp_status decode(sp_bytes file, const sp_image_info *info, sp_pixels want, sp_row_sink *sink, sp_error *err) {
    (void)info; /* libspng reads the same header */
    errno = 0;
    png p = {.ctx = spng_ctx_new(0), .want = want};
    if (!p.ctx)
        return sp_fail(err, SP_ERR_MEMORY, "out of memory while decoding a PNG picture");
    sp_status status = decode_with(&p, file, sink, err);
    spng_ctx_free(p.ctx);
    free(p.raw);
    free(p.row);
    free(p.picture);
    return status;
}

const sp_codec sp_codec_png = {.name = "png", .title = "PNG", .match = match, .probe = probe, .decode = decode};
