/*
 * Maps between the layers. A map is stored in lines: one line holds one pixel's values of as many
 * channels as fill 64 bytes (16 float, 32 bf16, 64 int8), which is a cache line, an AVX-512 register and a row
 * of an AMX tile. A row of the map is `groups` runs of lines, each with a pixel of zeros on its left
 * and enough room on its right for a kernel that works on whole blocks of pixels.
 *
 * Only a window of rows is kept, row y in slot y % rows: a band of the frame walks through all
 * layers while it is in the cache, and frames of any height need the same memory.
 */
#ifndef SP_ENGINE_CPU_LINES_H
#define SP_ENGINE_CPU_LINES_H

#include <stddef.h>
#include <stdint.h>

enum {
    SP_LINE = 64,
    /* Pixels that a kernel may touch beyond the last: the right neighbour, after rounding up to its block. */
    SP_BLOCK_PIXELS = 16
};

typedef struct sp_lines {
    uint8_t *data; /* `rows` slots, then one slot of zeros that stands for the rows outside the frame */
    size_t pitch;  /* bytes from a group of channels to the next */
    uint32_t groups, rows;
    uint32_t width, height; /* of the whole map */
} sp_lines;

static inline size_t sp_lines_pitch(uint32_t width) {
    /* at most 16384 pixels of 64 bytes */
    return ((size_t)1 + (width + SP_BLOCK_PIXELS - 1) / SP_BLOCK_PIXELS * SP_BLOCK_PIXELS + 1) * SP_LINE;
}

static inline size_t sp_lines_row_bytes(const sp_lines *map) {
    return map->groups * map->pitch;
}

/* Pixel 0 of row y, first group; the slot of zeros when y is outside the frame. */
static inline uint8_t *sp_lines_row(const sp_lines *map, int64_t y) {
    uint32_t slot = y < 0 || y >= map->height ? map->rows : (uint32_t)y % map->rows;
    return map->data + slot * sp_lines_row_bytes(map) + SP_LINE;
}

#endif
