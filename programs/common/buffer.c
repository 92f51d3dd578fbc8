#include "common/buffer.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

uint8_t *buffer_room(buffer *b, size_t size) {
    if (b->failed)
        return NULL;
    if (b->data && size <= b->capacity - b->size)
        return b->data + b->size;
    size_t needed, grown = b->capacity < 256 ? 256 : b->capacity;
    if (__builtin_add_overflow(b->size, size, &needed))
        needed = SIZE_MAX;
    while (grown < needed)
        if (__builtin_mul_overflow(grown, 2, &grown))
            grown = needed;
    uint8_t *data = realloc(b->data, grown);
    if (!data) {
        b->failed = true;
        return NULL;
    }
    b->data = data;
    b->capacity = grown;
    return b->data + b->size;
}

void buffer_put(buffer *b, const void *bytes, size_t size) {
    uint8_t *room = buffer_room(b, size);
    if (room && size) {
        memcpy(room, bytes, size);
        b->size += size;
    }
}

void buffer_text(buffer *b, const char *text) {
    buffer_put(b, text, strlen(text));
}

void buffer_char(buffer *b, char c) {
    buffer_put(b, &c, 1);
}

void buffer_format(buffer *b, const char *format, ...) {
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    size_t free_bytes = b->failed ? 0 : b->capacity - b->size;
    int length = vsnprintf(free_bytes ? (char *)b->data + b->size : NULL, free_bytes, format, args);
    va_end(args);
    if (length >= 0 && (size_t)length < free_bytes) {
        b->size += (size_t)length;
    } else if (length >= 0 && buffer_room(b, (size_t)length + 1)) {
        vsnprintf((char *)b->data + b->size, (size_t)length + 1, format, again);
        b->size += (size_t)length;
    }
    va_end(again);
}

void buffer_clear(buffer *b) {
    b->size = 0;
    b->failed = false;
}

void buffer_free(buffer *b) {
    free(b->data);
    *b = (buffer){0};
}
