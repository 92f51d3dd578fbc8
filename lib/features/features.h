/*
 * From dense maps to keypoints, one step a function. All maps are [height][width], row by row.
 */
#ifndef SP_FEATURES_FEATURES_H
#define SP_FEATURES_FEATURES_H

#include "superpoint.h"

/*
 * Non-maximum suppression: `out` is `scores` where the rule keeps a pixel, else 0. A window is cut at
 * the map's edges. `radius` 0 copies. `out` must not overlap `scores`.
 */
sp_status sp_nms_single(const float *scores, uint32_t width, uint32_t height, int radius, float *out, sp_error *err);

/*
 * The same a row at a time from the top, without a map for it: `take` is given each row of `width` numbers, which
 * lasts as long as the call; what it returns ends the walk unless it is SP_OK.
 */
typedef sp_status sp_row_taker(void *context, uint32_t y, const float *row, sp_error *err);
sp_status sp_nms_single_rows(const float *scores, uint32_t width, uint32_t height, int radius, sp_row_taker *take,
                             void *context, sp_error *err);

/* The rule of transformers (simple_nms): three rounds, of which the last two recover pixels that only
 * suppressed pixels had suppressed. */
sp_status sp_nms_hf(const float *scores, uint32_t width, uint32_t height, int radius, float *out, sp_error *err);

/* Maximum over the (2r+1)^2 window around each pixel. */
sp_status sp_window_maximum(const float *in, uint32_t width, uint32_t height, int radius, float *out, sp_error *err);

/* A pixel that was selected. The order of keys is the order of keypoints: descending score, ties by
 * y, then x. */
typedef uint64_t sp_key;
uint32_t sp_key_pixel(sp_key key); /* y * width + x */
float sp_key_score(sp_key key);

/* Where points may lie: columns [x0, x1), rows [y0, y1), and where `mask` (may be NULL) is not 0. */
typedef struct sp_area {
    uint32_t x0, y0, x1, y1;
    const uint8_t *mask;
} sp_area;

/*
 * The pixels inside `area` with a score above `threshold`, in order, the best `limit` of them (negative: all).
 * Scores are at least 0. The caller frees *keys.
 */
sp_status sp_select(const float *scores, uint32_t width, const sp_area *area, float threshold, int32_t limit,
                    sp_key **keys, size_t *count, sp_error *err);

/* The same for rows that come one after another: begin, sp_selection_row (an sp_row_taker) for each, and
 * end, which frees the selection, also after a failure (keys NULL). */
typedef struct sp_selection sp_selection;
sp_status sp_selection_begin(uint32_t width, const sp_area *area, float threshold, int32_t limit,
                             sp_selection **selection, sp_error *err);
sp_status sp_selection_row(void *selection, uint32_t y, const float *row, sp_error *err);
sp_status sp_selection_end(sp_selection *selection, sp_key **keys, size_t *count, sp_error *err);

/*
 * Where the peak at pixel (x, y) lies between the pixels: along each axis the top of the parabola through the
 * logarithms of the score there and of the two beside it, at most half a pixel away. At the map's edge, and where the
 * three do not bend downwards or one is 0, the coordinate stays.
 */
void sp_refine_peak(const float *scores, uint32_t width, uint32_t height, uint32_t x, uint32_t y, double place[2]);

/*
 * Sample the descriptor map [rows][columns][256] at (x, y) in pixels of the frame and scale it to length 1.
 * Map position (x - 3.5) / (8 columns - 4.5) * (columns - 1), likewise for y; bilinear, zero outside
 * (transformers and SuperGlue; arXiv:1712.07629 leaves it open).
 */
void sp_sample_descriptor(const float *map, uint32_t columns, uint32_t rows, float x, float y, float *out);

/* Ask for the memory that sampling at (x, y) will read: points are spread over a map larger than the cache. */
void sp_sample_prefetch(const float *map, uint32_t columns, uint32_t rows, uint32_t x, uint32_t y);

/* `count` numbers to `dtype`; see sp_dtype for the meaning of each. */
void sp_convert(const float *in, size_t count, sp_dtype dtype, void *out);

/* IEEE binary16, round to nearest even. */
uint16_t sp_float_to_half(float value);

#endif
