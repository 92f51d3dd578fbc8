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

typedef struct key_list {
    sp_key *keys;
    size_t count, room;
} key_list;

/* Room for `more` keys behind those that are there. */
static sp_status reserve(key_list *list, size_t more, sp_error *err) {
    if (list->room - list->count >= more)
        return SP_OK;
    size_t room = 2 * list->room > list->count + more ? 2 * list->room : list->count + more + 4096;
    sp_key *keys = realloc(list->keys, room * sizeof *keys);
    if (!keys)
        return sp_fail_memory(err, "keypoints", room * sizeof *keys);
    list->keys = keys;
    list->room = room;
    return SP_OK;
}

static sp_status collect(const float *scores, uint32_t width, const sp_area *area, float threshold, key_list *list,
                         sp_error *err) {
    if (area->x0 >= area->x1)
        return SP_OK;
    const sp_row_kernels *kernels = sp_row_kernels_best();
    const uint32_t columns = area->x1 - area->x0;
    uint32_t *found = malloc(columns * sizeof *found);
    if (!found)
        return sp_fail_memory(err, "keypoints", columns * sizeof *found);
    sp_status status = SP_OK;
    for (uint32_t y = area->y0; status == SP_OK && y < area->y1; y++) {
        const uint32_t first = y * width + area->x0; /* at most 2^26 pixels */
        const size_t n = kernels->above(scores + first, first, columns, threshold, found);
        status = reserve(list, n, err);
        for (size_t i = 0; status == SP_OK && i < n; i++)
            if (!area->mask || area->mask[found[i]])
                list->keys[list->count++] = make_key(scores[found[i]], found[i]);
    }
    free(found);
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

sp_status sp_select(const float *scores, uint32_t width, const sp_area *area, float threshold, int32_t limit,
                    sp_key **keys, size_t *count, sp_error *err) {
    key_list list = {0};
    *keys = NULL;
    *count = 0;
    sp_status status = limit == 0 ? SP_OK : collect(scores, width, area, threshold, &list, err);
    if (status != SP_OK) {
        free(list.keys);
        return status;
    }
    if (limit > 0 && list.count > (size_t)limit) {
        select_smallest(list.keys, list.count, (size_t)limit);
        list.count = (size_t)limit;
    }
    if (list.count) {
        sp_key *room = malloc(list.count * sizeof *room);
        if (!room) {
            free(list.keys);
            return sp_fail_memory(err, "keypoints", list.count * sizeof *room);
        }
        sort_keys(list.keys, room, list.count);
        free(room);
    }
    *keys = list.keys;
    *count = list.count;
    return SP_OK;
}
