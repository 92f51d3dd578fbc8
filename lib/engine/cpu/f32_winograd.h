/*
 * 3x3 convolution by Winograd's F(4x4, 3x3) (Lavin and Gray, arXiv:1509.09308): a tile of 4x4 outputs
 * needs 36 multiplications for each pair of channels instead of 144. Included by f32_template.h.
 *
 *     out = A' [ (G g G') . (B' d B) ] A      d: 6x6 inputs, g: the 3x3 kernel
 *
 * A strip of four rows is done in runs of TILES tiles: the transformed inputs of all channels, then for
 * each block of output channels the 36 products of matrices and the transform back. What a run needs stays in
 * the second-level cache; weights are read once a run.
 */
enum {
    TILE = 4,                                    /* outputs a side */
    POINTS = 36,                                 /* (4 + 3 - 1)^2 */
    SIDE = 6,                                    /* inputs a side */
    TILES = (40 + PIXELS - 1) / PIXELS * PIXELS, /* whole blocks of the product */
    MAX_IN = 128,                                /* channels of any 3x3 layer's input */
    PARTS = LANES / VL                           /* vectors in a line */
};

typedef struct winograd_room {
    float in[POINTS][MAX_IN / LANES][TILES][LANES]; /* groups beyond the layer's stay unused */
    float out[POINTS][TILES][OUTS];
} winograd_room;

/* G k: three taps, `step` apart, to six points. */
static void kernel_points(const double *k, int step, double out[SIDE]) {
    const double a = k[0], b = k[step], c = k[2 * step];
    out[0] = a / 4;
    out[1] = -(a + b + c) / 6;
    out[2] = -(a - b + c) / 6;
    out[3] = a / 24 + b / 12 + c / 6;
    out[4] = a / 24 - b / 12 + c / 6;
    out[5] = c;
}

/* G g G' of one 3x3 kernel; in double, so that only the result is rounded. */
static void transform_kernel(const float *kernel, float out[POINTS]) {
    double taps[9], columns[3 * SIDE]; /* [x][point along y] */
    for (int i = 0; i < 9; i++)
        taps[i] = kernel[i];
    for (int x = 0; x < 3; x++)
        kernel_points(taps + x, 3, columns + x * SIDE);
    for (int y = 0; y < SIDE; y++) {
        double points[SIDE];
        kernel_points(columns + y, SIDE, points);
        for (int x = 0; x < SIDE; x++)
            out[y * SIDE + x] = (float)points[x];
    }
}

/* [out / OUTS][point][in][OUTS] */
static void pack_winograd(const sp_layer *layer, const float *kernel, float *packed) {
    const size_t outs = (size_t)POINTS * layer->in * OUTS;
    for (uint32_t o = 0; o < layer->out; o++)
        for (uint32_t i = 0; i < layer->in; i++) {
            float points[POINTS];
            transform_kernel(kernel + ((size_t)o * layer->in + i) * 9, points);
            for (int p = 0; p < POINTS; p++)
                packed[o / OUTS * outs + ((size_t)p * layer->in + i) * OUTS + o % OUTS] = points[p];
        }
}

/* B' d for one line of six. */
static inline void input_points(const VEC d[SIDE], VEC out[SIDE]) {
    const VEC four = SET1(4), minus4 = SET1(-4), minus5 = SET1(-5), two = SET1(2), minus2 = SET1(-2);
    const VEC a = FMA(minus4, d[2], d[4]), b = FMA(minus4, d[1], d[3]);
    const VEC c = SUB(d[4], d[2]), e = SUB(d[3], d[1]);
    out[0] = FMA(four, d[0], FMA(minus5, d[2], d[4]));
    out[1] = ADD(a, b);
    out[2] = SUB(a, b);
    out[3] = FMA(two, e, c);
    out[4] = FMA(minus2, e, c);
    out[5] = FMA(four, d[1], FMA(minus5, d[3], d[5]));
}

/* A' m for one line of six. */
static inline void output_points(const VEC m[SIDE], VEC out[TILE]) {
    const VEC a = ADD(m[1], m[2]), b = SUB(m[1], m[2]), c = ADD(m[3], m[4]), d = SUB(m[3], m[4]);
    out[0] = ADD(m[0], ADD(a, c));
    out[1] = FMA(SET1(2), d, b);
    out[2] = FMA(SET1(4), c, a);
    out[3] = ADD(m[5], FMA(SET1(8), d, b));
}

/* `in`: the six rows of a group at the run's first pixel. */
static void transform_inputs(const uint8_t *const in[SIDE], uint32_t tiles, winograd_room *room, uint32_t group) {
    for (uint32_t t = 0; t < tiles; t++)
        for (int part = 0; part < PARTS; part++) {
            VEC columns[SIDE][SIDE]; /* [x][point along y] */
            for (int x = 0; x < SIDE; x++) {
                VEC d[SIDE];
                for (int y = 0; y < SIDE; y++)
                    d[y] = LOAD((const float *)(in[y] + ((ptrdiff_t)t * TILE + x - 1) * SP_LINE) + part * VL);
                input_points(d, columns[x]);
            }
            for (int y = 0; y < SIDE; y++) {
                VEC line[SIDE], points[SIDE];
                for (int x = 0; x < SIDE; x++)
                    line[x] = columns[x][y];
                input_points(line, points);
                for (int x = 0; x < SIDE; x++)
                    STORE(&room->in[y * SIDE + x][group][t][part * VL], points[x]);
            }
        }
}

/* The products of all points for one block of outputs. */
static void multiply_points(winograd_room *room, uint32_t tiles, uint32_t groups, const float *w) {
    for (int p = 0; p < POINTS; p++, w += (size_t)groups * LANES * OUTS)
        for (uint32_t t0 = 0; t0 < tiles; t0 += PIXELS) {
            const uint32_t t = block_start(t0, tiles);
            block sums;
            clear(sums);
            for (uint32_t g = 0; g < groups; g++)
                accumulate(sums, room->in[p][g][t], LANES, w + (size_t)g * LANES * OUTS, LANES, VECTORS);
            for (int i = 0; i < PIXELS; i++)
                for (int v = 0; v < VECTORS; v++)
                    STORE(&room->out[p][t + (uint32_t)i][v * VL], sums[i][v]);
        }
}

/* The 4x4 outputs of one tile, a vector of channels. */
static inline void transform_outputs(const winograd_room *room, uint32_t t, int v, VEC out[TILE][TILE]) {
    VEC columns[SIDE][TILE];
    for (int x = 0; x < SIDE; x++) {
        VEC m[SIDE];
        for (int y = 0; y < SIDE; y++)
            m[y] = LOAD(&room->out[y * SIDE + x][t][v * VL]);
        output_points(m, columns[x]);
    }
    for (int y = 0; y < TILE; y++) {
        VEC line[SIDE];
        for (int x = 0; x < SIDE; x++)
            line[x] = columns[x][y];
        output_points(line, out[y]);
    }
}

static inline VEC relu(VEC sum, VEC bias) {
    return MAX(ADD(sum, bias), SET1(0));
}

/* Store what lies within the width and the rows asked for: `x` is the tile's first pixel. */
static inline void store_tile(const sp_strip *strip, VEC out[TILE][TILE], VEC bias, uint32_t o, uint32_t x,
                              const int pool) {
    for (uint32_t i = 0; i < TILE && x + i < strip->width; i += 1 + (uint32_t)pool)
        for (int y = 0; y < TILE; y += 1 + pool) {
            uint8_t *row = strip->out[y / (1 + pool)];
            if (!row)
                continue;
            if (pool)
                STORE(place(row, strip->out_pitch, o, (x + i) / 2),
                      relu(MAX(MAX(out[y][i], out[y][i + 1]), MAX(out[y + 1][i], out[y + 1][i + 1])), bias));
            else
                STORE(place(row, strip->out_pitch, o, x + i), relu(out[y][i], bias));
        }
}

static inline __attribute__((always_inline)) void convolve_strip(const sp_packed *packed, const sp_strip *strip,
                                                                 const int pool) {
    const uint32_t groups = packed->layer->in / LANES, all = (strip->width + TILE - 1) / TILE;
    winograd_room *room = strip->scratch;
    for (uint32_t first = 0; first < all; first += TILES) {
        const uint32_t tiles = all - first < TILES ? all - first : TILES;
        for (uint32_t g = 0; g < groups; g++) {
            const uint8_t *in[SIDE];
            for (int y = 0; y < SIDE; y++)
                in[y] = strip->in[y] + g * strip->in_pitch + (size_t)first * TILE * SP_LINE;
            transform_inputs(in, tiles, room, g);
        }
        const float *w = packed->weights;
        for (uint32_t o = 0; o < packed->layer->out; o += OUTS, w += (size_t)POINTS * packed->layer->in * OUTS) {
            multiply_points(room, tiles, groups, w);
            for (uint32_t t = 0; t < tiles; t++)
                for (int v = 0; v < VECTORS; v++) {
                    VEC out[TILE][TILE];
                    transform_outputs(room, t, v, out);
                    store_tile(strip, out, LOAD(packed->bias + o + v * VL), o + (uint32_t)v * VL, (first + t) * TILE,
                               pool);
                }
        }
    }
}

static void conv(const sp_packed *packed, const sp_strip *strip) {
    convolve_strip(packed, strip, 0);
}

static void conv_pool(const sp_packed *packed, const sp_strip *strip) {
    convolve_strip(packed, strip, 1);
}
