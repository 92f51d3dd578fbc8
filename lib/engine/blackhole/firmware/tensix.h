/*
 * Encoders of the Tensix instructions that the firmware uses: op code in bits 31...24, the fields
 * below it as written out here.
 *
 * Source: tt-isa-documentation, BlackholeA0/TensixTile/TensixCoprocessor, and the vendor's low-level
 * kernels for Blackhole. Each was run in the simulator, which refuses undefined fields.
 */
#ifndef BH_TENSIX_H
#define BH_TENSIX_H

#include "start.h"

#define FIELD(value, shift) ((u32)(value) << (shift))
#define OP(code, fields) (FIELD(code, 24) | (fields))

/* [inline] An instruction in the program text: its encoding rotated left by two. The core issues it in
 * order and waits while the FIFO is full. */
#define TTI(encoding) __asm__ volatile(".4byte %0" ::"i"((u32)(((encoding) << 2) | ((encoding) >> 30))))

/* [push] An instruction computed at run time, stored to the FIFO's address. Such stores are not held back
 * when the FIFO is full: after at most PUSH_LIMIT of them comes an inline instruction, which is. */
#define PUSH(encoding) (REG(0xFFE40000u) = (encoding))

/* [drain] Reading this waits until all earlier Tensix instructions of this thread are done. */
#define DRAIN()                                                                                                        \
    do {                                                                                                               \
    } while (REG(0xFFE80004u))

/* ------------------------------------------------------------------ counters and addresses ----- */

/* Address counters: units, channels, dimensions. Channel 0 counts in L1 (packer: in Dst), channel 1 the other side. */
enum { ADC_UNPACK0 = 1, ADC_UNPACK1 = 2, ADC_PACK = 4 };
enum { ADC_X, ADC_Y, ADC_Z, ADC_W };
#define SETADC(units, channel, dim, value)                                                                             \
    OP(0x50, FIELD(units, 21) | FIELD(channel, 20) | FIELD(dim, 18) | FIELD(value, 0))
#define SETADC_ZERO_XY(units) OP(0x51, FIELD(units, 21) | 0xBu) /* both channels */
#define SETADC_ZERO_ZW(units) OP(0x54, FIELD(units, 21) | 0xFu)
#define SETADC_X_RANGE(units, first, last) OP(0x5E, FIELD(units, 21) | FIELD(last, 10) | FIELD(first, 0))

/* Thread configuration register. */
#define SETC16(reg, value) OP(0xB2, FIELD(reg, 16) | FIELD((value)&0xFFFFu, 0))
enum {
    THREAD_STATE_ID = 0,
    THREAD_MATH_DST_OFFSET = 1, /* rows */
    THREAD_NO_IMPLIED_FORMAT_A = 2,
    THREAD_NO_IMPLIED_FORMAT_B = 3,
    THREAD_SRCA_OVERRIDE = 5,
    THREAD_MATH_FORMAT = 7,
    THREAD_UNPACK_CONTEXT = 41
};
/* Address modes 0...7 of the math thread: steps of SrcA and SrcB, of Dst and fidelity, bias. */
#define THREAD_MODE_SRC(mode) (12 + (mode))
#define THREAD_MODE_DST(mode) (28 + (mode))
#define THREAD_MODE_BIAS(mode) (47 + (mode))
#define MODE_SRC(a_step, a_clear, b_step, b_clear)                                                                     \
    (FIELD(a_step, 0) | FIELD(a_clear, 7) | FIELD(b_step, 8) | FIELD(b_clear, 15))
#define MODE_DST(step, clear, fidelity_step) (FIELD(step, 0) | FIELD(clear, 11) | FIELD(fidelity_step, 13))
/* Address modes of the pack thread: step and clear of the Dst row. */
#define THREAD_MODE_PACK(mode) (37 + (mode))
#define MODE_PACK(step, clear) (FIELD(step, 0) | FIELD(clear, 5))

/* Set the math thread's counters to zero, the fidelity phase too, and hand banks of SrcA and SrcB back to the
 * unpackers. */
enum { RELEASE_NONE = 0, RELEASE_BOTH = 3 };
#define SETRWC_ZERO(release) OP(0x37, FIELD(release, 22) | 0xFu)

/* General purpose registers of a thread, by halves, and from there into the back end's configuration. */
#define SETDMAREG(half, value) OP(0x45, FIELD((value)&0xFFFFu, 8) | FIELD(half, 0))
#define WRCFG(gpr, word) OP(0xB0, FIELD(gpr, 16) | FIELD(word, 0))

/* ------------------------------------------------------------------ movers --------------------- */

/* Unpack one tile; `z_step` of channel 0 afterwards; `give` hands the filled bank to the matrix unit. Bits 7 and 0: use
 * the thread's context, last. */
enum { UNPACK_SRCA = 0, UNPACK_SRCB = 1 };
#define UNPACR(unit, z_step, give) OP(0x42, FIELD(unit, 23) | FIELD(z_step, 15) | FIELD(1, 7) | FIELD(give, 6) | 1u)

/* Pack four rows of Dst; the last one of a run flushes. Bit 4: concatenated. */
#define PACR(mode, last) OP(0x41, FIELD(mode, 15) | FIELD(1, 4) | FIELD(last, 0))

/* ------------------------------------------------------------------ arithmetic ----------------- */

/* Dst[8 rows] += SrcB[8 x 16] * SrcA[16 x 16]. */
#define MVMUL(mode) OP(0x26, FIELD(mode, 14))
/* Dst[8 rows] += SrcA[8 rows] * SrcB[8 rows]. */
#define ELWMUL(mode, dst) OP(0x27, FIELD(mode, 14) | FIELD(dst, 0))
#define ZEROACC_ALL OP(0x10, FIELD(3, 19) | FIELD(1, 18))
#define ZEROACC_HALF(half) OP(0x10, FIELD(2, 19) | FIELD(1, 18) | FIELD(half, 0)) /* of Dst in 32-bit rows */
/* Replay buffer: record the next `length` instructions without executing them, or execute them. */
#define REPLAY_RECORD(start, length) OP(0x04, FIELD(start, 14) | FIELD(length, 4) | 1u)
#define REPLAY(start, length) OP(0x04, FIELD(start, 14) | FIELD(length, 4))
#define NOP OP(0x02, 0u)
#define DMANOP OP(0x60, 0u)

/* Vector unit: 32 lanes of fp32. Rows of Dst with bit 1 set pick the odd columns. */
enum { SFP_FP32 = 3, SFP_MODE = 7 }; /* data format; an address mode that steps nothing */
#define SFPLOAD(reg, row) OP(0x70, FIELD(reg, 20) | FIELD(SFP_FP32, 16) | FIELD(SFP_MODE, 13) | FIELD(row, 0))
#define SFPSTORE(reg, row) OP(0x72, FIELD(reg, 20) | FIELD(SFP_FP32, 16) | FIELD(SFP_MODE, 13) | FIELD(row, 0))
#define SFPMAX(greater, lesser) OP(0x92, FIELD(greater, 8) | FIELD(lesser, 4) | 1u) /* sorts the two */
#define SFPMOV(to, from) OP(0x7C, FIELD(from, 8) | FIELD(to, 4))
#define SFPTRANSP OP(0x8C, 0u) /* 4 x 4 of 8-lane groups: L0...3 and L4...7 */
#define SFPNOP OP(0x8F, 0u)

/* ------------------------------------------------------------------ order ---------------------- */

/* What a wait holds back, and what it waits for. */
enum {
    HOLD_SYNC = 1 << 1,
    HOLD_PACK = 1 << 2,
    HOLD_UNPACK = 1 << 3,
    HOLD_MATH = 1 << 6,
    HOLD_CONFIG = 1 << 7,
    HOLD_SFPU = 1 << 8
};
enum {
    UNTIL_THCON_IDLE = 1 << 0,
    UNTIL_PACKER_IDLE = 1 << 3,
    UNTIL_FPU_IDLE = 1 << 4,
    UNTIL_RISC_CONFIG_WRITTEN = 1 << 10,
    UNTIL_SFPU_IDLE = 1 << 11
};
#define STALLWAIT(hold, until) OP(0xA2, FIELD(hold, 15) | FIELD(until, 0))
/* Semaphores are named by a bit. */
enum { SEMAPHORE_DST = 1 << 1 }; /* counts filled halves of Dst */
enum { WHILE_ZERO = 1, WHILE_MAX = 2 };
#define SEMINIT(max, value, semaphore) OP(0xA3, FIELD(max, 20) | FIELD(value, 16) | FIELD(semaphore, 2))
#define SEMPOST(semaphore) OP(0xA4, FIELD(semaphore, 2))
#define SEMGET(semaphore) OP(0xA5, FIELD(semaphore, 2))
#define SEMWAIT(hold, semaphore, condition) OP(0xA6, FIELD(hold, 15) | FIELD(semaphore, 2) | FIELD(condition, 0))

/* ------------------------------------------------------------------ back end configuration ----- */

/* Word i of bank 0; written by a core with a store, only while the unit concerned is idle. */
#define CONFIG(word) REG(0xFFEF0000u + 4u * (word))
enum { FORMAT_FP16 = 1 };
enum {
    CONFIG_ALU = 1,
    CONFIG_RELU = 2, /* bits 2...5: 1 = max(x, 0) */
    CONFIG_PACK_STRIDE_Y = 12,
    CONFIG_PACK_STRIDE_ZW = 13,
    CONFIG_PACK_STRIDE2_Y = 14,
    CONFIG_PACK_STRIDE2_ZW = 15,
    CONFIG_PACK_DST = 18,
    CONFIG_PACK_EDGE_ROWS = 20,
    CONFIG_PACK_EDGE_COLUMNS = 24,
    CONFIG_PACK_ROWS = 28,
    CONFIG_UNPACK0_STRIDE_Y = 56,
    CONFIG_UNPACK0_STRIDE_Z = 57,
    CONFIG_UNPACK1_STRIDE_Z = 59,
    CONFIG_UNPACK0_TILE = 64, /* two words: format, x; y, z */
    CONFIG_UNPACK0_OUT = 72,  /* two words: out format, throttle; contexts without compression */
    CONFIG_UNPACK0_BASE = 76, /* (address >> 4) - 1 */
    CONFIG_UNPACK0_DST = 84,
    CONFIG_UNPACK0_X = 86,
    CONFIG_UNPACK1_TILE = 112,
    CONFIG_UNPACK1_OUT = 120,
    CONFIG_UNPACK1_BASE = 124,
    CONFIG_PACK_EXPONENTS = 68,
    CONFIG_PACK_BASE = 69, /* L1 destination: (address >> 4) - 1 */
    CONFIG_PACK_FORMAT = 70,
    CONFIG_PACK_ACCUMULATE = 71,
    CONFIG_PACK_DST_OFFSET = 180,
    CONFIG_DST_ACCESS = 220
};
#define ALU_FORMATS(a, b, dst) (FIELD(a, 17) | FIELD(b, 21) | FIELD(dst, 25))
#define ALU_FP32_ACCUMULATE FIELD(1, 29)
#define RELU_MODE(on) FIELD((on) != 0, 2)
#define TILE_FORMAT(format, x) (FIELD(format, 0) | FIELD(1, 4) | FIELD(x, 16)) /* bit 4: uncompressed */
#define TILE_YZ(y, z) (FIELD(y, 0) | FIELD(z, 16))
#define UNPACK_OUT(format) (FIELD(format, 0) | FIELD(2, 4)) /* throttle 2 */
#define UNPACK_NO_COMPRESSION 0xFu                          /* in all contexts */
#define BOTH_CONTEXTS(value) (FIELD(value, 0) | FIELD(value, 16))
#define STRIDE_Y(bytes) FIELD(bytes, 16)
#define STRIDE_ZW(z, w) (FIELD(z, 0) | FIELD(w, 16))
#define PACK_FORMAT(in, out) (1u | FIELD(out, 4) | FIELD(in, 8)) /* bit 0: uncompressed */
#define PACK_DST_FP32 FIELD(1, 0)
#define PACK_ROUND_10_BITS FIELD(1, 3)
#define L1_BASE(address) (((address) >> 4) - 1u)

#endif
