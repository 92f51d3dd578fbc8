#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/size.h"
#include "features/features.h"

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

static int by_key(const void *a, const void *b) {
    const sp_key x = *(const sp_key *)a, y = *(const sp_key *)b;
    return (x > y) - (x < y);
}

typedef struct key_list {
    sp_key *keys;
    size_t count, room;
} key_list;

static sp_status grow(key_list *list, sp_error *err) {
    size_t room = list->room ? 2 * list->room : 4096;
    sp_key *keys = realloc(list->keys, room * sizeof *keys);
    if (!keys)
        return sp_fail_memory(err, "keypoints", room * sizeof *keys);
    list->keys = keys;
    list->room = room;
    return SP_OK;
}

static sp_status collect(const float *scores, uint32_t width, const sp_area *area, float threshold, key_list *list,
                         sp_error *err) {
    for (uint32_t y = area->y0; y < area->y1; y++) {
        const size_t row = (size_t)y * width;
        for (uint32_t x = area->x0; x < area->x1; x++) {
            if (!(scores[row + x] > threshold) || (area->mask && !area->mask[row + x]))
                continue;
            if (list->count == list->room && grow(list, err) != SP_OK)
                return SP_ERR_MEMORY;
            list->keys[list->count++] = make_key(scores[row + x], (uint32_t)(row + x));
        }
    }
    return SP_OK;
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
    if (list.count)
        qsort(list.keys, list.count, sizeof *list.keys, by_key);
    *keys = list.keys;
    *count = list.count;
    return SP_OK;
}
