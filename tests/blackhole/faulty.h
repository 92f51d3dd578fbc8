/*
 * A wrapper around a transport: fails its n-th call, or every call from the n-th on; loses a tile's release from reset;
 * stops a tile in the middle of a frame.
 */
#ifndef TEST_BLACKHOLE_FAULTY_H
#define TEST_BLACKHOLE_FAULTY_H

#include "transport.h"

typedef struct faulty {
    bh_transport base;
    bh_transport *inner;
    uint64_t calls, ticks; /* so far; a tick is a call too */
    uint64_t fail_call;    /* 0: none; else the call that fails */
    uint64_t fail_tick;    /* the same, counted in ticks */
    bool dead;             /* calls after fail_call fail too */
    uint32_t deaf;         /* tile whose release from reset is lost */
    uint64_t stop_tick;    /* 0: none; else hold `stopped` at this tick */
    uint32_t stopped;
} faulty;

/* Over `inner`, without any fault yet. Only the first `tiles` tiles are shown. */
void faulty_init(faulty *f, bh_transport *inner, size_t tiles);

#endif
