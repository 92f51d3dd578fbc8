/*
 * BRISC: the conductor of a tile. It walks the layer table, keeps the weights coming, exchanges halos with the eight
 * tiles around, reads the picture, and writes the descriptors out. The host starts a frame
 * and reads its results; it does nothing between layers.
 */
#include "float.h"
#define NOC_OWN_INITIATOR 0u
#define NOC_OWN_ID 0u
#include "noc.h"
#include "taps.h"

START(LOCAL_RAM_TOP_BN)

#define TABLE ((const struct layer *)LAYER_TABLE)
#define FIRST_PIXEL ((ONES_PIXELS + LEAD_PIXELS) * PIXEL_BYTES) /* of plane 0, row 0, column 0 */

/* ------------------------------------------------------------------ weights -------------------- */

/* The groups of all layers in order, numbered through all frames; group g lies in buffer g & 1. */
static struct {
    u32 layer, group; /* the next to fetch */
    u32 arrived;      /* fetched, or with a feeder: reported as used */
} stream;

static void fetch_group(void) {
    while (!TABLE[stream.layer].weights_bytes)
        stream.layer = stream.layer + 1 < MB->layers ? stream.layer + 1 : 0;
    const struct layer *l = TABLE + stream.layer;
    noc_read(l->weights_at, l->weights + stream.group * l->weights_bytes,
             WEIGHTS + (stream.arrived & 1) * WEIGHT_BUFFER_BYTES, l->weights_bytes);
    noc_wait();
    MB->weights_ready.value = ++stream.arrived;
    if (++stream.group == l->groups) {
        stream.group = 0;
        stream.layer = stream.layer + 1 < MB->layers ? stream.layer + 1 : 0;
    }
}

/* Called whenever BRISC has nothing else to do. */
static void tend_weights(void) {
    FENCE();
    if (MB->feeder != NOC_NOWHERE) {
        if (stream.arrived != MB->weights_used) {
            volatile struct mailbox *feeder = MB; /* same place in its L1 */
            noc_increment(MB->feeder, &feeder->used[stream.arrived & 1], &MB->atomic_old[0]);
            stream.arrived++;
        }
    } else if (stream.arrived < MB->weights_used + 2) {
        fetch_group();
    }
}

static void wait_tending(volatile u32 *counter, u32 value) {
    while ((int32_t)(*counter - value) < 0) {
        FENCE();
        tend_weights();
    }
    FENCE();
}

/* ------------------------------------------------------------------ halo ----------------------- */

/* A stretch of a halo row, from a neighbour, or zeros outside the frame. */
static void halo_piece(u32 at, u32 from, u32 to, u32 n) {
    for (u32 part; n; from += part, to += part, n -= part) {
        part = n < ZEROS_BYTES ? n : ZEROS_BYTES;
        if (at == NOC_NOWHERE)
            noc_read(noc_me, ZEROS, to, part);
        else
            noc_read(at, from, to, part);
    }
}

/* Ring of one plane of the input, read from the neighbours' own pixels. Columns outside the frame are zero already
 * (zero_ring). `p` is row 0, column 0 of the plane, in every tile. */
static void halo_plane(const struct layer *l, u32 p, const u32 *at) {
    const u32 row = l->pitch * PIXEL_BYTES, width = l->cols * PIXEL_BYTES;
    const u32 right = width + PIXEL_BYTES, bottom = (l->rows + 1) * row;
    const u32 north_last = l->north_rows * row, west_last = l->west_cols * PIXEL_BYTES; /* their last row, column */
    halo_piece(at[NORTH], p + north_last + PIXEL_BYTES, p + PIXEL_BYTES, width);
    halo_piece(at[SOUTH], p + row + PIXEL_BYTES, p + bottom + PIXEL_BYTES, width);
    for (u32 y = 1, a = p + row; y <= l->rows; y++, a += row) {
        if (at[WEST] != NOC_NOWHERE)
            noc_read(at[WEST], a + west_last, a, PIXEL_BYTES);
        if (at[EAST] != NOC_NOWHERE)
            noc_read(at[EAST], a + PIXEL_BYTES, a + right, PIXEL_BYTES);
    }
    halo_piece(at[NORTH_WEST], p + north_last + west_last, p, PIXEL_BYTES);
    halo_piece(at[NORTH_EAST], p + north_last + PIXEL_BYTES, p + right, PIXEL_BYTES);
    halo_piece(at[SOUTH_WEST], p + row + west_last, p + bottom, PIXEL_BYTES);
    halo_piece(at[SOUTH_EAST], p + row + PIXEL_BYTES, p + bottom + right, PIXEL_BYTES);
}

static void fetch_halo(const struct layer *l) {
    u32 at[NEIGHBOURS];
    for (u32 k = 0; k < NEIGHBOURS; k++)
        at[k] = MB->neighbour[k];
    u32 p = l->in + FIRST_PIXEL;
    for (u32 c = 0; c < l->in_planes; c++, p += l->in_plane * PIXEL_BYTES)
        halo_plane(l, p, at);
    noc_wait();
}

/* The convolution leaves rubbish in the ring columns of its output. */
static void zero_pixel(u32 a) {
    for (u32 i = 0; i < PIXEL_BYTES; i += 4)
        REG(a + i) = 0;
}

static void zero_ring(const struct layer *l) {
    const u32 row = l->out_pitch * PIXEL_BYTES;
    const u32 rows = l->pool ? l->rows / 2 : l->rows, cols = l->pool ? l->cols / 2 : l->cols;
    const u32 planes = (l->groups - 1) * 4 + l->last_planes;
    for (u32 c = 0; c < planes; c++) {
        u32 a = l->out + FIRST_PIXEL + c * l->out_plane * PIXEL_BYTES + row;
        for (u32 y = 0; y < rows; y++, a += row) {
            zero_pixel(a);
            zero_pixel(a + (cols + 1) * PIXEL_BYTES);
        }
    }
}

/* ------------------------------------------------------------------ first and last layers ------ */

/* This tile's rows of the picture, with their halo. */
static void fetch_picture(const struct layer *l, u32 frame) {
    const volatile struct remote *picture = &MB->picture;
    const u32 from = (u32)remote_address(picture, frame), row = picture_row_bytes(l);
    for (u32 y = 0; y < l->rows + 2; y++)
        noc_read(picture->at, from + y * MB->picture_pitch, PICTURE + y * row, row);
    noc_wait();
}

/* SrcA drops the lowest of fp16's 11 significant bits of every descriptor value, which makes the sums of
 * squares and the products each 3.3e-4 too small on average; this puts the norm right (measured). */
#define NORM_CORRECTION 1.00017f
/* Below this the descriptor is taken for zero, and stays zero. */
#define LEAST_SQUARE 1e-6f

/* Between SQUARES and SCALE: 16 partial sums a pixel become 1/sqrt(sum) in all 16 channels of the pixel. */
static void make_factors(const struct layer *l) {
    const u32 first = FIRST_PIXEL + (l->pitch + 1) * PIXEL_BYTES, skip = (l->pitch - l->cols) * PIXEL_BYTES;
    u32 from = (l - 1)->out + first, to = l->in + first;
    for (u32 y = 0; y < l->rows; y++, from += skip, to += skip)
        for (u32 x = 0; x < l->cols; x++, from += PIXEL_BYTES, to += PIXEL_BYTES) {
            float sum = 0.0f;
            for (u32 k = 0; k < PIXEL_BYTES; k += 4) {
                u32 two = REG(from + k);
                sum += float_of_half(two) + float_of_half(two >> 16);
            }
            u32 factor = sum > LEAST_SQUARE ? half_of_float(reciprocal_root(sum) * NORM_CORRECTION) : 0;
            for (u32 k = 0; k < PIXEL_BYTES; k += 4)
                REG(to + k) = factor | factor << 16;
        }
    FENCE();
}

/* All planes of the last layer's output, rows 1...h with their ring, one after another; without the ring's first and
 * last pixel, which nobody reads. */
static void write_descriptors(const struct layer *l, u32 frame) {
    const volatile struct remote *out = &MB->descriptors;
    const u32 row = l->out_pitch * PIXEL_BYTES, n = l->rows * row;
    u64 to = remote_address(out, frame);
    u32 from = l->out + FIRST_PIXEL + row;
    for (u32 c = 0; c < l->groups * 4; c++, from += l->out_plane * PIXEL_BYTES, to += n)
        noc_write(from + PIXEL_BYTES, out->at, to + PIXEL_BYTES, n - 2 * PIXEL_BYTES);
    noc_wait();
}

/* The root tells the host, when all tiles have counted themselves. */
static void finish_frame(u32 number, u32 frame) {
    step(CORE_BRISC, number, STEP_WAIT_TILES);
    wait_tending(&MB->frames.value, MB->tiles * (frame + 1));
    MB->brisc_out.value = frame + 1;
    publish(&MB->brisc_out.value);
    noc_write((u32)&MB->brisc_out, MB->finished.at, (u64)MB->finished.high << 32 | MB->finished.low,
              sizeof(struct line));
    noc_wait();
}

/* ------------------------------------------------------------------ the walk ------------------- */

/* They have finished what this layer reads, and no longer read what it overwrites. */
static void wait_neighbours(u32 number) {
    for (u32 k = 0; k < NEIGHBOURS; k++)
        if (MB->neighbour[k] != NOC_NOWHERE)
            wait_tending(&MB->layer_from[k].value, number);
}

static void tell_neighbours(u32 number) {
    MB->brisc_out.value = number;
    publish(&MB->brisc_out.value);
    for (u32 k = 0; k < NEIGHBOURS; k++)
        if (MB->neighbour[k] != NOC_NOWHERE)
            noc_signal(&MB->brisc_out, MB->neighbour[k], &MB->layer_from[opposite(k)]);
    noc_wait();
}

/* `number` layers have been finished before this one. */
static void run_layer(const struct layer *l, u32 number, u32 frame, const uint16_t *half_of_byte) {
    if (l->halo != HALO_NONE || l == TABLE) {
        step(CORE_BRISC, number + 1, STEP_WAIT_NEIGHBOURS);
        wait_neighbours(number);
    }
    if (l->halo == HALO_FETCH) {
        step(CORE_BRISC, number + 1, STEP_HALO);
        fetch_halo(l);
    }
    if (l->from_picture) {
        step(CORE_BRISC, number + 1, STEP_PICTURE);
        fetch_picture(l, frame);
    }
    if (l->kind == LAYER_SCALE) {
        step(CORE_BRISC, number + 1, STEP_FACTORS);
        make_factors(l);
    }
    const u32 i = (u32)(l - TABLE);
    MB->layer = (u32)l;
    MB->go_clock[i] = REG(WALL_CLOCK);
    FENCE(); /* [go-order] */
    MB->go = number + 1;
    if (l->from_picture) {
        step(CORE_BRISC, number + 1, STEP_TAPS);
        make_taps(l, CORE_BRISC, number + 1, half_of_byte);
    }
    step(CORE_BRISC, number + 1, STEP_WAIT_THREADS);
    for (u32 t = 0; t < 3; t++)
        wait_tending(&MB->thread_done[t], number + 1);
    MB->threads_clock[i] = REG(WALL_CLOCK);
    if (l->zero_ring)
        zero_ring(l);
    step(CORE_BRISC, number + 1, STEP_TELL);
    FENCE(); /* [go-order] */
    tell_neighbours(number + 1);
}

__attribute__((used)) void main_(void) {
    report_start(CORE_BRISC, PROGRAM_BRISC);
    noc_begin();
    stream.layer = stream.group = stream.arrived = 0;
    for (u32 a = ZEROS; a < ZEROS + ZEROS_BYTES; a += 4)
        REG(a) = 0;
    FENCE();
    uint16_t half_of_byte[BYTE_VALUES];
    make_byte_table(half_of_byte);
    const u32 layers = MB->layers;
    for (u32 frame = 0, number = 0;; frame++)
        for (u32 i = 0; i < layers; i++, number++) {
            step(CORE_BRISC, number + 1, STEP_WAIT_RUN);
            wait_tending(&MB->run, number + 1);
            MB->begin_clock[i] = REG(WALL_CLOCK);
            run_layer(TABLE + i, number, frame, half_of_byte);
            MB->end_clock[i] = REG(WALL_CLOCK);
            if (i + 1 < layers) {
                MB->done = number + 1;
                continue;
            }
            step(CORE_BRISC, number + 1, STEP_RESULT);
            write_descriptors(TABLE + i, frame);
            MB->done = number + 1;
            FENCE();
            if (MB->root == noc_me)
                finish_frame(number + 1, frame);
        }
}
