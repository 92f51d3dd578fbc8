/*
 * A frame walks through the network in bands of rows. Each layer goes as far as the rows of its
 * input allow, keeps the few rows that the next band will need again, and the next layer follows.
 * A band is chosen so that what lies between the layers stays in the cache.
 *
 * Two places are fused: the first two layers (the largest map lives only in a few rows of each
 * thread), and the heads (from the encoder's last map to the two results, a strip of rows at a time).
 */
#include "engine/cpu/plan.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/size.h"
#include "engine/cpu/memory.h"

enum {
    /* Rows between the layers (all windows together) that a band may fill. */
    WINDOW_BYTES = 24 << 20,
    /* Rows of layer 0 that a thread keeps for layer 1: half of the second-level cache where bf16 is the usual
     * precision. A wider frame is cut into columns for it. */
    FIRST_BYTES = 1 << 20,
    /* Columns overlap by a block on each side, of which layer 1 needs one pixel. */
    MARGIN = SP_BLOCK_PIXELS,
    /* Fewest rows of cells in a band: below that, threads wait for each other more than they work. */
    MIN_BAND_CELLS = 4
};

/* The map after layer i (1...7), pooling included. */
typedef struct stage {
    sp_lines map;
    uint32_t done; /* rows of it that have been made in this frame */
} stage;

typedef struct thread_room {
    uint8_t *scratch;
    sp_lines first;  /* layer 0 */
    uint8_t *pixels; /* layer 0's room */
    sp_lines hidden; /* a head's 256 channels, one strip */
    float *logits;   /* one strip of cells */
} thread_room;

struct sp_plan {
    const sp_kernels *kernels;
    sp_pool *pool;
    sp_packed layers[SP_LAYERS];
    sp_block weights;
    uint32_t band_cells; /* asked for; 0: chosen by size */

    uint32_t width, height; /* of the frame that the windows are made for */
    uint32_t band;          /* rows of cells in a band */
    uint32_t column;        /* pixels of width that layers 0 and 1 work on at once */
    sp_block windows;
    stage stages[SP_ENCODER_END]; /* [0] is not used: it lives in the threads' rooms */
    thread_room *rooms;

    /* Of the running frame. */
    const sp_frame *frame;
    sp_maps *maps;
    /* Of the running step. */
    sp_pool_task *task;
    int layer;
    uint32_t from, until; /* rows of the layer's own output, before pooling */
};

/* ---------------------------------------------------------------- weights -------------------- */

static size_t bias_floats(const sp_layer *layer) {
    return sp_round_up(layer->out, SP_OUT_UNIT);
}

static sp_status pack_all(sp_plan *plan, const sp_weights *weights, sp_error *err) {
    size_t at[SP_LAYERS], total = 0;
    for (int i = 0; i < SP_LAYERS; i++) {
        at[i] = total;
        total += sp_round_up(plan->kernels->packed_bytes(&sp_network[i]), SP_LINE) +
                 sp_round_up(bias_floats(&sp_network[i]) * sizeof(float), SP_LINE);
    }
    sp_status status = sp_block_alloc(&plan->weights, total, "packed weights", err);
    for (int i = 0; status == SP_OK && i < SP_LAYERS; i++) {
        const sp_layer *layer = &sp_network[i];
        uint8_t *to = plan->weights.data + at[i];
        float *bias = (float *)(to + sp_round_up(plan->kernels->packed_bytes(layer), SP_LINE));
        plan->kernels->pack(weights, i, to);
        memcpy(bias, weights->bias[i], layer->out * sizeof *bias); /* the rest of the block is zero */
        plan->layers[i] = (sp_packed){layer, to, bias};
    }
    return status;
}

/* ---------------------------------------------------------------- rows ----------------------- */

static uint32_t rows_after(const sp_plan *plan, int layer) {
    return (plan->height >> sp_network[layer].shrink) >> sp_network[layer].pool;
}

/* Rows of a layer's output, before pooling, that its input allows: all but the last where the input
 * is not complete, and whole strips. */
static uint32_t rows_possible(const sp_plan *plan, uint32_t input_done, uint32_t input_rows) {
    if (input_done == input_rows)
        return input_rows;
    return input_done ? (input_done - 1) / plan->kernels->rows * plan->kernels->rows : 0;
}

/* How many rows each stage has after band `band`; `done` has the state before it. */
static void advance(const sp_plan *plan, uint32_t band, uint32_t done[SP_ENCODER_END]) {
    uint64_t pooled = (uint64_t)(band + 1) * plan->band * (SP_CELL / 2);
    uint32_t rows = plan->height / 2;
    done[1] = pooled < rows ? (uint32_t)pooled : rows;
    for (int i = 2; i < SP_ENCODER_END; i++)
        done[i] = rows_possible(plan, done[i - 1], rows_after(plan, i - 1)) >> sp_network[i].pool;
}

static uint32_t bands(const sp_plan *plan) {
    return (plan->height / SP_CELL + plan->band - 1) / plan->band;
}

/* The most rows of each stage that are needed at once: from the one above its reader's next row to
 * the last one made. */
static void window_rows(const sp_plan *plan, uint32_t rows[SP_ENCODER_END]) {
    uint32_t before[SP_ENCODER_END] = {0}, after[SP_ENCODER_END];
    uint32_t read = 0; /* rows of cells that the heads have made */
    memset(rows, 0, SP_ENCODER_END * sizeof *rows);
    for (uint32_t b = 0; b < bands(plan); b++) {
        memcpy(after, before, sizeof after);
        advance(plan, b, after);
        for (int i = 1; i < SP_ENCODER_END; i++) {
            uint32_t next = i + 1 < SP_ENCODER_END ? before[i + 1] << sp_network[i + 1].pool : read;
            uint32_t span = after[i] - (next ? next - 1 : 0);
            rows[i] = span > rows[i] ? span : rows[i];
        }
        read = rows_possible(plan, after[SP_ENCODER_END - 1], plan->height / SP_CELL);
        memcpy(before, after, sizeof before);
    }
}

/* ---------------------------------------------------------------- room ----------------------- */

/* A window of rows of what `layer` makes. */
static sp_lines lines_of(const sp_plan *plan, int layer, uint32_t width, uint32_t height, uint32_t rows) {
    return (sp_lines){.pitch = sp_lines_pitch(width),
                      .groups = sp_network[layer].out / plan->kernels->lanes[layer],
                      .rows = rows,
                      .width = width,
                      .height = height};
}

static size_t lines_bytes(const sp_lines *map) {
    return (map->rows + 1) * sp_lines_row_bytes(map) + SP_LINE;
}

static size_t shape_windows(sp_plan *plan) {
    uint32_t rows[SP_ENCODER_END];
    window_rows(plan, rows);
    size_t total = 0;
    for (int i = 1; i < SP_ENCODER_END; i++) {
        uint32_t shrink = sp_network[i].shrink + sp_network[i].pool;
        plan->stages[i].map = lines_of(plan, i, plan->width >> shrink, plan->height >> shrink, rows[i]);
        total += lines_bytes(&plan->stages[i].map);
    }
    return total;
}

/* Set the height of a band and shape the windows for it; their bytes. */
static size_t choose_band(sp_plan *plan) {
    const uint32_t cells = plan->height / SP_CELL;
    if (plan->band_cells) {
        plan->band = plan->band_cells < cells ? plan->band_cells : cells;
        return shape_windows(plan);
    }
    size_t total;
    plan->band = cells;
    while ((total = shape_windows(plan)) > WINDOW_BYTES && plan->band > MIN_BAND_CELLS)
        plan->band = plan->band / 2 > MIN_BAND_CELLS ? (plan->band + 1) / 2 : MIN_BAND_CELLS;
    return total;
}

/* Columns of equal width, whole blocks. */
static uint32_t choose_column(const sp_plan *plan) {
    const uint32_t pixel = (plan->kernels->rows + 2) * sp_network[0].out / plan->kernels->lanes[0] * SP_LINE;
    const uint32_t most = FIRST_BYTES / pixel, columns = (plan->width + most - 1) / most;
    return (uint32_t)sp_round_up((plan->width + columns - 1) / columns, SP_BLOCK_PIXELS);
}

/* Pixels of layer 0 behind a column. */
static uint32_t first_width(const sp_plan *plan) {
    return plan->column < plan->width ? plan->column + 2 * MARGIN : plan->width;
}

static void shape_room(const sp_plan *plan, thread_room *room) {
    room->first = lines_of(plan, 0, first_width(plan), plan->height, plan->kernels->rows + 2);
    room->hidden = lines_of(plan, SP_DETECTOR_A, plan->width / SP_CELL, plan->kernels->rows, plan->kernels->rows);
}

static size_t scratch_bytes(const sp_plan *plan) {
    return sp_round_up(plan->kernels->scratch_bytes, SP_LINE);
}

/* A strip of cells. */
static size_t logits_bytes(const sp_plan *plan, uint32_t width) {
    return (size_t)plan->kernels->rows * (width / SP_CELL) * SP_LOGITS_PADDED * sizeof(float);
}

static uint8_t *take(uint8_t **at, size_t bytes) {
    uint8_t *here = *at;
    *at += bytes;
    return here;
}

sp_status sp_plan_prepare(sp_plan *plan, uint32_t width, uint32_t height, sp_error *err) {
    if (plan->width == width && plan->height == height)
        return SP_OK;
    plan->width = width;
    plan->height = height;
    const size_t total = choose_band(plan);
    plan->column = choose_column(plan);

    const uint32_t threads = sp_pool_threads(plan->pool);
    thread_room shape;
    shape_room(plan, &shape);
    const size_t room_bytes = scratch_bytes(plan) + lines_bytes(&shape.first) + sp_first_room(shape.first.width) +
                              lines_bytes(&shape.hidden) + logits_bytes(plan, width);
    plan->width = 0; /* nothing is prepared until all is */
    sp_block_free(&plan->windows);
    sp_status status = sp_block_alloc(&plan->windows, total + threads * room_bytes, "maps between the layers", err);
    if (status != SP_OK)
        return status;
    uint8_t *at = plan->windows.data;
    for (int i = 1; i < SP_ENCODER_END; i++)
        plan->stages[i].map.data = take(&at, lines_bytes(&plan->stages[i].map));
    for (uint32_t t = 0; t < threads; t++) {
        thread_room *room = &plan->rooms[t];
        *room = shape;
        room->scratch = take(&at, scratch_bytes(plan));
        room->first.data = take(&at, lines_bytes(&room->first));
        room->pixels = take(&at, sp_first_room(room->first.width));
        room->hidden.data = take(&at, lines_bytes(&room->hidden));
        room->logits = (float *)take(&at, logits_bytes(plan, width));
    }
    plan->width = width;
    return SP_OK;
}

/* ---------------------------------------------------------------- steps ---------------------- */

/* A strip of a 3x3 layer's output from row y on, reading `map`. */
static sp_strip strip_from(const sp_plan *plan, const thread_room *room, const sp_lines *map, uint32_t y) {
    sp_strip strip = {.in_pitch = map->pitch, .width = map->width, .scratch = room->scratch};
    for (uint32_t i = 0; i < plan->kernels->rows + 2; i++)
        strip.in[i] = sp_lines_row(map, (int64_t)y + i - 1);
    return strip;
}

/* Let the strip write the rows of `map` from y on, `count` of them, from pixel x on. */
static void strip_to(sp_strip *strip, const sp_lines *map, uint32_t x, uint32_t y, uint32_t count) {
    strip->out_pitch = map->pitch;
    for (uint32_t i = 0; i < count; i++)
        strip->out[i] = sp_lines_row(map, y + i) + (size_t)x * SP_LINE;
}

/* Rows of the strip at y that the running step is to make. */
static uint32_t rows_of_strip(const sp_plan *plan, uint32_t y) {
    return plan->until - y < plan->kernels->rows ? plan->until - y : plan->kernels->rows;
}

/* A strip of an encoder's layer, whose output begins at pixel x of its map. */
static void run_layer(const sp_plan *plan, int layer, sp_strip *strip, uint32_t y, uint32_t x) {
    const uint32_t rows = rows_of_strip(plan, y);
    const sp_lines *out = &plan->stages[layer].map;
    if (sp_network[layer].pool) {
        strip_to(strip, out, x, y / 2, rows / 2);
        plan->kernels->conv_pool(&plan->layers[layer], strip);
    } else {
        strip_to(strip, out, x, y, rows);
        plan->kernels->conv(&plan->layers[layer], strip);
    }
}

/* Columns [from, until) of layer 1, and those of layer 0 behind them, [left, right). */
typedef struct column {
    uint32_t from, until, left, right;
} column;

static column column_from(const sp_plan *plan, uint32_t x) {
    column c = {.from = x, .until = x + plan->column, .left = x ? x - MARGIN : 0, .right = x + plan->column + MARGIN};
    c.until = c.until < plan->width ? c.until : plan->width;
    c.right = c.right < plan->width ? c.right : plan->width;
    return c;
}

/* Row y of layer 0. Where a column's sides are not the frame's, its outermost pixels lack a neighbour; nothing
 * reads them. */
static void make_first_row(const sp_plan *plan, thread_room *room, const column *c, uint32_t y) {
    const sp_frame *frame = plan->frame;
    const uint32_t width = c->right - c->left;
    const uint8_t *rows[3];
    for (int i = 0; i < 3; i++) {
        int64_t from = (int64_t)y + i - 1;
        rows[i] = from < 0 || from >= frame->height ? NULL : frame->pixels + (size_t)from * frame->stride + c->left;
    }
    uint8_t *out = sp_lines_row(&room->first, y);
    plan->kernels->first(&plan->layers[0], rows, width, out, room->first.pitch, room->pixels);
    for (uint32_t g = 0; c->right == plan->width && g < room->first.groups; g++) /* a wider column may have been here */
        memset(out + g * room->first.pitch + (size_t)width * SP_LINE, 0, SP_LINE);
}

/* Layers 0 and 1. */
static void run_first_pair(void *context, size_t first, size_t last, uint32_t thread) {
    const sp_plan *plan = context;
    const uint32_t rows = plan->kernels->rows;
    thread_room *room = &plan->rooms[thread];
    for (uint32_t x = 0; x < plan->width; x += plan->column) {
        const column c = column_from(plan, x);
        uint32_t y = plan->from + (uint32_t)first * rows;
        uint32_t made = y ? y - 1 : 0; /* first row of layer 0 that is missing */
        for (size_t i = first; i < last; i++, y += rows) {
            for (; made <= y + rows && made < plan->height; made++)
                make_first_row(plan, room, &c, made);
            sp_strip strip = strip_from(plan, room, &room->first, y);
            strip.width = c.until - c.from;
            for (uint32_t row = 0; row < rows + 2; row++)
                strip.in[row] += (size_t)(c.from - c.left) * SP_LINE;
            run_layer(plan, 1, &strip, y, c.from / 2);
        }
    }
}

/* Another layer of the encoder. */
static void run_encoder(void *context, size_t first, size_t last, uint32_t thread) {
    const sp_plan *plan = context;
    for (size_t i = first; i < last; i++) {
        const uint32_t y = plan->from + plan->kernels->rows * (uint32_t)i;
        sp_strip strip = strip_from(plan, &plan->rooms[thread], &plan->stages[plan->layer - 1].map, y);
        run_layer(plan, plan->layer, &strip, y, 0);
    }
}

/* One head over a strip of cells, down to its numbers in float32. */
static void run_head(const sp_plan *plan, thread_room *room, int layer, uint32_t y, float *const *out, size_t stride) {
    const sp_lines *hidden = &room->hidden;
    sp_strip strip = strip_from(plan, room, &plan->stages[SP_ENCODER_END - 1].map, y);
    strip_to(&strip, hidden, 0, 0, rows_of_strip(plan, y));
    plan->kernels->conv(&plan->layers[layer], &strip);

    sp_strip second = {.in_pitch = hidden->pitch, .width = hidden->width, .scratch = room->scratch};
    for (uint32_t i = 0; i < plan->kernels->rows; i++)
        second.in[i] = sp_lines_row(hidden, i);
    plan->kernels->head(&plan->layers[layer + 1], &second, out, stride);
}

/* Both heads. */
static void run_heads(void *context, size_t first, size_t last, uint32_t thread) {
    const sp_plan *plan = context;
    thread_room *room = &plan->rooms[thread];
    const size_t cells = plan->width / SP_CELL;
    for (size_t i = first; i < last; i++) {
        const uint32_t y = plan->from + plan->kernels->rows * (uint32_t)i, rows = rows_of_strip(plan, y);
        float *logits[SP_MAX_STRIP] = {NULL}, *descriptors[SP_MAX_STRIP] = {NULL};
        for (uint32_t row = 0; row < rows; row++) {
            logits[row] = room->logits + row * cells * SP_LOGITS_PADDED;
            descriptors[row] = plan->maps->descriptors + (y + row) * cells * SP_DESCRIPTOR_DIM;
        }
        run_head(plan, room, SP_DETECTOR_A, y, logits, SP_LOGITS_PADDED);
        run_head(plan, room, SP_DESCRIPTOR_A, y, descriptors, SP_DESCRIPTOR_DIM);
        for (uint32_t row = 0; row < rows; row++) {
            float *scores = plan->maps->scores + ((size_t)y + row) * SP_CELL * plan->width;
            plan->kernels->scores(logits[row], (uint32_t)cells, scores, plan->width);
            plan->kernels->normalise(descriptors[row], (uint32_t)cells);
        }
    }
}

static void run_step(void *context, size_t first, size_t last, uint32_t thread) {
    const sp_plan *plan = context;
    if (plan->kernels->enter)
        plan->kernels->enter();
    plan->task(context, first, last, thread);
    if (plan->kernels->leave)
        plan->kernels->leave();
}

/* Run `task` over rows [from, until), a strip an item. */
static void run_rows(sp_plan *plan, sp_pool_task *task, int layer, uint32_t from, uint32_t until) {
    if (from >= until)
        return;
    plan->task = task;
    plan->layer = layer;
    plan->from = from;
    plan->until = until;
    sp_pool_share(plan->pool, (until - from + plan->kernels->rows - 1) / plan->kernels->rows, run_step, plan);
}

sp_status sp_plan_run(sp_plan *plan, const sp_frame *frame, sp_maps *maps, sp_error *err) {
    sp_status status = sp_plan_prepare(plan, frame->width, frame->height, err);
    if (status != SP_OK)
        return status;
    plan->frame = frame;
    plan->maps = maps;
    uint32_t done[SP_ENCODER_END] = {0}, next[SP_ENCODER_END] = {0}, cells = 0;
    for (uint32_t b = 0; b < bands(plan); b++) {
        advance(plan, b, next);
        run_rows(plan, run_first_pair, 1, 2 * done[1], 2 * next[1]);
        for (int i = 2; i < SP_ENCODER_END; i++)
            run_rows(plan, run_encoder, i, done[i] << sp_network[i].pool, next[i] << sp_network[i].pool);
        const uint32_t until = rows_possible(plan, next[SP_ENCODER_END - 1], frame->height / SP_CELL);
        run_rows(plan, run_heads, 0, cells, until);
        cells = until;
        memcpy(done, next, sizeof done);
    }
    return SP_OK;
}

/* ---------------------------------------------------------------- life ----------------------- */

sp_status sp_plan_create(const sp_weights *weights, const sp_kernels *kernels, sp_pool *pool, uint32_t band_cells,
                         sp_plan **out, sp_error *err) {
    *out = NULL;
    sp_plan *plan = calloc(1, sizeof *plan);
    if (!plan)
        return sp_fail_memory(err, "CPU engine", sizeof *plan);
    plan->kernels = kernels;
    plan->pool = pool;
    plan->band_cells = band_cells;
    plan->rooms = calloc(sp_pool_threads(pool), sizeof *plan->rooms);
    sp_status status = plan->rooms ? pack_all(plan, weights, err)
                                   : sp_fail_memory(err, "CPU engine", sp_pool_threads(pool) * sizeof *plan->rooms);
    if (status != SP_OK) {
        sp_plan_free(plan);
        return status;
    }
    *out = plan;
    return SP_OK;
}

void sp_plan_free(sp_plan *plan) {
    if (!plan)
        return;
    sp_block_free(&plan->weights);
    sp_block_free(&plan->windows);
    free(plan->rooms);
    free(plan);
}
