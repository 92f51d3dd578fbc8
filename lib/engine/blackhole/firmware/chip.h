/*
 * Addresses and bits of a Blackhole Tensix tile that firmware and host share.
 *
 * Source: tt-isa-documentation (BlackholeA0: BabyRISCV/README, SoftReset, NoC/MemoryMap) and, for the
 * encodings, cfg_defines.h of the vendor's low-level kernels; every value below was run in the ttsim
 * simulator unless a line says otherwise. The numbers are facts of the chip; the text is ours.
 */
#ifndef BH_CHIP_H
#define BH_CHIP_H

#ifndef __ASSEMBLER__
#include <stdint.h>
#endif

/* L1: 1536 KiB at address 0, seen by the tile's cores, its Tensix units and, over the NoC, by everyone. */
#define L1_BYTES 0x180000u

/* Top of the cores' private RAM: 8 KiB for BRISC and NCRISC, 4 KiB for TRISC0...2. Stacks grow down from here. */
#define LOCAL_RAM_TOP_BN 0xFFB02000u
#define LOCAL_RAM_TOP_T 0xFFB01000u

/* Soft reset: a bit set holds the unit in reset. */
#define SOFT_RESET 0xFFB121B0u
#define RESET_BRISC (1u << 11)
#define RESET_TRISC0 (1u << 12)
#define RESET_TRISC1 (1u << 13)
#define RESET_TRISC2 (1u << 14)
#define RESET_NCRISC (1u << 18)
#define RESET_CORES (RESET_BRISC | RESET_TRISC0 | RESET_TRISC1 | RESET_TRISC2 | RESET_NCRISC)
/* Tensix units: unpackers 0, 1, 7; packer 2...5; mover 6; TDMA 8; ThCon 9; FPU and SFPU 10; ownership of SrcA, SrcB
 * 15, 16; Dst and packer 17; SrcA 19...22; automatic ordering 23 (doc; the simulator has none of them). */
#define RESET_TENSIX 0x00FB87FFu

/* Where a core starts. BRISC starts at 0 and has no register for it. */
#define TRISC_START_PC(t) (0xFFB12228u + 4u * (t))
#define TRISC_START_PC_ENABLE 0xFFB12234u /* bits 0...2 */
#define NCRISC_START_PC 0xFFB12238u
#define NCRISC_START_PC_ENABLE 0xFFB1223Cu /* bit 0 */

/* Cycles since reset, low word. */
#define WALL_CLOCK 0xFFB121F0u

/* NoC 0: one block of registers for each of four initiators, counters once. */
#define NOC0 0xFFB20000u
#define NOC_INITIATOR(i) (NOC0 + 0x800u * (i))

/* A place on the NoC as its registers take it, and a multicast rectangle (both corners included). */
#define NOC_AT(x, y) ((uint32_t)(x) | (uint32_t)(y) << 6)
#define NOC_X(at) ((at)&0x3Fu)
#define NOC_Y(at) ((at) >> 6 & 0x3Fu)
#define NOC_RECT(x0, y0, x1, y1) (NOC_AT(x1, y1) | NOC_AT(x0, y0) << 12)
#define NOC_NOWHERE 0xFFFFFFFFu

#define NOC_MAX_TRANSFER 16384u /* bytes a command */
#define NOC_ALIGN_DRAM 64u      /* a read from DRAM needs equal addresses modulo this on both sides */
#define NOC_ALIGN_L1 16u        /* between L1s, and for all writes */

#endif
