#include "image/exif.h"

#include <string.h>

/* TIFF 6.0: entries of 12 bytes: tag, type, count, and a value or where it lies. */
enum { TAG_ORIENTATION = 0x0112, TYPE_SHORT = 3, TYPE_LONG = 4, ENTRY_BYTES = 12 };

typedef struct tiff {
    sp_bytes bytes;
    bool big_endian;
} tiff;

static uint32_t read16(const tiff *t, size_t at) {
    const uint8_t *p = t->bytes.data + at;
    return t->big_endian ? (uint32_t)p[0] << 8 | p[1] : (uint32_t)p[1] << 8 | p[0];
}

static uint32_t read32(const tiff *t, size_t at) {
    uint32_t a = read16(t, at), b = read16(t, at + 2);
    return t->big_endian ? a << 16 | b : b << 16 | a;
}

static bool open_tiff(sp_bytes bytes, tiff *t) {
    if (bytes.size < 8)
        return false;
    *t = (tiff){.bytes = bytes, .big_endian = bytes.data[0] == 'M'};
    bool order = memcmp(bytes.data, "II", 2) == 0 || memcmp(bytes.data, "MM", 2) == 0;
    return order && read16(t, 2) == 42;
}

int sp_exif_orientation(sp_bytes exif) {
    static const uint8_t prefix[6] = "Exif\0";
    if (exif.size >= sizeof prefix && memcmp(exif.data, prefix, sizeof prefix) == 0) {
        exif.data += sizeof prefix;
        exif.size -= sizeof prefix;
    }
    tiff t;
    if (!open_tiff(exif, &t))
        return 0;
    size_t at = read32(&t, 4);
    if (at > exif.size || exif.size - at < 2)
        return 0;
    size_t entries = read16(&t, at), held = (exif.size - at - 2) / ENTRY_BYTES;
    at += 2;
    int orientation = 0;
    for (size_t i = 0; i < entries && i < held; i++, at += ENTRY_BYTES) {
        if (read16(&t, at) != TAG_ORIENTATION || read32(&t, at + 4) != 1)
            continue;
        uint32_t type = read16(&t, at + 2);
        if (type != TYPE_SHORT && type != TYPE_LONG)
            continue;
        uint32_t value = type == TYPE_SHORT ? read16(&t, at + 8) : read32(&t, at + 8);
        orientation = value >= 1 && value <= 8 ? (int)value : 0; /* of two entries the last counts */
    }
    return orientation;
}

int sp_xmp_orientation(sp_bytes xmp) {
    static const char name[] = "tiff:Orientation";
    const size_t length = sizeof name - 1;
    if (xmp.size == 0)
        return 0;
    const uint8_t *p = xmp.data, *end = xmp.data + xmp.size;
    while ((p = memmem(p, (size_t)(end - p), name, length)) != NULL) {
        p += length;
        size_t skip = 0; /* as an attribute ="6", or as an element >6 */
        if (end - p >= 3 && p[0] == '=' && p[1] == '"')
            skip = 2;
        else if (end - p >= 2 && p[0] == '>')
            skip = 1;
        if (skip && p[skip] >= '0' && p[skip] <= '9')
            return p[skip] >= '1' && p[skip] <= '8' ? p[skip] - '0' : 0;
    }
    return 0;
}
