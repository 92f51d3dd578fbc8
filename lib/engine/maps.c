#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/error.h"
#include "base/size.h"
#include "engine/engine.h"

enum { HUGE_PAGE = 2 << 20 };

/* One block holds scores, suppressed scores and descriptors. A descriptor map has 256 numbers for
 * 64 pixels, four a pixel; with the two score maps that makes six floats a pixel. */
enum { FLOATS_A_PIXEL = 2 + SP_DESCRIPTOR_DIM / (SP_CELL * SP_CELL) };

static bool sides_ok(uint32_t width, uint32_t height) {
    return width >= SP_CELL && height >= SP_CELL && width % SP_CELL == 0 && height % SP_CELL == 0 &&
           width <= SP_MAX_FRAME_SIDE && height <= SP_MAX_FRAME_SIDE && (uint64_t)width * height <= SP_MAX_FRAME_PIXELS;
}

static sp_status sides_fail(uint32_t width, uint32_t height, sp_error *err) {
    return sp_fail(err, SP_ERR_ARGUMENT,
                   "frame: %u x %u is not allowed: sides must be multiples of %d up to %d, at most %u pixels", width,
                   height, SP_CELL, SP_MAX_FRAME_SIDE, SP_MAX_FRAME_PIXELS);
}

sp_status sp_maps_shape(sp_maps *maps, uint32_t width, uint32_t height, sp_error *err) {
    if (!sides_ok(width, height))
        return sides_fail(width, height, err);
    /* at most 2^26 pixels of 24 bytes: fits in size_t */
    size_t pixels = (size_t)width * height;
    size_t bytes = sp_round_up(pixels * FLOATS_A_PIXEL * sizeof(float), HUGE_PAGE);
    if (bytes > maps->capacity) {
        void *memory = aligned_alloc(HUGE_PAGE, bytes);
        if (!memory)
            return sp_fail_memory(err, "dense maps", bytes);
        madvise(memory, bytes, MADV_HUGEPAGE); /* advice only: small pages work too */
        free(maps->memory);
        maps->memory = memory;
        maps->capacity = bytes;
    }
    maps->width = width;
    maps->height = height;
    maps->scores = maps->memory;
    maps->descriptors = maps->scores + 2 * pixels;
    maps->suppressed = NULL;
    maps->nms_radius = 0;
    maps->forward_ms = 0;
    return SP_OK;
}

float *sp_maps_room_for_suppressed(sp_maps *maps) {
    return maps->scores + (size_t)maps->width * maps->height;
}

sp_status sp_maps_alloc(uint32_t width, uint32_t height, sp_maps *maps, sp_error *err) {
    memset(maps, 0, sizeof *maps);
    sp_status status = sp_maps_shape(maps, width, height, err);
    return status == SP_OK ? sp_succeed(err) : status;
}

void sp_maps_free(sp_maps *maps) {
    if (!maps)
        return;
    free(maps->memory);
    memset(maps, 0, sizeof *maps);
}

sp_status sp_frame_check(const sp_frame *frame, sp_error *err) {
    if (!frame || !frame->pixels)
        return sp_fail(err, SP_ERR_ARGUMENT, "frame: has no pixels");
    if (!sides_ok(frame->width, frame->height))
        return sides_fail(frame->width, frame->height, err);
    if (frame->stride < frame->width)
        return sp_fail(err, SP_ERR_ARGUMENT, "frame: rows of %zu bytes are shorter than its width of %u", frame->stride,
                       frame->width);
    if (frame->content_width < 1 || frame->content_height < 1 || frame->content_width > frame->width ||
        frame->content_height > frame->height)
        return sp_fail(err, SP_ERR_ARGUMENT, "frame: content of %u x %u does not lie within %u x %u",
                       frame->content_width, frame->content_height, frame->width, frame->height);
    return SP_OK;
}
