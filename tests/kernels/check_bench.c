/* Speed of each kernel on one core beside what its instructions could do. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "check.h"
#include "engine/cpu/memory.h"
#include "engine/cpu/plan.h"

enum { WIDTH = 640, ROUNDS = 60, ROWS = SP_MAX_STRIP + 2 };

typedef struct bench {
    check *check;
    const sp_kernels *kernels;
    const sp_weights *weights;
    double best_peak; /* multiplications a millisecond */
} bench;

static void measure_peak(bench *b) {
    static _Alignas(SP_LINE) float numbers[SP_PEAK_BYTES / sizeof(float)];
    for (size_t i = 0; i < SP_PEAK_BYTES / sizeof(float); i++)
        numbers[i] = (float)check_random(b->check) / 4e9f - 0.5f;
    double start = sp_now_ms();
    uint64_t done = b->kernels->peak(numbers, 4000);
    double rate = (double)done / (sp_now_ms() - start);
    b->best_peak = rate > b->best_peak ? rate : b->best_peak;
}

static sp_lines make_lines(uint32_t channels, uint32_t lanes, uint32_t width, sp_block *block) {
    sp_lines map = {
        .pitch = sp_lines_pitch(width), .groups = channels / lanes, .rows = ROWS, .width = width, .height = ROWS};
    if (sp_block_alloc(block, (ROWS + 1) * sp_lines_row_bytes(&map) + SP_LINE, "bench", NULL) != SP_OK)
        exit(1);
    map.data = block->data;
    return map;
}

/* What layer 0 makes of a row of random pixels, in all rows and groups: half of it zeros, as behind any ReLU. */
static void fill_lines(bench *b, const uint8_t *const pixels[3], sp_lines *map, uint8_t *room) {
    const sp_kernels *k = b->kernels;
    const sp_layer *layer = &sp_network[0];
    sp_block weights;
    if (sp_block_alloc(&weights, k->packed_bytes(layer) + 4096, "bench", NULL) != SP_OK)
        exit(1);
    float *bias = (float *)(weights.data + k->packed_bytes(layer));
    memcpy(bias, b->weights->bias[0], layer->out * sizeof *bias);
    k->pack(b->weights, 0, weights.data);
    const sp_packed packed = {layer, weights.data, bias};
    for (int y = 0; y < ROWS; y++)
        for (uint32_t g = 0; g + layer->out / k->lanes[0] <= map->groups; g += layer->out / k->lanes[0])
            k->first(&packed, pixels, map->width, sp_lines_row(map, y) + g * map->pitch, map->pitch, room);
    sp_block_free(&weights);
}

/* One layer on a strip of rows at the size it has in a frame of WIDTH. */
static void bench_layer(bench *b, int index) {
    const sp_kernels *k = b->kernels;
    const sp_layer *layer = &sp_network[index];
    const uint32_t width = WIDTH >> layer->shrink;
    sp_block weights, inputs, outputs, room;
    sp_block_alloc(&weights, k->packed_bytes(layer) + 4096, "bench", NULL);
    sp_block_alloc(&room, k->scratch_bytes + sp_first_room(WIDTH), "bench", NULL);
    float *bias = (float *)(weights.data + k->packed_bytes(layer));
    memcpy(bias, b->weights->bias[index], layer->out * sizeof *bias);
    k->pack(b->weights, index, weights.data);
    sp_packed packed = {layer, weights.data, bias};
    const uint32_t from = index ? k->lanes[index == SP_DESCRIPTOR_A ? SP_ENCODER_END - 1 : index - 1] : k->lanes[0];
    sp_lines in = make_lines(index ? layer->in : 64, from, width, &inputs);
    sp_lines out = make_lines(layer->out < 256 ? 128 : 256, k->lanes[index], width, &outputs);
    float *raw = aligned_alloc(SP_LINE, (size_t)SP_MAX_STRIP * width * SP_DESCRIPTOR_DIM * sizeof *raw);
    sp_strip strip = {.in_pitch = in.pitch, .width = width, .out_pitch = out.pitch, .scratch = room.data};
    float *heads[SP_MAX_STRIP] = {NULL};
    for (uint32_t i = 0; i < k->rows + 2; i++)
        strip.in[i] = sp_lines_row(&in, i);
    for (uint32_t i = 0; i < k->rows; i++) {
        heads[i] = raw + (size_t)i * width * SP_DESCRIPTOR_DIM;
        if (i < k->rows >> layer->pool)
            strip.out[i] = sp_lines_row(&out, i);
    }
    static uint8_t pixels[WIDTH];
    for (int i = 0; i < WIDTH; i++)
        pixels[i] = (uint8_t)check_random(b->check);
    const uint8_t *rows[3] = {pixels, pixels, pixels};
    fill_lines(b, rows, &in, room.data + k->scratch_bytes);
    double best = 1e9;
    for (int round = 0; round < ROUNDS; round++) {
        measure_peak(b);
        double start = sp_now_ms();
        if (index == 0)
            k->first(&packed, rows, width, strip.out[0], out.pitch, room.data + k->scratch_bytes);
        else if (layer->kernel == 1)
            k->head(&packed, &strip, heads, SP_DESCRIPTOR_DIM);
        else if (layer->pool)
            k->conv_pool(&packed, &strip);
        else
            k->conv(&packed, &strip);
        double ms = sp_now_ms() - start;
        best = ms < best ? ms : best;
    }
    const double macs = (double)sp_layer_kernel_size(layer) * width * (index ? k->rows : 1);
    const double rows_a_frame = (double)(480 >> layer->shrink) / (index ? k->rows : 1);
    printf("  layer %2d %8.1f us a strip, %7.1f GMAC/s, %5.1f %% of peak, %6.2f ms a frame of 640x480\n", index,
           best * 1e3, macs / best / 1e6, 100 * macs / best / b->best_peak, best * rows_a_frame);
    sp_block_free(&weights);
    sp_block_free(&inputs);
    sp_block_free(&outputs);
    sp_block_free(&room);
    free(raw);
}

void bench_kernels(check *c, const sp_model *model) {
    static const sp_precision precisions[] = {SP_PRECISION_FP32, SP_PRECISION_BF16, SP_PRECISION_INT8};
    for (size_t p = 0; p < sizeof precisions / sizeof precisions[0]; p++)
        for (int level = SP_CPU_C; level <= SP_CPU_NEON; level++) {
            const sp_kernels *k = sp_kernels_find((sp_cpu_level)level, precisions[p]);
            if (!sp_cpu_has((sp_cpu_level)level) || !k || k->level != (sp_cpu_level)level ||
                (k->needs_int8_weights && !sp_model_weights(model)->int8))
                continue;
            if (c->only && !strstr(sp_cpu_level_text(k->level), c->only) &&
                !strstr(sp_precision_text(k->precision), c->only))
                continue;
            bench b = {.check = c, .kernels = k, .weights = sp_model_weights(model)};
            printf("%s %s\n", sp_precision_text(k->precision), sp_cpu_level_text(k->level));
            if (k->enter)
                k->enter();
            for (int i = 0; i < SP_LAYERS; i++)
                bench_layer(&b, i);
            if (k->leave)
                k->leave();
            printf("  peak %.1f GMAC/s a core\n", b.best_peak / 1e6);
        }
}
