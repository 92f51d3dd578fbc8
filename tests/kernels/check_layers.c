/*
 * Each set's layers, one strip at a time, against the sum written out: widths with every kind of tail, rows
 * outside the frame, strips cut short, large and tiny numbers; and bytes beside the outputs that must not change.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "engine/cpu/bf16.h"
#include "engine/cpu/kernels.h"
#include "engine/cpu/memory.h"
#include "model/model.h"

enum { GUARD = 0xa5, ROWS = SP_MAX_STRIP + 2, MAX_WIDTH = 88, OUTS_CHECKED = 3 };

static const uint32_t widths[] = {2, 8, 16, 18, 34, 80, 88};

typedef struct job {
    check *check;
    const sp_kernels *kernels;
    const sp_layer *layer;
    const float *kernel, *bias; /* as the set rounds them */
    sp_packed packed;
    sp_lines in, out;
    sp_strip strip;
    float *raw[SP_MAX_STRIP];
    uint32_t lanes;       /* channels in a line */
    uint32_t width, rows; /* rows wanted of the strip */
    bool top;             /* the row above is outside the frame */
    float scale;          /* of the inputs */
} job;

static float get(const sp_kernels *k, const uint8_t *line, uint32_t lane) {
    if (k->precision == SP_PRECISION_BF16)
        return sp_from_bf16(((const uint16_t *)(const void *)line)[lane]);
    return ((const float *)(const void *)line)[lane];
}

static void put(const sp_kernels *k, uint8_t *line, uint32_t lane, float value) {
    if (k->precision == SP_PRECISION_BF16)
        ((uint16_t *)(void *)line)[lane] = sp_to_bf16(value);
    else
        ((float *)(void *)line)[lane] = value;
}

static const uint8_t *line_at(const job *j, uint32_t channel, int row, int x) {
    return j->strip.in[row] + channel / j->lanes * j->in.pitch + (ptrdiff_t)x * SP_LINE;
}

/* One output before bias and ReLU, in double, and the sum of magnitudes. */
static double sum_at(const job *j, uint32_t o, int y, int x, double *magnitude) {
    const int k = j->layer->kernel, half = k / 2;
    double sum = 0;
    for (uint32_t c = 0; c < j->layer->in; c++)
        for (int ky = 0; ky < k; ky++)
            for (int kx = 0; kx < k; kx++) {
                if (x + kx - half < 0 || x + kx - half >= (int)j->width)
                    continue;
                const double w =
                    j->kernel[((o * j->layer->in + c) * (uint32_t)k + (uint32_t)ky) * (uint32_t)k + (uint32_t)kx];
                const double v = get(j->kernels, line_at(j, c, y + ky, x + kx - half), c % j->lanes);
                sum += w * v;
                *magnitude += fabs(w * v);
            }
    return sum;
}

static double expected_at(const job *j, uint32_t o, uint32_t y, uint32_t x, double *magnitude) {
    double best = -INFINITY;
    const uint32_t side = j->layer->pool ? 2 : 1;
    *magnitude = 0;
    for (uint32_t dy = 0; dy < side; dy++)
        for (uint32_t dx = 0; dx < side; dx++)
            best = fmax(best, sum_at(j, o, (int)(y * side + dy), (int)(x * side + dx), magnitude));
    best += j->bias[o];
    *magnitude += fabs((double)j->bias[o]);
    return j->layer->relu && best < 0 ? 0 : best;
}

static void fill_inputs(job *j) {
    memset(j->in.data, 0, (ROWS + 1) * sp_lines_row_bytes(&j->in) + SP_LINE);
    for (uint32_t i = 0; i < j->kernels->rows + 2u; i++) {
        const bool outside = j->layer->kernel == 3 && ((i == 0 && j->top) || i > j->rows + 1);
        j->strip.in[i] = sp_lines_row(&j->in, outside ? -1 : (int64_t)i);
        for (uint32_t c = 0; !outside && c < j->layer->in; c++)
            for (uint32_t x = 0; x < j->width; x++)
                put(j->kernels, sp_lines_row(&j->in, i) + c / j->lanes * j->in.pitch + (size_t)x * SP_LINE,
                    c % j->lanes, ((float)check_random(j->check) / 2e9f - 0.8f) * j->scale);
    }
}

static bool close_to(const job *j, double got, double want, double magnitude) {
    /* float32 sums of a thousand terms; where the result is stored in bf16, half of its last place besides */
    double bound = 4e-6 * magnitude;
    if (j->kernels->precision == SP_PRECISION_BF16 && j->layer->relu)
        bound += fabs(want) / 256;
    return fabs(got - want) <= bound;
}

/* Bytes of the output map that are not a wanted pixel still hold the guard. */
static bool guards_hold(const job *j) {
    const uint32_t shrink = j->layer->pool, rows = j->rows >> shrink, width = j->width >> shrink;
    const uint32_t groups = (j->layer->out + j->lanes - 1) / j->lanes;
    for (uint32_t y = 0; y < ROWS; y++)
        for (uint32_t g = 0; g < j->out.groups; g++) {
            const uint8_t *line = j->out.data + y * sp_lines_row_bytes(&j->out) + g * j->out.pitch;
            for (size_t b = 0; b < j->out.pitch; b++) {
                const bool wanted = y < rows && g < groups && b >= SP_LINE && b < (width + 1) * (size_t)SP_LINE;
                if (!wanted && line[b] != GUARD)
                    return false;
            }
        }
    return true;
}

static void run_strip(job *j) {
    memset(j->out.data, GUARD, (ROWS + 1) * sp_lines_row_bytes(&j->out));
    memset(j->strip.out, 0, sizeof j->strip.out);
    float *raw[SP_MAX_STRIP] = {NULL};
    for (uint32_t i = 0; i < j->rows; i++)
        raw[i] = j->raw[i];
    for (uint32_t i = 0; i < j->rows >> j->layer->pool; i++)
        j->strip.out[i] = j->out.data + i * sp_lines_row_bytes(&j->out) + SP_LINE;
    if (j->kernels->enter)
        j->kernels->enter();
    if (j->layer->kernel == 1)
        j->kernels->head(&j->packed, &j->strip, raw, SP_DESCRIPTOR_DIM);
    else if (j->layer->pool)
        j->kernels->conv_pool(&j->packed, &j->strip);
    else
        j->kernels->conv(&j->packed, &j->strip);
    if (j->kernels->leave)
        j->kernels->leave();
}

static void check_strip(job *j) {
    fill_inputs(j);
    run_strip(j);
    const char *level = sp_cpu_level_text(j->kernels->level), *type = sp_precision_text(j->kernels->precision);
    unsigned wrong = 0;
    for (uint32_t y = 0; y < j->rows >> j->layer->pool; y++)
        for (uint32_t x = 0; x < j->width >> j->layer->pool; x++)
            for (int n = 0; n < OUTS_CHECKED; n++) {
                const uint32_t o = n == 0 ? 0 : n == 1 ? j->layer->out - 1u : check_random(j->check) % j->layer->out;
                const float got =
                    j->layer->kernel == 1
                        ? j->raw[y][x * SP_DESCRIPTOR_DIM + o]
                        : get(j->kernels, j->strip.out[y] + o / j->lanes * j->out.pitch + (size_t)x * SP_LINE,
                              o % j->lanes);
                double magnitude;
                const double want = expected_at(j, o, y, x, &magnitude);
                wrong += !close_to(j, got, want, magnitude);
            }
    check_that(j->check, wrong == 0, "%s %s %s, width %u, %u rows, inputs of %g: %u outputs are wrong", type, level,
               j->layer->name, j->width, j->rows, (double)j->scale, wrong);
    check_that(j->check, j->layer->kernel == 1 || guards_hold(j), "%s %s %s, width %u: writes beside its output", type,
               level, j->layer->name, j->width);
}

static sp_lines make_lines(uint32_t channels, uint32_t lanes, uint32_t width, sp_block *block) {
    sp_lines map = {
        .pitch = sp_lines_pitch(width), .groups = channels / lanes, .rows = ROWS, .width = width, .height = ROWS};
    if (sp_block_alloc(block, (ROWS + 1) * sp_lines_row_bytes(&map) + SP_LINE, "check", NULL) != SP_OK)
        exit(1);
    map.data = block->data;
    return map;
}

static void check_widths(job *j) {
    static const float scales[] = {1, 3e4f, 1e-6f};
    for (size_t i = 0; i < sizeof widths / sizeof widths[0]; i++) {
        sp_block in, out;
        j->width = widths[i];
        j->in = make_lines(j->layer->in, j->lanes, j->width, &in);
        j->out = make_lines(256, j->kernels->lanes[j->layer - sp_network], j->width, &out);
        j->strip.in_pitch = j->in.pitch;
        j->strip.out_pitch = j->out.pitch;
        j->strip.width = j->width;
        j->top = i % 2;
        j->scale = scales[i % 3];
        j->rows = i % 3 == 2 ? j->kernels->rows - 2u + (j->kernels->rows == 2) * 2u : j->kernels->rows;
        check_strip(j);
        sp_block_free(&in);
        sp_block_free(&out);
    }
}

static void check_layer(check *c, const sp_kernels *k, const sp_weights *weights, int index) {
    const sp_layer *layer = &sp_network[index];
    const size_t count = sp_layer_kernel_size(layer);
    sp_block packed, scratch, raw, bias;
    float *rounded = malloc(count * sizeof *rounded);
    if (!rounded || sp_block_alloc(&packed, k->packed_bytes(layer), "check", NULL) != SP_OK ||
        sp_block_alloc(&scratch, k->scratch_bytes, "check", NULL) != SP_OK ||
        sp_block_alloc(&bias, 4096, "check", NULL) != SP_OK ||
        sp_block_alloc(&raw, (size_t)SP_MAX_STRIP * MAX_WIDTH * SP_DESCRIPTOR_DIM * sizeof(float), "check", NULL) !=
            SP_OK)
        exit(1);
    for (size_t i = 0; i < count; i++)
        rounded[i] = k->precision == SP_PRECISION_BF16 ? sp_from_bf16(sp_to_bf16(weights->kernel[index][i]))
                                                       : weights->kernel[index][i];
    memcpy(bias.data, weights->bias[index], layer->out * sizeof(float));
    k->pack(weights, index, packed.data);
    job j = {.check = c,
             .kernels = k,
             .layer = layer,
             .lanes = k->lanes[index],
             .kernel = rounded,
             .bias = weights->bias[index],
             .packed = {layer, packed.data, (float *)(void *)bias.data},
             .strip = {.scratch = scratch.data}};
    for (int i = 0; i < SP_MAX_STRIP; i++)
        j.raw[i] = (float *)(void *)raw.data + (size_t)i * MAX_WIDTH * SP_DESCRIPTOR_DIM;
    check_widths(&j);
    sp_block_free(&packed);
    sp_block_free(&scratch);
    sp_block_free(&raw);
    sp_block_free(&bias);
    free(rounded);
}

/* Mixed sets: check_int8.c, and as a whole check_engine.c. */
void check_layers(check *c, const sp_model *model) {
    for (int p = SP_PRECISION_FP32; p <= SP_PRECISION_FP16; p++)
        for (int level = SP_CPU_C; level <= SP_CPU_NEON; level++) {
            const sp_kernels *k = sp_kernels_find((sp_cpu_level)level, (sp_precision)p);
            if (!k || k->needs_int8_weights || k->level != (sp_cpu_level)level || !sp_cpu_has((sp_cpu_level)level))
                continue;
            for (int i = 1; i < SP_LAYERS; i++) /* layer 0 reads pixels: check_engine.c */
                if (!c->only || strstr(sp_network[i].name, c->only))
                    check_layer(c, k, sp_model_weights(model), i);
        }
}
