/*
 * TRISC0: configures the back end once, then feeds SrcA and SrcB.
 *
 * A convolution walks blocks of 64 consecutive pixels of the flat padded plane; row ends are not
 * special: the ring pixels of a row are computed too, and BRISC sets them to zero later. For each block, tap and input
 * plane: SrcA <- four matrices of 16 inputs x 16 outputs (one K block of weights, 2 KiB), SrcB <- 64
 * pixels of one plane (2 KiB). The last K block is the bias: SrcB <- the ones, SrcA <- the bias in a high and a low
 * part. With pooling a block is 32 pixels of row y and 32 of row y+1.
 */
#include "taps.h"
#include "tensix.h"

START(LOCAL_RAM_TOP_T)

static void configure(void) {
    const u32 fp16 = FORMAT_FP16;
    CONFIG(CONFIG_ALU) = ALU_FORMATS(fp16, fp16, fp16) | ALU_FP32_ACCUMULATE;
    CONFIG(CONFIG_RELU) = RELU_MODE(0);
    /* Unpacker 0: Y steps over the 4 matrices of a K block, Z over K blocks. */
    CONFIG(CONFIG_UNPACK0_TILE) = TILE_FORMAT(fp16, 0);
    CONFIG(CONFIG_UNPACK0_TILE + 1) = TILE_YZ(4, 1);
    CONFIG(CONFIG_UNPACK0_OUT) = UNPACK_OUT(fp16);
    CONFIG(CONFIG_UNPACK0_OUT + 1) = UNPACK_NO_COMPRESSION;
    CONFIG(CONFIG_UNPACK0_DST) = BOTH_CONTEXTS(64); /* the hardware skips the first four rows of 16 */
    CONFIG(CONFIG_UNPACK0_X) = BOTH_CONTEXTS(256);
    CONFIG(CONFIG_UNPACK0_STRIDE_Y) = STRIDE_Y(PIXEL_BYTES);
    CONFIG(CONFIG_UNPACK0_STRIDE_Z) = STRIDE_ZW(16 * PIXEL_BYTES, 0);
    /* Unpacker 1: Y is the pixel (13 bits), Z steps by PLANE_UNIT pixels; Z of channel 1 by 32 rows of SrcB. */
    CONFIG(CONFIG_UNPACK1_TILE) = TILE_FORMAT(fp16, PLANE_CHANNELS);
    CONFIG(CONFIG_UNPACK1_TILE + 1) = TILE_YZ(PLANE_UNIT, 1);
    CONFIG(CONFIG_UNPACK1_OUT) = UNPACK_OUT(fp16);
    CONFIG(CONFIG_UNPACK1_OUT + 1) = UNPACK_NO_COMPRESSION;
    CONFIG(CONFIG_UNPACK1_STRIDE_Z) = STRIDE_ZW(32 * PIXEL_BYTES, 0);
    /* Packer: rows of 16 values, 16 rows a plane of Dst; reads Dst as fp32, writes fp16. */
    CONFIG(CONFIG_PACK_STRIDE_Y) = STRIDE_Y(PIXEL_BYTES);
    CONFIG(CONFIG_PACK_STRIDE_ZW) = STRIDE_ZW(16 * PIXEL_BYTES, 64 * PIXEL_BYTES);
    CONFIG(CONFIG_PACK_STRIDE2_Y) = 0;
    CONFIG(CONFIG_PACK_STRIDE2_ZW) = 0;
    CONFIG(CONFIG_PACK_EXPONENTS) = STRIDE_Y(4); /* exponent section of 4 units, unused without compression */
    CONFIG(CONFIG_PACK_FORMAT) = PACK_FORMAT(fp16, fp16);
    CONFIG(CONFIG_PACK_ACCUMULATE) = 0;
    CONFIG(CONFIG_PACK_DST) = PACK_DST_FP32 | PACK_ROUND_10_BITS;
    CONFIG(CONFIG_PACK_EDGE_COLUMNS) = 0xFFFF; /* keep all columns */
    CONFIG(CONFIG_PACK_EDGE_ROWS) = 0;
    CONFIG(CONFIG_PACK_ROWS) = FIELD(16, 8);
    CONFIG(CONFIG_PACK_DST_OFFSET) = 0;
    CONFIG(CONFIG_DST_ACCESS) = 0;
    FENCE(); /* [config-order] all written before the other threads hear of it */
    MB->configured = 1;
    FENCE();

    TTI(SETC16(THREAD_STATE_ID, 0));
    TTI(SETC16(THREAD_UNPACK_CONTEXT, 0));
    TTI(SETC16(THREAD_SRCA_OVERRIDE, 4));
    TTI(SETADC_X_RANGE(ADC_UNPACK0, 0, 1023));
}

/* [rebase] Bases may change only while the unpackers are idle, and nothing may be unpacked before the write has landed.
 */
static void rebase(u32 word, u32 address) {
    DRAIN();
    CONFIG(word) = L1_BASE(address);
    TTI(STALLWAIT(HOLD_UNPACK, UNTIL_RISC_CONFIG_WRITTEN));
}

/* One block without pooling: all planes of one tap, from pixel `pixel` of the strip. */
static void load_tap(const struct layer *l, u32 pixel, u32 z_step) {
    PUSH(SETADC(ADC_UNPACK1, 0, ADC_Y, pixel));
    for (u32 c = 0, z = 0; c < l->in_planes; c++, z += z_step) {
        PUSH(SETADC(ADC_UNPACK1, 0, ADC_Z, z));
        TTI(UNPACR(UNPACK_SRCA, 1, 1));
        TTI(UNPACR(UNPACK_SRCB, 0, 1));
    }
}

/* The same with pooling: two half loads, 32 pixels of this row and of the next. */
static void load_tap_pool(const struct layer *l, u32 pixel, u32 z_step) {
    for (u32 c = 0, z = 0; c < l->in_planes; c++, z += z_step) {
        PUSH(SETADC(ADC_UNPACK1, 0, ADC_Z, z));
        PUSH(SETADC(ADC_UNPACK1, 0, ADC_Y, pixel));
        TTI(SETADC(ADC_UNPACK1, 1, ADC_Z, 0));
        TTI(UNPACR(UNPACK_SRCA, 1, 1));
        TTI(UNPACR(UNPACK_SRCB, 0, 0));
        PUSH(SETADC(ADC_UNPACK1, 0, ADC_Y, pixel + l->pitch));
        TTI(SETADC(ADC_UNPACK1, 1, ADC_Z, 1));
        TTI(UNPACR(UNPACK_SRCB, 0, 1));
    }
}

static void load_bias(const struct layer *l) {
    TTI(SETADC(ADC_UNPACK1, 0, ADC_Z, 0));
    TTI(SETADC(ADC_UNPACK1, 0, ADC_Y, 0));
    TTI(UNPACR(UNPACK_SRCA, 1, 1));
    if (l->pool) {
        TTI(SETADC(ADC_UNPACK1, 1, ADC_Z, 0));
        TTI(UNPACR(UNPACK_SRCB, 0, 0));
        TTI(SETADC(ADC_UNPACK1, 1, ADC_Z, 1));
    }
    TTI(UNPACR(UNPACK_SRCB, 0, 1));
}

/* `flat` is the flat pixel index of the block's first output. */
static void load_block(const struct layer *l, u32 flat) {
    const u32 z_step = l->in_plane / PLANE_UNIT;
    TTI(SETADC_ZERO_XY(ADC_UNPACK0 | ADC_UNPACK1));
    TTI(SETADC_ZERO_ZW(ADC_UNPACK0 | ADC_UNPACK1));
    u32 pixel = ONES_PIXELS + LEAD_PIXELS + flat;
    if (l->taps == 9)
        pixel -= l->pitch + 1;
    for (u32 tap = 0; tap < l->taps; tap++) {
        if (l->pool)
            load_tap_pool(l, pixel, z_step);
        else
            load_tap(l, pixel, z_step);
        pixel += tap == 2 || tap == 5 ? l->pitch - 2 : 1;
    }
    load_bias(l);
}

/* `group` counts the groups of weights since the start; returns the next. */
static u32 convolve(const struct layer *l, u32 group, u32 number) {
    if (l->pool)
        TTI(SETADC_X_RANGE(ADC_UNPACK1, 0, 511));
    else
        TTI(SETADC_X_RANGE(ADC_UNPACK1, 0, 1023));
    for (u32 g = 0; g < l->groups; g++, group++) {
        step(CORE_UNPACK, number, STEP_WAIT_WEIGHTS);
        wait_reached(&MB->weights_ready.value, group + 1);
        step(CORE_UNPACK, number, STEP_WORK);
        rebase(CONFIG_UNPACK0_BASE, WEIGHTS + (group & 1) * WEIGHT_BUFFER_BYTES);
        u32 flat = l->pitch + (l->pool ? 1 : 0), x = 0;
        for (u32 b = 0; b < l->blocks; b++) {
            load_block(l, flat);
            if (!l->pool) {
                flat += BLOCK_PIXELS;
            } else {
                flat += 32, x += 32;
                if (x >= l->pitch - 2) /* the next pair of rows */
                    flat += 2 * l->pitch - x, x = 0;
            }
        }
        DRAIN();
        MB->weights_used = group + 1;
    }
    return group;
}

/* Element-wise layers: both operands are planes, and SrcA's base moves with the block. SQUARES sums all planes of
 * `a` in one block; SCALE makes four planes a block, each times plane 0 of `in`. */
static void load_elementwise(const struct layer *l) {
    const u32 z_step = l->in_plane / PLANE_UNIT;
    const u32 planes = l->kind == LAYER_SQUARES ? l->a_planes : 4;
    TTI(SETADC_X_RANGE(ADC_UNPACK1, 0, 1023));
    TTI(SETADC_ZERO_XY(ADC_UNPACK0 | ADC_UNPACK1));
    TTI(SETADC_ZERO_ZW(ADC_UNPACK0 | ADC_UNPACK1));
    for (u32 g = 0; g < l->groups; g++)
        for (u32 b = 0; b < l->blocks; b++) {
            u32 pixel = ONES_PIXELS + LEAD_PIXELS + l->pitch + BLOCK_PIXELS * b;
            rebase(CONFIG_UNPACK0_BASE, l->a + pixel * PIXEL_BYTES);
            PUSH(SETADC(ADC_UNPACK1, 0, ADC_Y, pixel));
            TTI(SETADC(ADC_UNPACK1, 0, ADC_Z, 0));
            for (u32 c = g * 4; c < g * 4 + planes; c++) {
                PUSH(SETADC(ADC_UNPACK0, 0, ADC_Z, c * z_step * 2)); /* its Z steps by 64 pixels */
                if (l->kind == LAYER_SQUARES)
                    PUSH(SETADC(ADC_UNPACK1, 0, ADC_Z, c * z_step));
                TTI(UNPACR(UNPACK_SRCA, 0, 1));
                TTI(UNPACR(UNPACK_SRCB, 0, 1));
            }
        }
}

/* Every core has made its share of the taps. */
static void wait_taps(u32 number) {
    for (u32 core = 0; core < CORES; core++)
        wait_reached(&MB->taps_done[core], number);
    MB->taps_clock = REG(WALL_CLOCK);
}

__attribute__((used)) void main_(void) {
    report_start(CORE_UNPACK, PROGRAM_TRISC(0));
    configure();
    u32 group = 0;
    uint16_t half_of_byte[BYTE_VALUES];
    make_byte_table(half_of_byte);
    for (u32 number = 1;; number++) {
        step(CORE_UNPACK, number, STEP_WAIT_LAYER);
        wait_reached(&MB->go, number);
        const struct layer l = *(const struct layer *)MB->layer;
        if (l.from_picture) {
            step(CORE_UNPACK, number, STEP_TAPS);
            make_taps(&l, CORE_UNPACK, number, half_of_byte);
            wait_taps(number);
        }
        step(CORE_UNPACK, number, STEP_WORK);
        rebase(CONFIG_UNPACK1_BASE, l.in);
        if (l.kind == LAYER_CONV)
            group = convolve(&l, group, number);
        else
            load_elementwise(&l);
        DRAIN();
        MB->thread_done[0] = number;
    }
}
