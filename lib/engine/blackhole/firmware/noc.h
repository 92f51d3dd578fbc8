/*
 * NoC 0 from one core. Each core uses its own initiator (a set of registers) and transaction ids of its own, so that
 * the cores do not disturb each other's waiting. Define NOC_OWN_INITIATOR (0...3) and NOC_OWN_ID (0...15) first.
 *
 * Source: tt-isa-documentation, BlackholeA0/NoC (MemoryMap, Transactions, Counters, Alignment).
 */
#ifndef BH_NOC_H
#define BH_NOC_H

#include "start.h"

enum {
    NOC_TARGET_LOW = 0x00,
    NOC_TARGET_HIGH = 0x04,
    NOC_TARGET_AT = 0x08,
    NOC_RETURN_LOW = 0x0C,
    NOC_RETURN_HIGH = 0x10,
    NOC_RETURN_AT = 0x14,
    NOC_TAG = 0x18,
    NOC_CONTROL = 0x1C,
    NOC_LENGTH = 0x20,
    NOC_ATOMIC_OPERAND = 0x28,
    NOC_START = 0x40
};
#define NOC_REG(offset) REG(NOC_INITIATOR(NOC_OWN_INITIATOR) + (offset))
/* Registers that exist once. */
#define NOC_NODE_ID REG(NOC0 + 0x44u) /* own x in bits 0...5, y in 6...11 */
#define NOC_WRITE_ACKS REG(NOC0 + 0x204u)
#define NOC_OUTSTANDING(id) REG(NOC0 + 0x240u + 4u * (id)) /* requests of this id not yet answered */

enum {
    NOC_READ = 0,
    NOC_ATOMIC = 1,
    NOC_WRITE = 2,
    NOC_ANSWER = 1 << 4, /* response wanted: without it completion could not be known */
    NOC_MULTICAST = 1 << 5,
    NOC_STATIC_VC = 1 << 7,
    NOC_PATH_RESERVE = 1 << 8, /* required for a multicast */
    NOC_VC_UNICAST = 1 << 13,
    NOC_VC_MULTICAST = 4 << 13
};
#define NOC_INCREMENT_WRAP31 0x107Cu /* atomic: add the operand to the word; wraps at 32 bits */

static u32 noc_me; /* NOC_AT of this tile */

static void noc_begin(void) {
    noc_me = NOC_NODE_ID & 0xFFFu;
}

/* [noc-ready] The registers may be written again. */
static void noc_ready(void) {
    while (NOC_REG(NOC_START)) {
    }
}

static void noc_addresses(u32 target_at, u64 target, u32 return_at, u64 back) {
    noc_ready();
    NOC_REG(NOC_TARGET_LOW) = (u32)target;
    NOC_REG(NOC_TARGET_HIGH) = (u32)(target >> 32);
    NOC_REG(NOC_TARGET_AT) = target_at;
    NOC_REG(NOC_RETURN_LOW) = (u32)back;
    NOC_REG(NOC_RETURN_HIGH) = (u32)(back >> 32);
    NOC_REG(NOC_RETURN_AT) = return_at;
    NOC_REG(NOC_TAG) = NOC_OWN_ID << 10;
}

static void noc_go(u32 control, u32 length) {
    NOC_REG(NOC_LENGTH) = length;
    NOC_REG(NOC_CONTROL) = control;
    NOC_REG(NOC_START) = 1;
}

/* [noc-done] Everything that this core started has been answered: read data lies in L1, written data has arrived. */
static void noc_wait(void) {
    noc_ready();
    while (NOC_OUTSTANDING(NOC_OWN_ID)) {
    }
    FENCE();
}

/* Start reading n bytes at `from` of tile or port `at` into own L1. */
__attribute__((unused)) static void noc_read(u32 at, u32 from, u32 to, u32 n) {
    while (n) {
        u32 part = n < NOC_MAX_TRANSFER ? n : NOC_MAX_TRANSFER;
        noc_addresses(at, from, noc_me, to);
        noc_go(NOC_READ | NOC_ANSWER | NOC_STATIC_VC | NOC_VC_UNICAST, part);
        from += part, to += part, n -= part;
    }
}

/* Start writing n bytes of own L1 to `to` of `at`. */
__attribute__((unused)) static void noc_write(u32 from, u32 at, u64 to, u32 n) {
    while (n) {
        u32 part = n < NOC_MAX_TRANSFER ? n : NOC_MAX_TRANSFER;
        noc_addresses(noc_me, from, at, to);
        noc_go(NOC_WRITE | NOC_ANSWER | NOC_STATIC_VC | NOC_VC_UNICAST, part);
        from += part, to += part, n -= part;
    }
}

/* [signal] Write a line to another tile: a full 16-byte write, because inline writes to L1 are unsafe on this chip. The
 * source must be published first and stay as it is until noc_wait. */
__attribute__((unused)) static void noc_signal(volatile struct line *from, u32 at, volatile struct line *to) {
    noc_write((u32)from, at, (u32)to, sizeof(struct line));
}

/* Add 1 to a counter in another tile's L1, and wait. The old value goes to `old`. */
__attribute__((unused)) static void noc_increment(u32 at, volatile struct line *counter, volatile struct line *old) {
    noc_addresses(at, (u32)counter, noc_me, (u32)old);
    NOC_REG(NOC_ATOMIC_OPERAND) = 1;
    noc_go(NOC_ATOMIC | NOC_ANSWER | NOC_STATIC_VC | NOC_VC_UNICAST, NOC_INCREMENT_WRAP31);
    noc_wait();
}

static inline u64 remote_address(const volatile struct remote *r, u32 frame) {
    return ((u64)r->high << 32 | r->low) + (frame & 1 ? r->slot_bytes : 0);
}

/* I am neighbour `opposite(k)` of my neighbour k. */
__attribute__((unused)) static u32 opposite(u32 k) {
    static const u8 other[NEIGHBOURS] = {SOUTH, NORTH, EAST, WEST, SOUTH_EAST, SOUTH_WEST, NORTH_EAST, NORTH_WEST};
    return other[k];
}

#endif
