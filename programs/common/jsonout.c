#include "common/jsonout.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/utf8.h"

void json_put_string_n(buffer *out, const char *text, size_t size) {
    static const char hex[] = "0123456789abcdef";
    const uint8_t *p = (const uint8_t *)text, *end = p + size;
    buffer_char(out, '"');
    while (p < end) {
        const uint8_t *plain = p;
        while (p < end && *p >= 0x20 && *p < 0x7f && *p != '"' && *p != '\\')
            p++;
        buffer_put(out, plain, (size_t)(p - plain));
        if (p == end)
            break;
        unsigned length = *p >= 0x80 ? utf8_length(p, end) : 1;
        if (*p == '"' || *p == '\\')
            buffer_put(out, (char[]){'\\', (char)*p}, 2);
        else if (*p == '\n')
            buffer_text(out, "\\n");
        else if (*p < 0x20 || *p == 0x7f)
            buffer_put(out, (char[]){'\\', 'u', '0', '0', hex[*p >> 4], hex[*p & 15]}, 6);
        else if (length)
            buffer_put(out, p, length);
        else
            buffer_text(out, "\\ufffd");
        p += length ? length : 1;
    }
    buffer_char(out, '"');
}

void json_put_string(buffer *out, const char *text) {
    json_put_string_n(out, text, strlen(text));
}

/*
 * The decimal of `digits` digits that is nearest to `value` (positive), as mantissa * 10^*exponent,
 * when it reads back as `value`; else 0.
 *
 * Powers of ten up to 10^22 are exact in double, so mantissa / 10^k or mantissa * 10^k is the
 * decimal rounded once. Rounding it again to float gives what one rounding would, unless the double
 * lies exactly in the middle of two floats; that rare case counts as not reading back.
 */
static uint32_t decimal_of(float value, int digits, int *exponent) {
    static const double powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                    1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    int magnitude = (int)floor(log10((double)value));
    int shift = digits - 1 - magnitude;
    double scaled = shift >= 0 ? (double)value * powers[shift] : (double)value / powers[-shift];
    double mantissa = rint(scaled);
    if (mantissa < 1 || mantissa > 4e9)
        return 0;
    double back = shift >= 0 ? mantissa / powers[shift] : mantissa * powers[-shift];
    uint64_t bits;
    memcpy(&bits, &back, sizeof bits);
    bool middle = (bits & 0x1fffffff) == 0x10000000;
    if (middle || (float)back != value)
        return 0;
    *exponent = -shift;
    return (uint32_t)mantissa;
}

/* mantissa * 10^exponent in the plain form where it is short, else with an exponent. */
static size_t put_decimal(char *text, uint32_t mantissa, int exponent) {
    char digits[16];
    int count = 0;
    while (mantissa % 10 == 0) {
        mantissa /= 10;
        exponent++;
    }
    for (uint32_t rest = mantissa; rest; rest /= 10)
        digits[count++] = (char)('0' + rest % 10); /* last first */
    int point = count + exponent;                  /* digits before the point */
    char *p = text;
    if (point > 9 || point < -4)
        return (size_t)snprintf(text, 32, "%ue%d", (unsigned)mantissa, exponent);
    if (point <= 0)
        *p++ = '0';
    for (int i = 0; i < point; i++)
        *p++ = i < count ? digits[count - 1 - i] : '0';
    *p++ = '.';
    for (int i = point; i < 0; i++)
        *p++ = '0';
    for (int i = point > 0 ? point : 0; i < count; i++)
        *p++ = digits[count - 1 - i];
    if (p[-1] == '.')
        *p++ = '0';
    return (size_t)(p - text);
}

/* Very large, very small, or in the middle of two floats: by trial. */
static size_t put_rare(char *text, float value) {
    for (int digits = 1;; digits++) {
        int length = snprintf(text, 28, "%.*e", digits - 1, (double)value);
        if (digits == 9 || strtof(text, NULL) == value)
            return (size_t)length;
    }
}

void json_put_float(buffer *out, float value) {
    char *text = (char *)buffer_room(out, 32), *p = text;
    if (!text)
        return;
    if (!isfinite(value)) {
        buffer_text(out, "null");
        return;
    }
    if (signbit(value)) {
        *p++ = '-';
        value = -value;
    }
    /* Any decimal of 6 digits survives a float32, so if a shorter one stands for this value, it is the
     * one of 6 digits without its zeros at the end; 9 digits always suffice. */
    uint32_t mantissa = 0;
    int exponent = 0;
    bool usual = value >= 1e-12f && value <= 1e20f; /* every shift is within the exact powers */
    for (int digits = 6; usual && mantissa == 0 && digits <= 9; digits++)
        mantissa = decimal_of(value, digits, &exponent);
    if (mantissa)
        p += put_decimal(p, mantissa, exponent);
    else if (value == 0)
        p += snprintf(p, 8, "0.0");
    else
        p += put_rare(p, value);
    out->size += (size_t)(p - text);
}

void json_put_double(buffer *out, double value) {
    char text[40];
    if (!isfinite(value)) {
        buffer_text(out, "null");
        return;
    }
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, value);
        if (strtod(text, NULL) == value)
            break;
    }
    buffer_text(out, text);
    if (!strpbrk(text, ".e"))
        buffer_text(out, ".0");
}

void json_put_ms(buffer *out, double ms) {
    buffer_format(out, "%.3f", isfinite(ms) ? ms : 0.0);
}

void json_put_points(buffer *out, const sp_features *f) {
    buffer_format(out, "\"num_keypoints\": %zu, \"keypoints\": [", f->count);
    for (size_t i = 0; i < f->count; i++) {
        buffer_put(out, ", [", i ? 3 : 0);
        if (i == 0)
            buffer_char(out, '[');
        json_put_float(out, f->keypoints[2 * i]);
        buffer_put(out, ", ", 2);
        json_put_float(out, f->keypoints[2 * i + 1]);
        buffer_char(out, ']');
    }
    buffer_text(out, "], \"scores\": [");
    for (size_t i = 0; i < f->count; i++) {
        if (i)
            buffer_put(out, ", ", 2);
        json_put_float(out, f->scores[i]);
    }
    buffer_char(out, ']');
}
