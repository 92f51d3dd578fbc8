/* Sizes from outside are multiplied and added here, and nowhere unchecked. */
#ifndef SP_BASE_SIZE_H
#define SP_BASE_SIZE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* a * b into *out; false when it does not fit. */
static inline bool sp_size_mul(size_t a, size_t b, size_t *out) {
    return !__builtin_mul_overflow(a, b, out);
}

static inline bool sp_size_add(size_t a, size_t b, size_t *out) {
    return !__builtin_add_overflow(a, b, out);
}

/* Next multiple of `unit`, a power of two; the caller knows that it fits. */
static inline size_t sp_round_up(size_t n, size_t unit) {
    return (n + unit - 1) & ~(unit - 1);
}

static inline size_t sp_min_size(size_t a, size_t b) {
    return a < b ? a : b;
}

#endif
