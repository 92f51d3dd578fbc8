/*
 * TRISC2: empties Dst: rounds to fp16, applies ReLU, writes planes of 16 channels to L1.
 */
#include "taps.h"
#include "tensix.h"

START(LOCAL_RAM_TOP_T)

#define DST_HALF_ROWS 256u
#define GPR_DESTINATION 4u
enum { MODE_NEXT_FOUR, MODE_BACK_TO_ZERO };

static void prepare(void) {
    TTI(SETC16(THREAD_STATE_ID, 0));
    TTI(SETC16(THREAD_MODE_PACK(MODE_NEXT_FOUR), MODE_PACK(4, 0)));
    TTI(SETC16(THREAD_MODE_PACK(MODE_BACK_TO_ZERO), MODE_PACK(0, 1)));
    TTI(SETADC_X_RANGE(ADC_PACK, 0, 15));
    TTI(SETADC_ZERO_XY(ADC_PACK));
    TTI(SETADC_ZERO_ZW(ADC_PACK));
}

/* [pack-rebase] The packer's destination, through a register so that it changes in order with the packing: the packer
 * and the register write must be idle first, and two DMANOPs let the configuration write land. */
static void set_destination(u32 address) {
    const u32 base = L1_BASE(address);
    PUSH(SETDMAREG(2 * GPR_DESTINATION, base));
    PUSH(SETDMAREG(2 * GPR_DESTINATION + 1, base >> 16));
    TTI(STALLWAIT(HOLD_CONFIG, UNTIL_THCON_IDLE | UNTIL_PACKER_IDLE));
    TTI(WRCFG(GPR_DESTINATION, CONFIG_PACK_BASE));
    TTI(DMANOP);
    TTI(DMANOP);
}

/* 64 rows of Dst (with pooling 16), four at a time. */
static void pack_plane(u32 dst_row, u32 address, u32 pool) {
    set_destination(address);
    PUSH(SETADC(ADC_PACK, 0, ADC_Y, dst_row));
    if (!pool)
        for (u32 i = 0; i < 12; i++)
            TTI(PACR(MODE_NEXT_FOUR, 0));
    TTI(PACR(MODE_NEXT_FOUR, 0));
    TTI(PACR(MODE_NEXT_FOUR, 0));
    TTI(PACR(MODE_NEXT_FOUR, 0));
    TTI(PACR(MODE_NEXT_FOUR, 1));
}

static u32 pack_layer(const struct layer *l, u32 half) {
    const u32 plane_bytes = l->out_plane * PIXEL_BYTES;
    for (u32 g = 0; g < l->groups; g++) {
        const u32 planes = g + 1 == l->groups ? l->last_planes : 4;
        const u32 first = l->out + (ONES_PIXELS + LEAD_PIXELS) * PIXEL_BYTES + g * 4 * plane_bytes;
        u32 flat = l->pool ? l->out_pitch + 1 : l->pitch, x = 0;
        for (u32 b = 0; b < l->blocks; b++, half ^= 1) {
            TTI(SEMWAIT(HOLD_PACK | HOLD_CONFIG, SEMAPHORE_DST, WHILE_ZERO));
            for (u32 c = 0; c < planes; c++)
                pack_plane(half * DST_HALF_ROWS + c * BLOCK_PIXELS, first + c * plane_bytes + flat * PIXEL_BYTES,
                           l->pool);
            TTI(STALLWAIT(HOLD_SYNC, UNTIL_PACKER_IDLE)); /* [dst-handover] */
            TTI(SEMGET(SEMAPHORE_DST));
            if (!l->pool) {
                flat += BLOCK_PIXELS;
            } else {
                flat += 16, x += 16;
                if (x >= l->out_pitch - 2)
                    flat += l->out_pitch - x, x = 0;
            }
        }
    }
    return half;
}

__attribute__((used)) void main_(void) {
    report_start(CORE_PACK, PROGRAM_TRISC(2));
    wait_reached(&MB->math_ready, 1);
    wait_reached(&MB->configured, 1);
    prepare();
    u32 half = 0;
    uint16_t half_of_byte[BYTE_VALUES];
    make_byte_table(half_of_byte);
    for (u32 number = 1;; number++) {
        step(CORE_PACK, number, STEP_WAIT_LAYER);
        wait_reached(&MB->go, number);
        const struct layer l = *(const struct layer *)MB->layer;
        if (l.from_picture) {
            step(CORE_PACK, number, STEP_TAPS);
            make_taps(&l, CORE_PACK, number, half_of_byte);
        }
        step(CORE_PACK, number, STEP_WORK);
        DRAIN();
        CONFIG(CONFIG_RELU) = RELU_MODE(l.relu); /* [rebase] the packer is idle, and waits for the write */
        TTI(STALLWAIT(HOLD_PACK, UNTIL_RISC_CONFIG_WRITTEN));
        half = pack_layer(&l, half);
        DRAIN();
        MB->thread_done[2] = number;
    }
}
