/*
 * Bytes that grow. A failed allocation is remembered, so that a writer checks once, at the end.
 */
#ifndef SP_COMMON_BUFFER_H
#define SP_COMMON_BUFFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct buffer {
    uint8_t *data;
    size_t size, capacity;
    bool failed; /* an allocation failed; what was written since is lost */
} buffer;

/* Room for `size` more bytes at data + size, which the caller fills and counts; NULL when there is none. */
uint8_t *buffer_room(buffer *b, size_t size);

void buffer_put(buffer *b, const void *bytes, size_t size);
void buffer_text(buffer *b, const char *text);
void buffer_char(buffer *b, char c);
void buffer_format(buffer *b, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Forget the content, keep the memory. */
void buffer_clear(buffer *b);
void buffer_free(buffer *b);

#endif
