/*
 * TRISC1: matrix unit and pooling.
 *
 * A block is 64 pixels x 64 outputs = 256 rows of 16 fp32 values, half of Dst: this thread fills one
 * half while TRISC2 empties the other. The semaphore counts the filled halves.
 */
#include "taps.h"
#include "tensix.h"

START(LOCAL_RAM_TOP_T)

#define DST_HALF_ROWS 256u
/* Address modes. */
enum {
    MODE_NEXT_ROWS,   /* next 8 pixels: SrcB + 8, Dst + 8 */
    MODE_NEXT_PLANE,  /* next 16 outputs: SrcA + 16, SrcB + 8 (wraps to 0), Dst + 8 */
    MODE_NEXT_PHASE,  /* all back to 0, next fidelity phase */
    MODE_ELEMENTWISE, /* SrcA, SrcB, Dst + 8 */
    MODE_STILL = SFP_MODE
};

static void set_modes(void) {
    TTI(SETC16(THREAD_MODE_SRC(MODE_NEXT_ROWS), MODE_SRC(0, 0, 8, 0)));
    TTI(SETC16(THREAD_MODE_DST(MODE_NEXT_ROWS), MODE_DST(8, 0, 0)));
    TTI(SETC16(THREAD_MODE_BIAS(MODE_NEXT_ROWS), 0));
    TTI(SETC16(THREAD_MODE_SRC(MODE_NEXT_PLANE), MODE_SRC(16, 0, 8, 0)));
    TTI(SETC16(THREAD_MODE_DST(MODE_NEXT_PLANE), MODE_DST(8, 0, 0)));
    TTI(SETC16(THREAD_MODE_BIAS(MODE_NEXT_PLANE), 0));
    TTI(SETC16(THREAD_MODE_SRC(MODE_NEXT_PHASE), MODE_SRC(0, 1, 0, 1)));
    TTI(SETC16(THREAD_MODE_DST(MODE_NEXT_PHASE), MODE_DST(0, 1, 1)));
    TTI(SETC16(THREAD_MODE_BIAS(MODE_NEXT_PHASE), 0));
    TTI(SETC16(THREAD_MODE_SRC(MODE_ELEMENTWISE), MODE_SRC(8, 0, 8, 0)));
    TTI(SETC16(THREAD_MODE_DST(MODE_ELEMENTWISE), MODE_DST(8, 0, 0)));
    TTI(SETC16(THREAD_MODE_BIAS(MODE_ELEMENTWISE), 0));
    TTI(SETC16(THREAD_MODE_SRC(MODE_STILL), 0));
    TTI(SETC16(THREAD_MODE_DST(MODE_STILL), 0));
    TTI(SETC16(THREAD_MODE_BIAS(MODE_STILL), 0));
}

#define SEVEN_ROWS()                                                                                                   \
    do {                                                                                                               \
        TTI(MVMUL(MODE_NEXT_ROWS));                                                                                    \
        TTI(MVMUL(MODE_NEXT_ROWS));                                                                                    \
        TTI(MVMUL(MODE_NEXT_ROWS));                                                                                    \
        TTI(MVMUL(MODE_NEXT_ROWS));                                                                                    \
        TTI(MVMUL(MODE_NEXT_ROWS));                                                                                    \
        TTI(MVMUL(MODE_NEXT_ROWS));                                                                                    \
        TTI(MVMUL(MODE_NEXT_ROWS));                                                                                    \
    } while (0)

/* One K block, one phase: 8 x 8 pixels for each of 4 output planes, in the replay buffer. */
#define KBLOCK_LENGTH 32
static void record(void) {
    TTI(REPLAY_RECORD(0, KBLOCK_LENGTH));
    SEVEN_ROWS();
    TTI(MVMUL(MODE_NEXT_PLANE));
    SEVEN_ROWS();
    TTI(MVMUL(MODE_NEXT_PLANE));
    SEVEN_ROWS();
    TTI(MVMUL(MODE_NEXT_PLANE));
    SEVEN_ROWS();
    TTI(MVMUL(MODE_NEXT_PHASE));
}

static void prepare(void) {
    TTI(SEMINIT(2, 0, SEMAPHORE_DST));
    TTI(SETC16(THREAD_STATE_ID, 0));
    TTI(SETC16(THREAD_MATH_DST_OFFSET, 0));
    TTI(SETC16(THREAD_NO_IMPLIED_FORMAT_A, 0));
    TTI(SETC16(THREAD_NO_IMPLIED_FORMAT_B, 0));
    TTI(SETC16(THREAD_MATH_FORMAT, 0));
    set_modes();
    TTI(ZEROACC_ALL);
    record();
    DRAIN();
    MB->math_ready = 1;
    FENCE();
}

static void multiply_block(const struct layer *l) {
    for (u32 k = l->taps * l->in_planes + 1; k; k--) {
        for (u32 p = l->phases; p; p--)
            TTI(REPLAY(0, KBLOCK_LENGTH));
        TTI(SETRWC_ZERO(RELEASE_BOTH));
    }
}

static void multiply_elementwise(const struct layer *l) {
    const u32 planes = l->kind == LAYER_SQUARES ? l->a_planes : 4;
    for (u32 c = 0; c < planes; c++) {
        const u32 dst = l->kind == LAYER_SQUARES ? 0 : c * BLOCK_PIXELS;
        for (u32 p = l->phases; p; p--) { /* 8 x 8 pixels a phase */
            for (u32 i = 0; i < 7; i++)
                PUSH(ELWMUL(MODE_ELEMENTWISE, dst));
            PUSH(ELWMUL(MODE_NEXT_PHASE, dst));
            TTI(NOP); /* [push] */
        }
        TTI(SETRWC_ZERO(RELEASE_BOTH));
    }
}

/*
 * 2 x 2 maximum of one output plane in Dst, in place: rows 0...31 are 32 pixels of row y, rows 32...63
 * of row y+1, 16 channels each. A vector register holds 4 pixels x 8 channels of one column parity.
 * Half a plane: pixels g, g+8, g+16, g+24 (four each) of both rows; vertical maxima by four SFPMAX, then a
 * transposition brings neighbours into different registers, and two more SFPMAX take the horizontal ones. An SFPNOP
 * follows every two-cycle operation [sfpu-hazard]. Written out for every row, so that each instruction stands in the
 * program text: one stored to the FIFO costs about six cycles.
 */
#define INLINED static inline __attribute__((always_inline))
INLINED void pool_half(const u32 row) {
    TTI(SFPLOAD(0, row));
    TTI(SFPLOAD(1, row + 8));
    TTI(SFPLOAD(2, row + 16));
    TTI(SFPLOAD(3, row + 24));
    TTI(SFPLOAD(4, row + 32));
    TTI(SFPLOAD(5, row + 40));
    TTI(SFPLOAD(6, row + 48));
    TTI(SFPLOAD(7, row + 56));
    TTI(SFPMAX(0, 4));
    TTI(SFPNOP);
    TTI(SFPMAX(1, 5));
    TTI(SFPNOP);
    TTI(SFPMAX(2, 6));
    TTI(SFPNOP);
    TTI(SFPMAX(3, 7));
    TTI(SFPNOP);
    TTI(SFPTRANSP);
    TTI(SFPNOP);
    TTI(SFPMAX(0, 1));
    TTI(SFPNOP);
    TTI(SFPMAX(2, 3));
    TTI(SFPNOP);
}

INLINED void pool_parity(const u32 row) {
    pool_half(row); /* pooled pixels {0,4,8,12} and {1,5,9,13}: parked in rows already used up */
    TTI(SFPSTORE(0, row));
    TTI(SFPSTORE(2, row + 8));
    TTI(SFPNOP);
    pool_half(row + 4); /* {2,6,10,14} and {3,7,11,15} */
    TTI(SFPMOV(3, 2));
    TTI(SFPMOV(2, 0));
    TTI(SFPLOAD(0, row));
    TTI(SFPLOAD(1, row + 8));
    TTI(SFPTRANSP); /* pooled pixels in order */
    TTI(SFPNOP);
    TTI(SFPSTORE(0, row));
    TTI(SFPSTORE(1, row + 4));
    TTI(SFPSTORE(2, row + 8));
    TTI(SFPSTORE(3, row + 12));
    TTI(SFPNOP);
}

INLINED void pool_plane(const u32 plane) {
    pool_parity(plane * BLOCK_PIXELS);
    pool_parity(plane * BLOCK_PIXELS + 2);
}

static void pool_block(void) {
    TTI(STALLWAIT(HOLD_SFPU, UNTIL_FPU_IDLE)); /* [fpu-sfpu] */
    pool_plane(0);
    pool_plane(1);
    pool_plane(2);
    pool_plane(3);
}

__attribute__((used)) void main_(void) {
    report_start(CORE_MATH, PROGRAM_TRISC(1));
    prepare();
    wait_reached(&MB->configured, 1);
    u32 half = 0;
    uint16_t half_of_byte[BYTE_VALUES];
    make_byte_table(half_of_byte);
    for (u32 number = 1;; number++) {
        step(CORE_MATH, number, STEP_WAIT_LAYER);
        wait_reached(&MB->go, number);
        const struct layer l = *(const struct layer *)MB->layer;
        if (l.from_picture) {
            step(CORE_MATH, number, STEP_TAPS);
            make_taps(&l, CORE_MATH, number, half_of_byte);
        }
        step(CORE_MATH, number, STEP_WORK);
        for (u32 b = l.blocks * l.groups; b; b--, half ^= 1) {
            TTI(SEMWAIT(HOLD_MATH | HOLD_CONFIG, SEMAPHORE_DST, WHILE_MAX)); /* both halves are full */
            TTI(STALLWAIT(HOLD_CONFIG | HOLD_MATH, UNTIL_FPU_IDLE | UNTIL_SFPU_IDLE));
            PUSH(SETC16(THREAD_MATH_DST_OFFSET, half * DST_HALF_ROWS));
            PUSH(ZEROACC_HALF(half));
            TTI(SETRWC_ZERO(RELEASE_NONE));
            if (l.kind == LAYER_CONV)
                multiply_block(&l);
            else
                multiply_elementwise(&l);
            if (l.pool)
                pool_block();
            TTI(STALLWAIT(HOLD_SYNC, UNTIL_FPU_IDLE | UNTIL_SFPU_IDLE)); /* [dst-handover] */
            TTI(SEMPOST(SEMAPHORE_DST));
        }
        DRAIN();
        MB->thread_done[1] = number;
    }
}
