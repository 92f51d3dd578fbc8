#include "common/json.h"

#include <string.h>

#include "common/fail.h"
#include "common/utf8.h"

typedef struct scan {
    const uint8_t *p, *end;
    const char *what; /* what was wrong at p */
    unsigned depth, max_depth;
} scan;

static bool wrong(scan *s, const char *what) {
    if (!s->what)
        s->what = what;
    return false;
}

static void skip_space(scan *s) {
    while (s->p < s->end && (*s->p == ' ' || *s->p == '\n' || *s->p == '\r' || *s->p == '\t'))
        s->p++;
}

static bool hex4(scan *s, uint32_t *code) {
    uint32_t value = 0;
    if (s->end - s->p < 4)
        return wrong(s, "the document ends inside a string");
    for (int i = 0; i < 4; i++, s->p++) {
        uint8_t c = *s->p, lower = c | 0x20;
        if (c >= '0' && c <= '9')
            value = value << 4 | (uint32_t)(c - '0');
        else if (lower >= 'a' && lower <= 'f')
            value = value << 4 | (uint32_t)(lower - 'a' + 10);
        else
            return wrong(s, "\\u is not followed by four hexadecimal digits");
    }
    *code = value;
    return true;
}

/* Behind a backslash. */
static bool check_escape(scan *s) {
    uint32_t code, low;
    if (s->p == s->end)
        return wrong(s, "the document ends inside a string");
    uint8_t c = *s->p;
    if (c != 'u') {
        if (!strchr("\"\\/bfnrt", c) || c == 0)
            return wrong(s, "unknown escape in a string");
        s->p++;
        return true;
    }
    s->p++;
    if (!hex4(s, &code))
        return false;
    if (code < 0xd800 || code > 0xdfff)
        return true;
    if (code > 0xdbff || s->end - s->p < 2 || s->p[0] != '\\' || s->p[1] != 'u')
        return wrong(s, "half of a surrogate pair in a string");
    s->p += 2;
    if (!hex4(s, &low))
        return false;
    return (low >= 0xdc00 && low <= 0xdfff) || wrong(s, "half of a surrogate pair in a string");
}

static bool has_byte(uint64_t word, uint8_t byte) {
    uint64_t x = word ^ 0x0101010101010101u * byte;
    return ((x - 0x0101010101010101u) & ~x & 0x8080808080808080u) != 0;
}

/* Whether eight bytes are all plain: 0x20...0x7f, neither quote nor backslash. */
static bool plain8(const uint8_t *p) {
    uint64_t w;
    memcpy(&w, p, 8);
    bool control = ((w - 0x2020202020202020u) & ~w & 0x8080808080808080u) != 0;
    return !(w & 0x8080808080808080u) && !control && !has_byte(w, '"') && !has_byte(w, '\\');
}

/* At the opening quote. */
static bool check_string(scan *s) {
    s->p++;
    for (;;) {
        while (s->end - s->p >= 8 && plain8(s->p))
            s->p += 8;
        if (s->p == s->end)
            return wrong(s, "the document ends inside a string");
        uint8_t c = *s->p;
        if (c == '"') {
            s->p++;
            return true;
        }
        if (c == '\\') {
            s->p++;
            if (!check_escape(s))
                return false;
        } else if (c < 0x20) {
            return wrong(s, "control character in a string");
        } else {
            unsigned length = utf8_length(s->p, s->end);
            if (length == 0)
                return wrong(s, "not UTF-8");
            s->p += length;
        }
    }
}

static size_t skip_digits(scan *s) {
    const uint8_t *start = s->p;
    while (s->p < s->end && *s->p >= '0' && *s->p <= '9')
        s->p++;
    return (size_t)(s->p - start);
}

static bool check_number(scan *s) {
    if (*s->p == '-')
        s->p++;
    bool zero = s->p < s->end && *s->p == '0';
    size_t digits = skip_digits(s);
    if (digits == 0)
        return wrong(s, "a value was expected");
    if (zero && digits > 1)
        return wrong(s, "a number with leading zeros");
    if (s->p < s->end && *s->p == '.') {
        s->p++;
        if (skip_digits(s) == 0)
            return wrong(s, "no digits behind the point of a number");
    }
    if (s->p < s->end && (*s->p == 'e' || *s->p == 'E')) {
        s->p++;
        if (s->p < s->end && (*s->p == '+' || *s->p == '-'))
            s->p++;
        if (skip_digits(s) == 0)
            return wrong(s, "no digits in the exponent of a number");
    }
    return true;
}

static bool check_word(scan *s, const char *word) {
    size_t length = strlen(word);
    if ((size_t)(s->end - s->p) < length || memcmp(s->p, word, length) != 0)
        return wrong(s, "a value was expected");
    s->p += length;
    return true;
}

static bool check_value(scan *s);

static bool check_member(scan *s) {
    if (s->p == s->end || *s->p != '"')
        return wrong(s, "a member's name in double quotes was expected");
    if (!check_string(s))
        return false;
    skip_space(s);
    if (s->p == s->end || *s->p != ':')
        return wrong(s, "':' was expected");
    s->p++;
    skip_space(s);
    return check_value(s);
}

static bool check_container(scan *s) {
    bool object = *s->p == '{';
    uint8_t close = object ? '}' : ']';
    if (++s->depth > s->max_depth)
        return wrong(s, "nested too deeply");
    s->p++;
    skip_space(s);
    if (s->p < s->end && *s->p == close) {
        s->p++;
        s->depth--;
        return true;
    }
    for (;;) {
        if (!(object ? check_member(s) : check_value(s)))
            return false;
        skip_space(s);
        if (s->p == s->end)
            return wrong(s, "the document ends too early");
        if (*s->p != ',' && *s->p != close)
            return wrong(s, object ? "',' or '}' was expected" : "',' or ']' was expected");
        if (*s->p++ == close)
            break;
        skip_space(s);
    }
    s->depth--;
    return true;
}

/* Recursion is bounded by max_depth. */
static bool check_value(scan *s) {
    if (s->p == s->end)
        return wrong(s, "the document ends too early");
    switch (*s->p) {
    case '{':
    case '[':
        return check_container(s);
    case '"':
        return check_string(s);
    case 't':
        return check_word(s, "true");
    case 'f':
        return check_word(s, "false");
    case 'n':
        return check_word(s, "null");
    default:
        return check_number(s);
    }
}

static json_type type_of(char c) {
    switch (c) {
    case '{':
        return JSON_OBJECT;
    case '[':
        return JSON_ARRAY;
    case '"':
        return JSON_STRING;
    case 't':
    case 'f':
        return JSON_BOOLEAN;
    case 'n':
        return JSON_NULL;
    default:
        return JSON_NUMBER;
    }
}

static sp_status report(const scan *s, const char *text, sp_error *err) {
    size_t line = 1, column = 1;
    for (const uint8_t *p = (const uint8_t *)text; p < s->p; p++) {
        column = *p == '\n' ? 1 : column + 1;
        line += *p == '\n';
    }
    return fail(err, SP_ERR_ARGUMENT, "body: not JSON: line %zu, column %zu: %s", line, column, s->what);
}

sp_status json_check(char *text, size_t size, unsigned max_depth, json_value *value, sp_error *err) {
    scan s = {(const uint8_t *)text, (const uint8_t *)text + size, NULL, 0, max_depth};
    skip_space(&s);
    const uint8_t *start = s.p;
    if (!check_value(&s))
        return report(&s, text, err);
    *value = (json_value){type_of((char)*start), text + (start - (const uint8_t *)text), (size_t)(s.p - start)};
    skip_space(&s);
    if (s.p != s.end) {
        wrong(&s, "something follows the value");
        return report(&s, text, err);
    }
    return SP_OK;
}

const char *json_type_text(json_type type) {
    static const char *const texts[] = {"null", "a boolean", "a number", "a string", "an array", "an object"};
    return texts[type];
}

/* From here on the text has been checked: no end of document needs to be looked for inside a value. */

static char *skip_checked_space(char *p, const char *end) {
    while (p < end && (*p == ' ' || *p == '\n' || *p == '\r' || *p == '\t' || *p == ',' || *p == ':'))
        p++;
    return p;
}

static char *skip_checked_string(char *p) {
    for (p++; *p != '"'; p++)
        if (*p == '\\')
            p++;
    return p + 1;
}

static char *skip_checked_value(char *p, const char *end) {
    unsigned depth = 0;
    do {
        if (*p == '"') {
            p = skip_checked_string(p);
            continue;
        }
        if (*p == '{' || *p == '[')
            depth++;
        else if (*p == '}' || *p == ']')
            depth--;
        else if (depth == 0) { /* number or word: up to what cannot be part of it */
            while (p < end && !strchr(" \n\r\t,:]}", *p))
                p++;
            return p;
        }
        p++;
    } while (depth);
    return p;
}

json_walk json_begin(const json_value *container) {
    return (json_walk){container->text + 1, container->text + container->size - 1};
}

bool json_next_item(json_walk *walk, json_value *value) {
    char *p = skip_checked_space(walk->next, walk->end);
    if (p >= walk->end)
        return false;
    walk->next = skip_checked_value(p, walk->end);
    *value = (json_value){type_of(*p), p, (size_t)(walk->next - p)};
    return true;
}

bool json_next_member(json_walk *walk, json_value *key, json_value *value) {
    return json_next_item(walk, key) && json_next_item(walk, value);
}

static uint32_t checked_hex4(const char *p) {
    uint32_t value = 0;
    for (int i = 0; i < 4; i++)
        value = value << 4 | (uint32_t)(p[i] <= '9' ? p[i] - '0' : (p[i] | 0x20) - 'a' + 10);
    return value;
}

static char *put_utf8(char *out, uint32_t code) {
    if (code < 0x80) {
        *out++ = (char)code;
    } else if (code < 0x800) {
        *out++ = (char)(0xc0 | code >> 6);
        *out++ = (char)(0x80 | (code & 63));
    } else {
        if (code < 0x10000) {
            *out++ = (char)(0xe0 | code >> 12);
        } else {
            *out++ = (char)(0xf0 | code >> 18);
            *out++ = (char)(0x80 | (code >> 12 & 63));
        }
        *out++ = (char)(0x80 | (code >> 6 & 63));
        *out++ = (char)(0x80 | (code & 63));
    }
    return out;
}

void json_string_text(const json_value *string, char **text, size_t *size) {
    char *p = string->text + 1, *end = string->text + string->size - 1;
    *text = p;
    char *escape = memchr(p, '\\', (size_t)(end - p));
    if (!escape) {
        *size = (size_t)(end - p);
        return;
    }
    char *out = p = escape;
    while (p < end) {
        if (*p != '\\') {
            *out++ = *p++;
            continue;
        }
        static const char letters[] = "bfnrt", meanings[] = "\b\f\n\r\t";
        char c = p[1];
        p += 2;
        if (c == 'u') {
            uint32_t code = checked_hex4(p);
            p += 4;
            if (code >= 0xd800 && code <= 0xdbff) {
                code = 0x10000 + ((code - 0xd800) << 10) + (checked_hex4(p + 2) - 0xdc00);
                p += 6;
            }
            out = put_utf8(out, code);
        } else {
            const char *letter = strchr(letters, c);
            *out++ = letter ? meanings[letter - letters] : c;
        }
    }
    *size = (size_t)(out - *text);
}
