#include "match/pairs.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/fail.h"

/* Pictures of a block are matched with those of another while both are in memory. */
enum { BLOCK = 64 };

static sp_status no_memory(sp_error *err) {
    return fail(err, SP_ERR_MEMORY, "list of pairs: out of memory");
}

static sp_status put(pair_list *list, size_t a, size_t b, sp_error *err) {
    if (list->count == list->room) {
        const size_t room = list->room ? 2 * list->room : 1024;
        pair *more = realloc(list->items, room * sizeof *more);
        if (!more)
            return no_memory(err);
        list->items = more;
        list->room = room;
    }
    list->items[list->count++] = (pair){a, b};
    return SP_OK;
}

void pairs_free(pair_list *list) {
    free(list->items);
    *list = (pair_list){0};
}

static size_t least(size_t a, size_t b) {
    return a < b ? a : b;
}

sp_status pairs_exhaustive(const feature_file *a, const feature_file *b, pair_list *list, sp_error *err) {
    const size_t rows = features_count(a), columns = b ? features_count(b) : rows;
    sp_status status = SP_OK;
    for (size_t i0 = 0; i0 < rows; i0 += BLOCK)
        for (size_t j0 = b ? 0 : i0; j0 < columns; j0 += BLOCK)
            for (size_t i = i0; i < least(i0 + BLOCK, rows); i++)
                for (size_t j = !b && j0 <= i ? i + 1 : j0; j < least(j0 + BLOCK, columns) && status == SP_OK; j++)
                    status = put(list, i, j, err);
    return status;
}

sp_status pairs_sequential(const feature_file *a, size_t overlap, pair_list *list, sp_error *err) {
    const size_t count = features_count(a);
    sp_status status = SP_OK;
    for (size_t i = 0; i < count; i++)
        for (size_t j = i + 1; j < least(i + 1 + overlap, count) && status == SP_OK; j++)
            status = put(list, i, j, err);
    return status;
}

static sp_status put_line(const feature_file *a, const feature_file *b, const char *path, size_t number, char *line,
                          pair_list *list, sp_error *err) {
    char *save = NULL;
    const char *names[2] = {strtok_r(line, " \t\r\n", &save), strtok_r(NULL, " \t\r\n", &save)};
    size_t index[2];
    if (!names[0] || names[0][0] == '#')
        return SP_OK;
    if (!names[1] || strtok_r(NULL, " \t\r\n", &save))
        return fail(err, SP_ERR_ARGUMENT, "%.200s: line %zu is not two names", path, number);
    for (int i = 0; i < 2; i++)
        if (!features_find(i && b ? b : a, names[i], &index[i]))
            return fail(err, SP_ERR_NOT_FOUND, "%.200s: line %zu: there are no features of %.200s", path, number,
                        names[i]);
    return put(list, index[0], index[1], err);
}

sp_status pairs_from_file(const feature_file *a, const feature_file *b, const char *path, pair_list *list,
                          sp_error *err) {
    FILE *file = strcmp(path, "-") == 0 ? stdin : fopen(path, "re");
    if (!file)
        return fail(err, SP_ERR_NOT_FOUND, "%.300s: %s", path, strerror(errno));
    char *line = NULL;
    size_t room = 0;
    sp_status status = SP_OK;
    for (size_t number = 1; status == SP_OK && getline(&line, &room, file) > 0; number++)
        status = put_line(a, b, path, number, line, list, err);
    free(line);
    if (file != stdin)
        fclose(file);
    return status;
}

/* ------------------------------------------------------------------ retrieval ---------------- */

static float element(const sp_descriptors *d, size_t i) {
    if (d->dtype == SP_DTYPE_FLOAT32)
        return ((const float *)d->data)[i];
    if (d->dtype == SP_DTYPE_UINT8)
        return ((float)((const uint8_t *)d->data)[i] - 128) / 256;
    const uint16_t half = ((const uint16_t *)d->data)[i];
    const float value = half & 0x7c00 ? ldexpf((float)(1024 + (half & 1023)), (half >> 10 & 31) - 25)
                                      : ldexpf((float)(half & 1023), -24);
    return half & 0x8000 ? -value : value;
}

/* The mean descriptor of every picture, [count][256]; the caller frees it. */
static sp_status pool(feature_file *f, float **out, sp_error *err) {
    const size_t count = features_count(f);
    float *means = calloc(count, SP_DESCRIPTOR_DIM * sizeof *means);
    sp_status status = means ? SP_OK : no_memory(err);
    for (size_t i = 0; i < count && status == SP_OK; i++) {
        const features *one;
        status = features_get(f, i, &one, err);
        for (size_t p = 0; status == SP_OK && p < one->count; p++)
            for (size_t k = 0; k < SP_DESCRIPTOR_DIM; k++)
                means[i * SP_DESCRIPTOR_DIM + k] +=
                    element(&one->descriptors, p * SP_DESCRIPTOR_DIM + k) / (float)one->count;
    }
    if (status != SP_OK) {
        free(means);
        means = NULL;
    }
    *out = means;
    return status;
}

/* Take `centre` away from every vector, and scale it to length 1. */
static void normalise(float *means, size_t count, const float *centre) {
    for (size_t i = 0; i < count; i++) {
        float *m = means + i * SP_DESCRIPTOR_DIM, squares = 0;
        for (size_t k = 0; k < SP_DESCRIPTOR_DIM; k++) {
            m[k] -= centre[k];
            squares += m[k] * m[k];
        }
        const float scale = squares > 0 ? 1 / sqrtf(squares) : 0;
        for (size_t k = 0; k < SP_DESCRIPTOR_DIM; k++)
            m[k] *= scale;
    }
}

typedef struct candidate {
    float likeness;
    size_t index;
} candidate;

static int by_likeness(const void *a, const void *b) {
    const candidate *x = a, *y = b;
    if (x->likeness != y->likeness)
        return x->likeness < y->likeness ? 1 : -1;
    return (x->index > y->index) - (x->index < y->index);
}

static int by_pair(const void *a, const void *b) {
    const pair *x = a, *y = b;
    return x->a != y->a ? (x->a > y->a) - (x->a < y->a) : (x->b > y->b) - (x->b < y->b);
}

static void drop_repeated(pair_list *list) {
    size_t kept = 0;
    if (list->count)
        qsort(list->items, list->count, sizeof *list->items, by_pair);
    for (size_t i = 0; i < list->count; i++)
        if (!kept || by_pair(&list->items[i], &list->items[kept - 1]) != 0)
            list->items[kept++] = list->items[i];
    list->count = kept;
}

static sp_status choose(const float *from, size_t rows, const float *to, size_t columns, bool within, size_t most,
                        pair_list *list, sp_error *err) {
    candidate *all = malloc((columns + 1) * sizeof *all);
    sp_status status = all ? SP_OK : no_memory(err);
    for (size_t i = 0; i < rows && status == SP_OK; i++) {
        size_t n = 0;
        for (size_t j = 0; j < columns; j++) {
            if (within && j == i)
                continue;
            float sum = 0;
            for (size_t k = 0; k < SP_DESCRIPTOR_DIM; k++)
                sum += from[i * SP_DESCRIPTOR_DIM + k] * to[j * SP_DESCRIPTOR_DIM + k];
            all[n++] = (candidate){sum, j};
        }
        qsort(all, n, sizeof *all, by_likeness);
        for (size_t j = 0; j < least(n, most) && status == SP_OK; j++) {
            const size_t other = all[j].index;
            status = within && other < i ? put(list, other, i, err) : put(list, i, other, err);
        }
    }
    free(all);
    drop_repeated(list);
    return status;
}

sp_status pairs_retrieval(feature_file *a, feature_file *b, size_t most, pair_list *list, sp_error *err) {
    float *from = NULL, *to = NULL, centre[SP_DESCRIPTOR_DIM] = {0};
    sp_status status = pool(a, &from, err);
    if (status == SP_OK && b)
        status = pool(b, &to, err);
    if (status == SP_OK) {
        const float *base = b ? to : from;
        const size_t count = features_count(b ? b : a);
        for (size_t i = 0; i < count; i++)
            for (size_t k = 0; k < SP_DESCRIPTOR_DIM; k++)
                centre[k] += base[i * SP_DESCRIPTOR_DIM + k] / (float)count;
        normalise(from, features_count(a), centre);
        if (b)
            normalise(to, features_count(b), centre);
        status = choose(from, features_count(a), b ? to : from, count, !b, most, list, err);
    }
    free(from);
    free(to);
    return status;
}
