#include "image/jpeg_header.h"

#include "base/error.h"
#include "image/exif.h"

#include <string.h>

/* ITU T.81, table B.1. */
enum {
    M_SOF0 = 0xC0,
    M_DHT = 0xC4,
    M_JPG = 0xC8,
    M_DAC = 0xCC,
    M_SOF15 = 0xCF,
    M_RST0 = 0xD0,
    M_SOI = 0xD8,
    M_EOI = 0xD9,
    M_SOS = 0xDA,
    M_APP1 = 0xE1,
    M_APP2 = 0xE2,
    M_TEM = 0x01,
};

bool sp_jpeg_match(sp_bytes file) {
    return file.size >= 3 && file.data[0] == 0xFF && file.data[1] == M_SOI && file.data[2] == 0xFF;
}

/* One marker segment: its code, and its bytes after the length. */
typedef struct segment {
    int marker;
    sp_bytes body;
} segment;

static bool stands_alone(int marker) {
    return marker == M_TEM || (marker >= M_RST0 && marker <= M_EOI);
}

/* The next segment from *at on; false when the file ends before it does. */
static bool next_segment(sp_bytes file, size_t *at, segment *out) {
    size_t i = *at;
    for (;;) {
        while (i < file.size && file.data[i] != 0xFF) /* junk between segments is passed over, as decoders do */
            i++;
        while (i < file.size && file.data[i] == 0xFF)
            i++;
        if (i >= file.size)
            return false;
        if (file.data[i] != 0)
            break;
        i++;
    }
    out->marker = file.data[i++];
    out->body = (sp_bytes){file.data + i, 0};
    if (!stands_alone(out->marker)) {
        if (file.size - i < 2)
            return false;
        size_t length = (size_t)file.data[i] << 8 | file.data[i + 1];
        if (length < 2 || file.size - i < length)
            return false;
        out->body = (sp_bytes){file.data + i + 2, length - 2};
        i += length;
    }
    *at = i;
    return true;
}

static bool starts_with(sp_bytes b, const char *text, size_t length) {
    return b.size >= length && memcmp(b.data, text, length) == 0;
}

static bool is_frame_header(int marker) {
    return marker >= M_SOF0 && marker <= M_SOF15 && marker != M_DHT && marker != M_JPG && marker != M_DAC;
}

static sp_status read_frame_header(const segment *s, sp_image_info *info, sp_error *err) {
    /* Sequential and progressive, by Huffman or arithmetic coding. */
    const int kind = s->marker - M_SOF0;
    if (kind != 0 && kind != 1 && kind != 2 && kind != 9 && kind != 10)
        return sp_fail(err, SP_ERR_IMAGE_FORMAT, "JPEG picture is %s (SOF%d), which is not read here",
                       (kind & 3) == 3 ? "lossless" : "hierarchical", kind);
    if (s->body.size < 6)
        return sp_fail(err, SP_ERR_IMAGE_DATA, "JPEG picture has a frame header of %zu bytes", s->body.size);
    const uint8_t *p = s->body.data;
    if (p[0] != 8)
        return sp_fail(err, SP_ERR_IMAGE_FORMAT, "JPEG picture of %d bits a sample: only 8 are read here", p[0]);
    if (p[5] != 1 && p[5] != 3 && p[5] != 4)
        return sp_fail(err, SP_ERR_IMAGE_FORMAT, "JPEG picture of %d components: only 1, 3 and 4 are read here", p[5]);
    info->height = (uint32_t)p[1] << 8 | p[2];
    info->width = (uint32_t)p[3] << 8 | p[4];
    return SP_OK;
}

/* Multi-Picture Format (CIPA DC-007): the TIFF block of APP2 "MPF\0" holds how many pictures there are. */
static bool has_more_pictures(sp_bytes body) {
    enum { TAG_COUNT = 0xB001 };
    const uint8_t *p = body.data + 4;
    const size_t size = body.size - 4;
    if (size < 10 || (p[0] != 'I' && p[0] != 'M'))
        return false;
    const bool big = p[0] == 'M';
#define AT16(o) (big ? (uint32_t)p[o] << 8 | p[(o) + 1] : (uint32_t)p[(o) + 1] << 8 | p[o])
#define AT32(o) (big ? AT16(o) << 16 | AT16((o) + 2) : AT16((o) + 2) << 16 | AT16(o))
    size_t at = AT32(4);
    if (at > size || size - at < 2)
        return false;
    size_t entries = AT16(at);
    for (at += 2; entries > 0 && size - at >= 12; entries--, at += 12)
        if (AT16(at) == TAG_COUNT)
            return AT32(at + 8) > 1;
    return false;
#undef AT16
#undef AT32
}

sp_status sp_jpeg_probe(sp_bytes file, sp_image_info *info, sp_error *err) {
    size_t at = 2;
    bool framed = false;
    int exif = 0, xmp = 0;
    segment s;
    while (next_segment(file, &at, &s)) {
        if (s.marker == M_SOS && framed) {
            info->orientation = exif ? exif : xmp ? xmp : 1;
            return SP_OK;
        }
        if (s.marker == M_SOS || s.marker == M_EOI)
            return sp_fail(err, SP_ERR_IMAGE_DATA, "JPEG picture has no frame header before its pixels");
        if (is_frame_header(s.marker)) {
            sp_status status = read_frame_header(&s, info, err);
            if (status != SP_OK)
                return status;
            framed = true;
        } else if (s.marker == M_APP1 && starts_with(s.body, "Exif\0", 6)) {
            exif = exif ? exif : sp_exif_orientation(s.body);
        } else if (s.marker == M_APP1 && starts_with(s.body, "http://ns.adobe.com/xap/1.0/", 29)) {
            xmp = sp_xmp_orientation(s.body);
        } else if (s.marker == M_APP2 && starts_with(s.body, "MPF", 4)) {
            info->multiple = has_more_pictures(s.body);
        }
    }
    return sp_fail(err, SP_ERR_IMAGE_DATA, "JPEG picture is cut short: the file ends in its headers");
}
