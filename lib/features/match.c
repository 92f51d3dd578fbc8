#include "features/match.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/pool.h"
#include "base/size.h"
#include "features/features.h"

enum {
    /* Groups of rows that stay in the second-level cache while all panels pass: 42 x 12 KB = 0.5 MB. */
    CHUNK_GROUPS = 42,
    CHUNK_ROWS = CHUNK_GROUPS * SP_MATCH_MAX_ROWS,
    ALIGN = 64
};

struct sp_matcher {
    sp_match_options options;
    const sp_match_kernel *kernel;
    sp_pool *pool;
    uint8_t *scratch; /* everything that one call needs */
    size_t room;
};

const sp_match_kernel *sp_match_kernel_get(sp_cpu_level level) {
#if defined(__x86_64__)
    if (level >= SP_CPU_AVX512 && level <= SP_CPU_AMX)
        return &sp_match_kernel_avx512;
    if (level == SP_CPU_AVX2)
        return &sp_match_kernel_avx2;
#else
    (void)level;
#endif
    return &sp_match_kernel_c;
}

/* ------------------------------------------------------------------ descriptors to floats ---- */

static float half_to_float(uint16_t half) {
    const uint32_t sign = (uint32_t)(half & 0x8000) << 16, rest = half & 0x7fff;
    if (rest < 0x0400) { /* a multiple of 2^-24 */
        float value = (float)rest * 0x1p-24f;
        return sign ? -value : value;
    }
    /* Rebias the exponent by 112; infinity and not-a-number keep the largest one. */
    uint32_t bits = sign | (rest >= 0x7c00 ? 0x7f800000u | (rest & 0x3ff) << 13 : (rest << 13) + (112u << 23));
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Rounding to 8 bits changes the length by up to some per cent, which a cosine must not see. */
static void uint8_to_unit(const uint8_t *in, float *out) {
    int32_t squares = 0;
    for (int k = 0; k < SP_DESCRIPTOR_DIM; k++)
        squares += (in[k] - 128) * (in[k] - 128);
    const float scale = squares ? 1.0f / sqrtf((float)squares) : 0.0f;
    for (int k = 0; k < SP_DESCRIPTOR_DIM; k++)
        out[k] = (float)(in[k] - 128) * scale;
}

static void load(const sp_descriptors *set, size_t i, float *out) {
    const size_t first = i * SP_DESCRIPTOR_DIM;
    if (set->dtype == SP_DTYPE_FLOAT32)
        memcpy(out, (const float *)set->data + first, SP_DESCRIPTOR_DIM * sizeof *out);
    else if (set->dtype == SP_DTYPE_UINT8)
        uint8_to_unit((const uint8_t *)set->data + first, out);
    else
        for (size_t k = 0; k < SP_DESCRIPTOR_DIM; k++)
            out[k] = half_to_float(((const uint16_t *)set->data)[first + k]);
}

/* Descriptors [unit * width, ...) interleaved to out[256][width], zeros beyond the last. */
static void interleave(const sp_descriptors *set, size_t unit, uint32_t width, float *out) {
    float one[SP_DESCRIPTOR_DIM];
    for (uint32_t i = 0; i < width; i++) {
        if (unit * width + i < set->count)
            load(set, unit * width + i, one);
        else
            memset(one, 0, sizeof one);
        for (uint32_t k = 0; k < SP_DESCRIPTOR_DIM; k++)
            out[(size_t)k * width + i] = one[k];
    }
}

/* ------------------------------------------------------------------ one call ----------------- */

typedef struct job {
    const sp_match_kernel *kernel;
    const sp_descriptors *a, *b;
    size_t groups, panels, columns; /* columns: of b, rounded up to whole panels */
    float *packed_a, *packed_b;
    sp_nearest rows;       /* [a->count], the result by row */
    sp_nearest *by_column; /* [threads], each [columns] */
    sp_nearest *lanes;     /* [threads], each [CHUNK_ROWS][kernel->columns] */
    uint32_t threads;
} job;

static void pack_task(void *context, size_t first, size_t last, uint32_t thread) {
    job *j = context;
    (void)thread;
    const uint32_t rows = j->kernel->rows, columns = j->kernel->columns;
    for (size_t i = first; i < last; i++)
        if (i < j->groups)
            interleave(j->a, i, rows, j->packed_a + i * rows * SP_DESCRIPTOR_DIM);
        else
            interleave(j->b, i - j->groups, columns, j->packed_b + (i - j->groups) * columns * SP_DESCRIPTOR_DIM);
}

static void clear(sp_nearest n, size_t count) {
    for (size_t i = 0; i < count; i++) {
        n.best[i] = n.second[i] = -INFINITY;
        n.index[i] = -1;
    }
}

static sp_nearest offset(sp_nearest n, size_t by) {
    return (sp_nearest){n.best + by, n.second + by, n.index + by};
}

/* Join one more candidate, which comes later in order: an equal one does not replace. */
static void join(sp_nearest to, size_t i, float best, float second, int32_t index) {
    const float lesser = best > to.best[i] ? to.best[i] : best;
    const float seconds = second > to.second[i] ? second : to.second[i];
    to.second[i] = lesser > seconds ? lesser : seconds;
    if (best > to.best[i]) {
        to.best[i] = best;
        to.index[i] = index;
    }
}

/* The lanes of one row to one result. Lanes are not in order of columns, so ties are settled here. */
static void reduce_row(sp_nearest lanes, uint32_t count, sp_nearest rows, size_t row) {
    uint32_t top = 0;
    for (uint32_t c = 1; c < count; c++)
        if (lanes.best[c] > lanes.best[top] ||
            (lanes.best[c] == lanes.best[top] && (uint32_t)lanes.index[c] < (uint32_t)lanes.index[top]))
            top = c;
    float second = lanes.second[top];
    for (uint32_t c = 0; c < count; c++)
        if (c != top && lanes.best[c] > second)
            second = lanes.best[c];
    rows.best[row] = lanes.best[top];
    rows.second[row] = second;
    rows.index[row] = lanes.index[top];
}

static void multiply_panel(const job *j, size_t panel, size_t first, size_t last, uint32_t thread) {
    const sp_match_kernel *kernel = j->kernel;
    const uint32_t columns = kernel->columns;
    float products[SP_MATCH_MAX_ROWS * SP_MATCH_MAX_COLUMNS];
    const size_t column = panel * columns;
    const uint32_t missing = (uint32_t)(j->columns - j->b->count);
    const bool cut = panel + 1 == j->panels && missing > 0;
    for (size_t g = first; g < last; g++) {
        const size_t row = g * kernel->rows;
        const uint32_t rows = (uint32_t)sp_min_size(kernel->rows, j->a->count - row);
        kernel->multiply(j->packed_a + row * SP_DESCRIPTOR_DIM, j->packed_b + column * SP_DESCRIPTOR_DIM, products);
        for (uint32_t r = 0; cut && r < rows; r++) /* columns that do not exist are nobody's neighbours */
            for (uint32_t c = columns - missing; c < columns; c++)
                products[r * columns + c] = -INFINITY;
        kernel->update(products, rows, (int32_t)row, (int32_t)column,
                       offset(j->lanes[thread], (g - first) * kernel->rows * columns),
                       offset(j->by_column[thread], column));
    }
}

static void search_task(void *context, size_t first, size_t last, uint32_t thread) {
    job *j = context;
    const uint32_t columns = j->kernel->columns;
    clear(j->by_column[thread], j->columns);
    for (size_t chunk = first; chunk < last; chunk += CHUNK_GROUPS) {
        const size_t end = sp_min_size(chunk + CHUNK_GROUPS, last);
        clear(j->lanes[thread], (end - chunk) * j->kernel->rows * columns);
        for (size_t panel = 0; panel < j->panels; panel++)
            multiply_panel(j, panel, chunk, end, thread);
        const size_t row = chunk * j->kernel->rows;
        const size_t rows = sp_min_size(end * j->kernel->rows, j->a->count) - row;
        for (size_t r = 0; r < rows; r++)
            reduce_row(offset(j->lanes[thread], r * columns), columns, j->rows, row + r);
    }
}

/* Later threads have later rows. */
static void merge_columns(const job *j) {
    for (uint32_t t = 1; t < j->threads; t++)
        for (size_t c = 0; c < j->b->count; c++)
            join(j->by_column[0], c, j->by_column[t].best[c], j->by_column[t].second[c], j->by_column[t].index[c]);
}

/* ------------------------------------------------------------------ memory ------------------- */

typedef struct carver {
    uint8_t *base; /* NULL while sizes are added up */
    size_t used;
    bool overflow;
} carver;

static void *carve(carver *c, size_t count, size_t size) {
    size_t bytes, end;
    if (!sp_size_mul(count, size, &bytes) || !sp_size_add(bytes, ALIGN - 1, &bytes) ||
        !sp_size_add(c->used, bytes & ~(size_t)(ALIGN - 1), &end)) {
        c->overflow = true;
        return NULL;
    }
    void *at = c->base ? c->base + c->used : NULL;
    c->used = end;
    return at;
}

static sp_nearest carve_nearest(carver *c, size_t count) {
    sp_nearest n;
    n.best = carve(c, count, sizeof *n.best);
    n.second = carve(c, count, sizeof *n.second);
    n.index = carve(c, count, sizeof *n.index);
    return n;
}

static void lay_out(job *j, carver *c) {
    j->packed_a = carve(c, j->groups * j->kernel->rows, SP_DESCRIPTOR_DIM * sizeof(float));
    j->packed_b = carve(c, j->columns, SP_DESCRIPTOR_DIM * sizeof(float));
    j->rows = carve_nearest(c, j->a->count);
    j->by_column = carve(c, j->threads, sizeof *j->by_column);
    j->lanes = carve(c, j->threads, sizeof *j->lanes);
    for (uint32_t t = 0; t < j->threads; t++) {
        sp_nearest by_column = carve_nearest(c, j->columns);
        sp_nearest lanes = carve_nearest(c, (size_t)CHUNK_ROWS * j->kernel->columns);
        if (c->base) {
            j->by_column[t] = by_column;
            j->lanes[t] = lanes;
        }
    }
}

static sp_status prepare(sp_matcher *m, job *j, sp_error *err) {
    carver sizes = {0};
    lay_out(j, &sizes);
    if (sizes.overflow)
        return sp_fail(err, SP_ERR_LIMIT, "match: too many descriptors");
    if (sizes.used > m->room) {
        free(m->scratch);
        m->room = 0;
        m->scratch = aligned_alloc(ALIGN, sizes.used);
        if (!m->scratch)
            return sp_fail_memory(err, "matching", sizes.used);
        m->room = sizes.used;
    }
    carver places = {.base = m->scratch};
    lay_out(j, &places);
    return SP_OK;
}

/* ------------------------------------------------------------------ choice ------------------- */

/* Squared distance of unit vectors; the two roundings can take it below 0. */
static float squared_distance(float similarity) {
    const float d = 2.0f - 2.0f * similarity;
    return d > 0.0f ? d : 0.0f;
}

static bool passes(const sp_match_options *o, float best, float second) {
    const float d = squared_distance(best);
    if (!(d <= o->max_distance * o->max_distance))
        return false;
    return o->max_ratio >= 1.0f || second == -INFINITY || d <= o->max_ratio * o->max_ratio * squared_distance(second);
}

static bool accepted(const sp_match_options *o, const job *j, size_t row) {
    const int32_t column = j->rows.index[row];
    if (column < 0 || !passes(o, j->rows.best[row], j->rows.second[row]))
        return false;
    if (!o->mutual)
        return true;
    const sp_nearest *columns = &j->by_column[0];
    return columns->index[column] == (int32_t)row && passes(o, columns->best[column], columns->second[column]);
}

static sp_status collect(const sp_match_options *o, const job *j, sp_matches *out, sp_error *err) {
    size_t count = 0;
    for (size_t row = 0; row < j->a->count; row++)
        count += accepted(o, j, row);
    if (count == 0)
        return SP_OK;
    const size_t bytes = count * (2 * sizeof *out->pairs + sizeof *out->similarities);
    out->memory = malloc(bytes);
    if (!out->memory)
        return sp_fail_memory(err, "matches", bytes);
    out->pairs = out->memory;
    out->similarities = (float *)(out->pairs + 2 * count);
    for (size_t row = 0; row < j->a->count; row++)
        if (accepted(o, j, row)) {
            out->pairs[2 * out->count] = (uint32_t)row;
            out->pairs[2 * out->count + 1] = (uint32_t)j->rows.index[row];
            out->similarities[out->count++] = j->rows.best[row];
        }
    return SP_OK;
}

/* ------------------------------------------------------------------ the public calls --------- */

void sp_match_options_default(sp_match_options *options) {
    *options = (sp_match_options){.struct_size = sizeof *options, .mutual = true, .max_ratio = 1, .max_distance = 2};
}

static sp_status complete(const sp_match_options *given, sp_match_options *o, sp_cpu_level *level, sp_error *err) {
    sp_match_options_default(o);
    if (given) {
        if (given->struct_size < sizeof(size_t) || given->struct_size > sizeof *o)
            return sp_fail(err, SP_ERR_ARGUMENT, "match options: struct_size %zu is not of this version",
                           given->struct_size);
        memcpy(o, given, given->struct_size);
    }
    if (!(o->max_ratio > 0 && o->max_ratio <= 1))
        return sp_fail(err, SP_ERR_ARGUMENT, "max_ratio: %g is not above 0 and at most 1", (double)o->max_ratio);
    if (!(o->max_distance > 0 && o->max_distance <= 2))
        return sp_fail(err, SP_ERR_ARGUMENT, "max_distance: %g is not above 0 and at most 2", (double)o->max_distance);
    *level = sp_cpu_best();
    const char *name = o->level ? o->level : getenv("SUPERPOINT_CPU");
    if (name && *name && !sp_cpu_level_parse(name, level))
        return sp_fail(err, SP_ERR_ARGUMENT, "level: \"%s\" is not known", name);
    if (!sp_cpu_has(*level))
        return sp_fail(err, SP_ERR_UNAVAILABLE, "level: this processor has no %s", sp_cpu_level_text(*level));
    return SP_OK;
}

sp_status sp_matcher_create(const sp_match_options *options, sp_matcher **matcher, sp_error *err) {
    *matcher = NULL;
    sp_match_options o;
    sp_cpu_level level;
    sp_status status = complete(options, &o, &level, err);
    if (status != SP_OK)
        return status;
    sp_matcher *m = calloc(1, sizeof *m);
    if (!m)
        return sp_fail_memory(err, "matcher", sizeof *m);
    m->options = o;
    m->options.level = NULL; /* the caller's string is not kept */
    m->kernel = sp_match_kernel_get(level);
    status = sp_pool_create(o.threads ? o.threads : sp_cpu_count(), &m->pool, err);
    if (status != SP_OK) {
        free(m);
        return status;
    }
    *matcher = m;
    return sp_succeed(err);
}

void sp_matcher_free(sp_matcher *m) {
    if (!m)
        return;
    sp_pool_free(m->pool);
    free(m->scratch);
    free(m);
}

static sp_status check_set(const char *name, const sp_descriptors *set, sp_error *err) {
    if (set->count > SP_MAX_MATCH_DESCRIPTORS)
        return sp_fail(err, SP_ERR_LIMIT, "descriptors %s: %zu are more than %d", name, set->count,
                       SP_MAX_MATCH_DESCRIPTORS);
    if ((unsigned)set->dtype > SP_DTYPE_UINT8)
        return sp_fail(err, SP_ERR_ARGUMENT, "descriptors %s: dtype %d is not known", name, (int)set->dtype);
    if (set->count && !set->data)
        return sp_fail(err, SP_ERR_ARGUMENT, "descriptors %s: %zu are said, none is given", name, set->count);
    return SP_OK;
}

sp_status sp_match(sp_matcher *m, const sp_descriptors *a, const sp_descriptors *b, sp_matches *matches,
                   sp_error *err) {
    memset(matches, 0, sizeof *matches);
    sp_status status = check_set("a", a, err);
    if (status == SP_OK)
        status = check_set("b", b, err);
    if (status != SP_OK)
        return status;
    if (a->count == 0 || b->count == 0)
        return sp_succeed(err);
    const sp_match_kernel *kernel = m->kernel;
    job j = {.kernel = kernel, .a = a, .b = b};
    j.groups = (a->count + kernel->rows - 1) / kernel->rows;
    j.panels = (b->count + kernel->columns - 1) / kernel->columns;
    j.columns = j.panels * kernel->columns;
    j.threads = sp_pool_threads(m->pool);
    status = prepare(m, &j, err);
    if (status != SP_OK)
        return status;
    for (uint32_t t = 0; t < j.threads; t++) /* a thread without rows never runs */
        clear(j.by_column[t], j.columns);
    sp_pool_run(m->pool, j.groups + j.panels, pack_task, &j);
    sp_pool_run(m->pool, j.groups, search_task, &j);
    merge_columns(&j);
    status = collect(&m->options, &j, matches, err);
    return status == SP_OK ? sp_succeed(err) : status;
}

void sp_matches_free(sp_matches *matches) {
    free(matches->memory);
    memset(matches, 0, sizeof *matches);
}
