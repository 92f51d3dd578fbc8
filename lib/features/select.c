#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/size.h"
#include "features/features.h"
#include "features/rows.h"

/* Scores are at least 0, where the order of floats is the order of their bits; inverted, so that
 * ascending keys are descending scores, then ascending pixels. */
static sp_key make_key(float score, uint32_t pixel) {
    uint32_t bits;
    memcpy(&bits, &score, sizeof bits);
    return (sp_key)~bits << 32 | pixel;
}

uint32_t sp_key_pixel(sp_key key) {
    return (uint32_t)key;
}

float sp_key_score(sp_key key) {
    uint32_t bits = ~(uint32_t)(key >> 32);
    float score;
    memcpy(&score, &bits, sizeof score);
    return score;
}

struct sp_selection {
    const sp_row_kernels *kernels;
    sp_area area;
    uint32_t width;
    float threshold;
    int32_t limit;
    uint32_t *found; /* of one row */
    sp_key *keys;
    size_t count, room;
};

/* Room for `more` keys behind those that are there. */
static sp_status reserve(sp_selection *s, size_t more, sp_error *err) {
    if (s->room - s->count >= more)
        return SP_OK;
    size_t room = 2 * s->room > s->count + more ? 2 * s->room : s->count + more + 4096;
    sp_key *keys = realloc(s->keys, room * sizeof *keys);
    if (!keys)
        return sp_fail_memory(err, "keypoints", room * sizeof *keys);
    s->keys = keys;
    s->room = room;
    return SP_OK;
}

sp_status sp_selection_begin(uint32_t width, const sp_area *area, float threshold, int32_t limit,
                             sp_selection **selection, sp_error *err) {
    sp_selection *s = calloc(1, sizeof *s);
    uint32_t *found = malloc(width * sizeof *found);
    *selection = s;
    if (!s || !found) {
        free(s);
        free(found);
        *selection = NULL;
        return sp_fail_memory(err, "keypoints", width * sizeof *found);
    }
    *s = (sp_selection){.kernels = sp_row_kernels_best(),
                        .area = *area,
                        .width = width,
                        .threshold = threshold,
                        .limit = limit,
                        .found = found};
    return SP_OK;
}

sp_status sp_selection_row(void *selection, uint32_t y, const float *row, sp_error *err) {
    sp_selection *s = selection;
    const sp_area *area = &s->area;
    if (s->limit == 0 || y < area->y0 || y >= area->y1 || area->x0 >= area->x1)
        return SP_OK;
    const size_t n = s->kernels->above(row + area->x0, area->x0, area->x1 - area->x0, s->threshold, s->found);
    const sp_status status = reserve(s, n, err);
    for (size_t i = 0; status == SP_OK && i < n; i++) {
        const uint32_t pixel = y * s->width + s->found[i]; /* at most 2^26 of them */
        if (!area->mask || area->mask[pixel])
            s->keys[s->count++] = make_key(row[s->found[i]], pixel);
    }
    return status;
}

/* Move the `n` smallest keys to the front (Hoare's quickselect, middle element as pivot; keys are
 * all different, since pixels are). */
static void select_smallest(sp_key *keys, size_t count, size_t n) {
    size_t low = 0, high = count;
    while (high - low > 1) {
        sp_key pivot = keys[low + (high - low) / 2];
        size_t i = low, j = high - 1;
        for (;;) {
            while (keys[i] < pivot)
                i++;
            while (keys[j] > pivot)
                j--;
            if (i >= j)
                break;
            sp_key t = keys[i];
            keys[i++] = keys[j];
            keys[j--] = t;
        }
        /* [low, i) <= pivot <= [i, high), and i > low unless the pivot is the smallest */
        size_t split = keys[i] < pivot ? i + 1 : i;
        if (split == low)
            split = low + 1;
        if (n < split)
            high = split;
        else
            low = split;
        if (n == low || n == high)
            return;
    }
}

/* Sort by one byte after another from the lowest, each pass keeping the order of the one before;
 * bytes that all keys share take no pass. `room` is as large as `keys`; the result is in `keys`. */
static void sort_keys(sp_key *keys, sp_key *room, size_t count) {
    enum { BYTES = sizeof(sp_key), VALUES = 256 };
    size_t counts[BYTES][VALUES] = {{0}};
    for (size_t i = 0; i < count; i++)
        for (int b = 0; b < BYTES; b++)
            counts[b][keys[i] >> 8 * b & 255]++;
    sp_key *from = keys, *to = room;
    for (int b = 0; b < BYTES; b++) {
        if (counts[b][keys[0] >> 8 * b & 255] == count)
            continue;
        size_t at[VALUES], sum = 0;
        for (int v = 0; v < VALUES; v++) {
            at[v] = sum;
            sum += counts[b][v];
        }
        for (size_t i = 0; i < count; i++)
            to[at[from[i] >> 8 * b & 255]++] = from[i];
        sp_key *t = from;
        from = to;
        to = t;
    }
    if (from != keys)
        memcpy(keys, from, count * sizeof *keys);
}

static void selection_free(sp_selection *s) {
    free(s->found);
    free(s->keys);
    free(s);
}

sp_status sp_selection_end(sp_selection *s, sp_key **keys, size_t *count, sp_error *err) {
    if (!keys) {
        selection_free(s);
        return SP_OK;
    }
    *keys = NULL;
    *count = 0;
    if (s->limit > 0 && s->count > (size_t)s->limit) {
        select_smallest(s->keys, s->count, (size_t)s->limit);
        s->count = (size_t)s->limit;
    }
    if (s->count) {
        sp_key *room = malloc(s->count * sizeof *room);
        if (!room) {
            const size_t bytes = s->count * sizeof *room;
            selection_free(s);
            return sp_fail_memory(err, "keypoints", bytes);
        }
        sort_keys(s->keys, room, s->count);
        free(room);
        *keys = s->keys;
        *count = s->count;
        s->keys = NULL;
    }
    selection_free(s);
    return SP_OK;
}

sp_status sp_select(const float *scores, uint32_t width, const sp_area *area, float threshold, int32_t limit,
                    sp_key **keys, size_t *count, sp_error *err) {
    *keys = NULL;
    *count = 0;
    sp_selection *s = NULL;
    sp_status status = sp_selection_begin(width, area, threshold, limit, &s, err);
    for (uint32_t y = area->y0; status == SP_OK && y < area->y1; y++)
        status = sp_selection_row(s, y, scores + (size_t)y * width, err);
    if (status != SP_OK) {
        if (s)
            sp_selection_end(s, NULL, NULL, NULL);
        return status;
    }
    return sp_selection_end(s, keys, count, err);
}
