#include "common/base64.h"

#include <string.h>

/* What a letter stands for, plus one: 1...64; 0 for one that has no place in base64. */
enum { SPACE = 0xfe, PAD = 0xfd };
static const uint8_t values[256] = {
    ['A'] = 1,
    2,
    3,
    4,
    5,
    6,
    7,
    8,
    9,
    10,
    11,
    12,
    13,
    14,
    15,
    16,
    17,
    18,
    19,
    20,
    21,
    22,
    23,
    24,
    25,
    26,
    ['a'] = 27,
    28,
    29,
    30,
    31,
    32,
    33,
    34,
    35,
    36,
    37,
    38,
    39,
    40,
    41,
    42,
    43,
    44,
    45,
    46,
    47,
    48,
    49,
    50,
    51,
    52,
    ['0'] = 53,
    54,
    55,
    56,
    57,
    58,
    59,
    60,
    61,
    62,
    ['+'] = 63,
    ['-'] = 63,
    ['/'] = 64,
    ['_'] = 64,
    ['='] = PAD,
    [' '] = SPACE,
    ['\t'] = SPACE,
    ['\n'] = SPACE,
    ['\r'] = SPACE,
};

/* Only white space and padding may follow padding. */
static bool decode_tail(const uint8_t *text, size_t size, size_t i, size_t *position) {
    for (; i < size; i++)
        if (values[text[i]] != PAD && values[text[i]] != SPACE) {
            *position = i;
            return false;
        }
    return true;
}

bool base64_decode(uint8_t *text, size_t size, size_t *decoded, size_t *position) {
    uint8_t *out = text;
    uint32_t bits = 0;
    unsigned letters = 0; /* held in `bits`, of the four that make three bytes */
    size_t i = 0;
    while (i < size) {
        if (letters == 0 && size - i >= 4) { /* the common case: four letters in a row */
            uint32_t a = values[text[i]] - 1u, b = values[text[i + 1]] - 1u;
            uint32_t c = values[text[i + 2]] - 1u, d = values[text[i + 3]] - 1u;
            if ((a | b | c | d) < 64) {
                uint32_t three = a << 18 | b << 12 | c << 6 | d;
                out[0] = (uint8_t)(three >> 16);
                out[1] = (uint8_t)(three >> 8);
                out[2] = (uint8_t)three;
                out += 3;
                i += 4;
                continue;
            }
        }
        uint8_t value = values[text[i]];
        if (value == PAD)
            break;
        if (value == 0) {
            *position = i;
            return false;
        }
        i++;
        if (value == SPACE)
            continue;
        bits = bits << 6 | (value - 1u);
        if (++letters == 4) {
            *out++ = (uint8_t)(bits >> 16);
            *out++ = (uint8_t)(bits >> 8);
            *out++ = (uint8_t)bits;
            letters = 0;
        }
    }
    if (!decode_tail(text, size, i, position))
        return false;
    if (letters == 1) {
        *position = i;
        return false;
    }
    if (letters == 2)
        *out++ = (uint8_t)(bits >> 4);
    if (letters == 3) {
        *out++ = (uint8_t)(bits >> 10);
        *out++ = (uint8_t)(bits >> 2);
    }
    *decoded = (size_t)(out - text);
    return true;
}

void base64_encode(buffer *buf, const uint8_t *bytes, size_t size) {
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    size_t length = size / 3 * 4 + (size % 3 ? 4 : 0);
    uint8_t *out = size > SIZE_MAX / 2 ? NULL : buffer_room(buf, length);
    if (!out) {
        buf->failed = true;
        return;
    }
    buf->size += length;
    for (; size >= 3; size -= 3, bytes += 3, out += 4) {
        uint32_t three = (uint32_t)bytes[0] << 16 | (uint32_t)bytes[1] << 8 | bytes[2];
        out[0] = (uint8_t)letters[three >> 18];
        out[1] = (uint8_t)letters[three >> 12 & 63];
        out[2] = (uint8_t)letters[three >> 6 & 63];
        out[3] = (uint8_t)letters[three & 63];
    }
    if (size) {
        uint32_t three = (uint32_t)bytes[0] << 16 | (size == 2 ? (uint32_t)bytes[1] << 8 : 0);
        out[0] = (uint8_t)letters[three >> 18];
        out[1] = (uint8_t)letters[three >> 12 & 63];
        out[2] = size == 2 ? (uint8_t)letters[three >> 6 & 63] : '=';
        out[3] = '=';
    }
}
