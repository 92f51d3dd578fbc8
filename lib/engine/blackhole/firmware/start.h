/*
 * What every program of a tile begins with, and the few things all cores do.
 */
#ifndef BH_START_H
#define BH_START_H

#include "tile.h"

typedef uint8_t u8;
typedef uint32_t u32;
typedef uint64_t u64;
#define REG(address) (*(volatile u32 *)(address))
#define MB ((volatile struct mailbox *)MAILBOX)

/*
 * [fence] Orders all earlier loads and stores of this core before all later ones, and drops the
 * L0 data cache, which is not coherent with the NoC or the other cores: a polled load needs one in its loop.
 */
#define FENCE() __asm__ volatile("fence iorw,iorw" ::: "memory")

/* Make earlier stores visible in L1 before anything that follows starts, a NoC command included: a fence, and a
 * load of the last word stored, whose result is consumed. */
static inline void publish(volatile u32 *last) {
    FENCE();
    u32 seen = *last;
    __asm__ volatile("" ::"r"(seen) : "memory");
    FENCE();
}

static inline void step(u32 core, u32 layer, u32 what) {
    MB->step[core] = STEP(layer, what);
}

/* Wait until a counter that only grows has reached `value`. */
static inline void wait_reached(volatile u32 *counter, u32 value) {
    while ((int32_t)(*counter - value) < 0)
        FENCE();
    FENCE();
}

/*
 * _start: the stack, then the sequence that switches instruction gathering off, as the vendor's own
 * start-up does (CSR 0x7C0: set bit 1, fence, set bit 18, clear bit 1, fence); then main_.
 * The version word is the second word of the program (PROGRAM_VERSION_OFFSET).
 */
#define START(stack_top)                                                                                               \
    __attribute__((naked, used, section(".start"))) void _start(void) {                                                \
        __asm__ volatile("j 1f\n .word %0\n 1:\n"                                                                      \
                         "li sp, %1\n"                                                                                 \
                         "li t1, 2\n csrrs zero, 0x7c0, t1\n"                                                          \
                         "li t1, 0x40000\n fence iorw, iorw\n csrrs zero, 0x7c0, t1\n"                                 \
                         "li t1, 2\n csrrc zero, 0x7c0, t1\n fence iorw, iorw\n"                                       \
                         "j main_" ::"i"(TILE_VERSION),                                                                \
                         "i"((stack_top)-16u));                                                                        \
    }                                                                                                                  \
    void *memset(void *to, int value, __SIZE_TYPE__ n) {                                                               \
        volatile char *p = to;                                                                                         \
        while (n--)                                                                                                    \
            *p++ = (char)value;                                                                                        \
        return to;                                                                                                     \
    }                                                                                                                  \
    void *memcpy(void *to, const void *from, __SIZE_TYPE__ n) {                                                        \
        volatile char *p = to;                                                                                         \
        const char *q = from;                                                                                          \
        while (n--)                                                                                                    \
            *p++ = *q++;                                                                                               \
        return to;                                                                                                     \
    }

/* Report the version that this program really is: the word in L1, not the constant of the compilation. */
static inline void report_start(u32 core, u32 program) {
    MB->version[core] = REG(program + PROGRAM_VERSION_OFFSET);
    step(core, 0, STEP_STARTED);
    FENCE();
}

#endif
