#include "faulty.h"

#include "base/error.h"

static sp_status count(faulty *f, sp_error *err) {
    f->calls++;
    if (f->calls == f->fail_call || (f->dead && f->calls > f->fail_call))
        return sp_fail(err, SP_ERR_ENGINE, "injected: transport call %llu fails", (unsigned long long)f->calls);
    return SP_OK;
}

static sp_status faulty_read(bh_transport *t, uint32_t at, uint64_t address, void *to, size_t n, sp_error *err) {
    faulty *f = (faulty *)t;
    sp_status status = count(f, err);
    return status == SP_OK ? f->inner->read(f->inner, at, address, to, n, err) : status;
}

static sp_status faulty_write(bh_transport *t, uint32_t at, uint64_t address, const void *from, size_t n,
                              sp_error *err) {
    faulty *f = (faulty *)t;
    sp_status status = count(f, err);
    if (status == SP_OK && at == f->deaf && address == SOFT_RESET)
        return SP_OK;
    return status == SP_OK ? f->inner->write(f->inner, at, address, from, n, err) : status;
}

static sp_status faulty_multicast(bh_transport *t, uint32_t first, uint32_t last, uint64_t address, const void *from,
                                  size_t n, sp_error *err) {
    faulty *f = (faulty *)t;
    sp_status status = count(f, err);
    return status == SP_OK ? f->inner->multicast(f->inner, first, last, address, from, n, err) : status;
}

static sp_status faulty_hold(bh_transport *t, uint32_t at, sp_error *err) {
    faulty *f = (faulty *)t;
    sp_status status = count(f, err);
    return status == SP_OK ? f->inner->hold(f->inner, at, err) : status;
}

static sp_status faulty_tick(bh_transport *t, uint64_t *now_us, sp_error *err) {
    faulty *f = (faulty *)t;
    sp_status status = count(f, err);
    if (++f->ticks == f->fail_tick)
        return sp_fail(err, SP_ERR_ENGINE, "injected: tick %llu fails", (unsigned long long)f->ticks);
    if (status != SP_OK)
        return status;
    if (f->ticks == f->stop_tick)
        f->inner->hold(f->inner, f->stopped, err);
    return f->inner->tick(f->inner, now_us, err);
}

static sp_status faulty_share(bh_transport *t, size_t bytes, void **memory, struct remote *remote, sp_error *err) {
    faulty *f = (faulty *)t;
    sp_status status = count(f, err);
    return status == SP_OK ? f->inner->share(f->inner, bytes, memory, remote, err) : status;
}

static void faulty_unshare(bh_transport *t, void *memory) {
    faulty *f = (faulty *)t;
    f->inner->unshare(f->inner, memory);
}

void faulty_init(faulty *f, bh_transport *inner, size_t tiles) {
    *f = (faulty){.inner = inner, .deaf = NOC_NOWHERE};
    f->base = (bh_transport){.chip = inner->chip,
                             .hang_us = inner->hang_us,
                             .read = faulty_read,
                             .write = faulty_write,
                             .multicast = faulty_multicast,
                             .hold = faulty_hold,
                             .tick = faulty_tick,
                             .share = faulty_share,
                             .unshare = faulty_unshare};
    f->base.chip.tiles = tiles; /* a small chip: fewer calls, as a board with disabled columns would have */
}
