/* UTF-8 (RFC 3629). */
#ifndef SP_COMMON_UTF8_H
#define SP_COMMON_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Bytes of the character at p, 1...4; 0 when it is malformed: cut, overlong, a surrogate, above U+10FFFF. */
static inline unsigned utf8_length(const uint8_t *p, const uint8_t *end) {
    uint8_t low = 0x80, high = 0xbf; /* range of the second byte */
    unsigned length;
    if (p[0] < 0x80)
        return 1;
    if (p[0] < 0xc2)
        return 0;
    if (p[0] < 0xe0) {
        length = 2;
    } else if (p[0] < 0xf0) {
        length = 3;
        low = p[0] == 0xe0 ? 0xa0 : 0x80;
        high = p[0] == 0xed ? 0x9f : 0xbf;
    } else if (p[0] < 0xf5) {
        length = 4;
        low = p[0] == 0xf0 ? 0x90 : 0x80;
        high = p[0] == 0xf4 ? 0x8f : 0xbf;
    } else {
        return 0;
    }
    if ((uintptr_t)(end - p) < length || p[1] < low || p[1] > high)
        return 0;
    for (unsigned i = 2; i < length; i++)
        if ((p[i] & 0xc0) != 0x80)
            return 0;
    return length;
}

/* Whether all of it is well formed; eight bytes at once while they are ASCII. */
static inline bool utf8_valid(const uint8_t *p, size_t size) {
    const uint8_t *end = p + size;
    while (p < end) {
        uint64_t word = ~(uint64_t)0;
        if (end - p >= 8)
            memcpy(&word, p, sizeof word);
        if (!(word & 0x8080808080808080u)) {
            p += 8;
            continue;
        }
        const unsigned length = utf8_length(p, end);
        if (length == 0)
            return false;
        p += length;
    }
    return true;
}

#endif
