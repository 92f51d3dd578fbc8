/*
 * The layers in int8, one strip at a time, against sums of integers written out: every bit, since nothing is rounded
 * but the result. Where a channel lies in a line and in the weights is worked out here from int8.h.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "engine/cpu/bf16.h"
#include "engine/cpu/int8.h"
#include "engine/cpu/memory.h"
#include "model/model.h"

enum { GUARD = 0xa5, ROWS = 4, MAX_WIDTH = 80, OUTS_CHECKED = 5, TILE = 1024 };

static const uint32_t widths[] = {2, 8, 16, 18, 34, MAX_WIDTH};

typedef struct job {
    check *check;
    const sp_kernels *kernels;
    sp_packed packed;
    const sp_int8_outputs *outputs;
    int index;
    sp_lines in, out;
    sp_strip strip;
    uint32_t width, rows;
} job;

/* Place of a channel among the 64 bytes of a line. */
static uint32_t place(uint32_t channel) {
    const uint32_t half = channel % 64 / 32, register_ = channel % 32 / 16, lane = channel % 16 / 4;
    return 32 * half + 8 * lane + 4 * register_ + channel % 4;
}

static int weight(const job *j, uint32_t o, uint32_t i, int ky, int kx) {
    const uint32_t groups = j->packed.layer->in / 64u, p = place(i);
    const size_t tile = ((size_t)(o / 16 * 3 + (uint32_t)ky) * groups + i / 64) * 3 + (uint32_t)kx;
    return ((const int8_t *)j->packed.weights)[tile * TILE + p / 4 * 64 + o % 16 * 4 + p % 4];
}

static int32_t sum_at(const job *j, uint32_t o, int y, int x) {
    int32_t sum = 0;
    for (int ky = 0; ky < 3; ky++)
        for (int kx = 0; kx < 3; kx++)
            for (uint32_t i = 0; i < j->packed.layer->in; i++)
                sum += weight(j, o, i, ky, kx) *
                       (j->strip.in[y + ky] + i / 64 * j->in.pitch)[(ptrdiff_t)(x + kx - 1) * SP_LINE + place(i)];
    return sum;
}

/* The output before it is rounded to its type. */
static float expected_at(const job *j, uint32_t o, int y, int x) {
    const int side = j->packed.layer->pool ? 2 : 1;
    int32_t most = INT32_MIN;
    for (int dy = 0; dy < side; dy++)
        for (int dx = 0; dx < side; dx++) {
            const int32_t sum = sum_at(j, o, y * side + dy, x * side + dx);
            most = sum > most ? sum : most;
        }
    return fmaf((float)most, j->outputs->factor[o], j->outputs->offset[o]);
}

static bool right(const job *j, uint32_t o, uint32_t y, uint32_t x) {
    const float value = expected_at(j, o, (int)y, (int)x);
    const uint32_t lanes = j->kernels->lanes[j->index];
    const uint8_t *line = j->strip.out[y] + o / lanes * j->out.pitch + (size_t)x * SP_LINE;
    if (lanes == SP_INT8_LANES)
        return line[place(o)] == (uint8_t)fminf(fmaxf(nearbyintf(value), 0), 255);
    uint16_t got;
    memcpy(&got, line + o % lanes * sizeof got, sizeof got);
    return got == sp_to_bf16(fmaxf(value, 0));
}

static bool guards_hold(const job *j) {
    const sp_layer *layer = j->packed.layer;
    const uint32_t rows = j->rows >> layer->pool, width = j->width >> layer->pool;
    for (uint32_t y = 0; y < ROWS; y++)
        for (uint32_t g = 0; g < j->out.groups; g++) {
            const uint8_t *line = j->out.data + y * sp_lines_row_bytes(&j->out) + g * j->out.pitch;
            const bool wanted_row = y < rows && g < layer->out / (uint32_t)j->kernels->lanes[j->index];
            for (size_t b = 0; b < j->out.pitch; b++)
                if (!(wanted_row && b >= SP_LINE && b < (width + 1) * (size_t)SP_LINE) && line[b] != GUARD)
                    return false;
        }
    return true;
}

static void fill(job *j) {
    memset(j->in.data, 0, (ROWS + 1) * sp_lines_row_bytes(&j->in) + SP_LINE);
    memset(j->out.data, GUARD, (ROWS + 1) * sp_lines_row_bytes(&j->out));
    for (uint32_t i = 0; i < ROWS; i++) {
        uint8_t *row = sp_lines_row(&j->in, i);
        j->strip.in[i] = row;
        for (uint32_t g = 0; g < j->in.groups; g++)
            for (size_t b = 0; b < (size_t)j->width * SP_LINE; b++)
                row[g * j->in.pitch + b] = (uint8_t)(check_random(j->check) >> 24);
    }
    memset(j->strip.out, 0, sizeof j->strip.out);
    for (uint32_t i = 0; i < j->rows >> j->packed.layer->pool; i++)
        j->strip.out[i] = sp_lines_row(&j->out, i);
}

static void check_strip(job *j) {
    const sp_kernels *k = j->kernels;
    const sp_layer *layer = j->packed.layer;
    fill(j);
    if (k->enter)
        k->enter();
    (layer->pool ? k->conv_pool : k->conv)(&j->packed, &j->strip);
    if (k->leave)
        k->leave();
    unsigned wrong = 0;
    for (uint32_t y = 0; y < j->rows >> layer->pool; y++)
        for (uint32_t x = 0; x < j->width >> layer->pool; x++)
            for (int n = 0; n < OUTS_CHECKED; n++)
                wrong += !right(j, check_random(j->check) % layer->out, y, x);
    check_that(j->check, wrong == 0, "int8 %s %s, width %u, %u rows: %u outputs are wrong", sp_cpu_level_text(k->level),
               layer->name, j->width, j->rows, wrong);
    check_that(j->check, guards_hold(j), "int8 %s %s, width %u: writes beside its output", sp_cpu_level_text(k->level),
               layer->name, j->width);
}

static sp_lines make_lines(uint32_t groups, uint32_t width, sp_block *block) {
    sp_lines map = {.pitch = sp_lines_pitch(width), .groups = groups, .rows = ROWS, .width = width, .height = ROWS};
    if (sp_block_alloc(block, (ROWS + 1) * sp_lines_row_bytes(&map) + SP_LINE, "check", NULL) != SP_OK)
        exit(1);
    map.data = block->data;
    return map;
}

static void check_layer(check *c, const sp_kernels *k, const sp_weights *weights, int index) {
    const sp_layer *layer = &sp_network[index];
    sp_block packed, scratch, in, out;
    if (sp_block_alloc(&packed, k->packed_bytes(layer), "check", NULL) != SP_OK ||
        sp_block_alloc(&scratch, k->scratch_bytes, "check", NULL) != SP_OK)
        exit(1);
    k->pack(weights, index, packed.data);
    job j = {.check = c,
             .kernels = k,
             .packed = {layer, packed.data, weights->bias[index]},
             .index = index,
             .strip = {.scratch = scratch.data}};
    j.outputs = sp_int8_outputs_of(&j.packed);
    for (size_t i = 0; i < sizeof widths / sizeof widths[0]; i++) {
        j.width = j.strip.width = widths[i];
        j.rows = layer->pool || i % 2 == 0 ? k->rows : 1;
        j.in = make_lines(layer->in / SP_INT8_LANES, j.width, &in);
        j.out = make_lines(4, j.width, &out);
        j.strip.in_pitch = j.in.pitch;
        j.strip.out_pitch = j.out.pitch;
        check_strip(&j);
        sp_block_free(&in);
        sp_block_free(&out);
    }
    sp_block_free(&packed);
    sp_block_free(&scratch);
}

void check_int8(check *c, const sp_model *model) {
    const sp_weights *weights = sp_model_weights(model);
    for (int level = SP_CPU_C; weights->int8 && level <= SP_CPU_NEON; level++) {
        const sp_kernels *k = sp_kernels_find((sp_cpu_level)level, SP_PRECISION_INT8);
        if (!k || k->level != (sp_cpu_level)level || !sp_cpu_has((sp_cpu_level)level))
            continue;
        for (int i = SP_INT8_FIRST; i <= SP_INT8_LAST; i++)
            if (!c->only || strstr(sp_network[i].name, c->only) || strcmp(c->only, "int8") == 0)
                check_layer(c, k, weights, i);
    }
}
