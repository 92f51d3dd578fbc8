/* Base64 (RFC 4648). */
#ifndef SP_COMMON_BASE64_H
#define SP_COMMON_BASE64_H

#include "common/buffer.h"

/*
 * Decode in place: the bytes overwrite the text, which is never shorter. Both alphabets ("+/" and
 * "-_"), white space anywhere, and padding that is missing are taken. False when another letter
 * turns up, when padding stands before the end, or when a single letter is left over; *position is
 * then the offset of what was wrong.
 */
bool base64_decode(uint8_t *text, size_t size, size_t *decoded, size_t *position);

/* Append `size` bytes as text, with padding, in the "+/" alphabet. */
void base64_encode(buffer *out, const uint8_t *bytes, size_t size);

#endif
