#include "watch.h"

#include <stddef.h>
#include <string.h>

#include "base/error.h"

static const char *const core_name[CORES] = {"BRISC", "TRISC0 (unpack)", "TRISC1 (math)", "TRISC2 (pack)", "NCRISC"};

static const char *step_text(uint32_t step) {
    static const char *const text[STEPS] = {[STEP_NONE] = "has not started",
                                            [STEP_STARTED] = "has started",
                                            [STEP_WAIT_RUN] = "waits for the host",
                                            [STEP_WAIT_NEIGHBOURS] = "waits for neighbours",
                                            [STEP_HALO] = "reads halos",
                                            [STEP_PICTURE] = "reads the picture",
                                            [STEP_TAPS] = "makes the first layer's input",
                                            [STEP_FACTORS] = "normalises",
                                            [STEP_WAIT_THREADS] = "waits for the T cores",
                                            [STEP_TELL] = "tells its neighbours",
                                            [STEP_RESULT] = "writes results",
                                            [STEP_WAIT_TILES] = "waits for the other tiles",
                                            [STEP_WAIT_LAYER] = "waits for a layer",
                                            [STEP_WAIT_WEIGHTS] = "waits for weights",
                                            [STEP_WORK] = "works",
                                            [STEP_SOFTMAX] = "does the softmax",
                                            [STEP_SUPPRESS] = "suppresses",
                                            [STEP_FEED] = "feeds weights"};
    return step < STEPS && text[step] ? text[step] : "is in no known state";
}

static sp_status read_mailbox(bh_transport *t, uint32_t at, struct mailbox *m, sp_error *err) {
    return t->read(t, at, MAILBOX, m, sizeof *m, err);
}

/* Something that changes whenever a tile gets on. */
static uint32_t progress_of(const struct mailbox *m) {
    uint32_t sum = m->done * 31 + m->weights_used * 7 + m->weights_ready.value + m->frames.value;
    for (uint32_t c = 0; c < CORES; c++)
        sum = sum * 33 + m->step[c] + m->thread_done[c % 3];
    return sum;
}

static sp_status chip_progress(const bh_watch *w, uint32_t *sum, sp_error *err) {
    *sum = 0;
    sp_status status = SP_OK;
    for (uint32_t k = 0; k < w->tiles && status == SP_OK; k++) {
        struct mailbox m;
        status = read_mailbox(w->transport, w->tile[k], &m, err);
        if (status == SP_OK)
            *sum = *sum * 1000003u + progress_of(&m);
    }
    return status;
}

/* The tile furthest behind, each of its cores, and where they stand. */
static sp_status tell_hang(const bh_watch *w, sp_error *err) {
    struct mailbox worst = {0};
    uint32_t at = NOC_NOWHERE;
    for (uint32_t k = 0; k < w->tiles; k++) {
        struct mailbox m;
        sp_status status = read_mailbox(w->transport, w->tile[k], &m, err);
        if (status != SP_OK)
            return status;
        const bool behind = (int32_t)(m.done - worst.done) < 0 ||
                            (m.done == worst.done && (m.step[CORE_BRISC] & 0xFF) != STEP_WAIT_NEIGHBOURS &&
                             (worst.step[CORE_BRISC] & 0xFF) == STEP_WAIT_NEIGHBOURS);
        if (at == NOC_NOWHERE || behind)
            worst = m, at = w->tile[k];
    }
    const uint32_t layer = worst.done % w->layers;
    uint32_t core = CORE_BRISC; /* the one to name: what BRISC waits for, if it waits for its threads */
    if ((worst.step[CORE_BRISC] & 0xFF) == STEP_WAIT_THREADS)
        for (core = CORE_UNPACK; core < CORE_PACK && worst.thread_done[core - CORE_UNPACK] == worst.go; core++) {
        }
    else if ((worst.step[CORE_BRISC] & 0xFF) == STEP_WAIT_RUN || (worst.step[CORE_BRISC] & 0xFF) == STEP_WAIT_TILES)
        core = CORE_NCRISC;
    return sp_fail(err, SP_ERR_ENGINE_HUNG,
                   "blackhole: the chip hangs: tile (%u, %u), layer %u: %s %s (BRISC %s, unpack %s, math %s, pack %s, "
                   "NCRISC %s; %u layers done since the start)",
                   NOC_X(at), NOC_Y(at), layer, core_name[core], step_text(worst.step[core] & 0xFF),
                   step_text(worst.step[CORE_BRISC] & 0xFF), step_text(worst.step[CORE_UNPACK] & 0xFF),
                   step_text(worst.step[CORE_MATH] & 0xFF), step_text(worst.step[CORE_PACK] & 0xFF),
                   step_text(worst.step[CORE_NCRISC] & 0xFF), worst.done);
}

sp_status sp_bh_watch(const bh_watch *w, bool (*finished)(void *opaque), void *opaque, sp_error *err) {
    bh_transport *t = w->transport;
    const uint64_t look_us = t->hang_us / 2; /* two looks that see the same make a hang: within hang_us of the start */
    uint64_t now = 0, looked = 0;
    uint32_t last = 0;
    bool seen = false;
    sp_status status = t->tick(t, &looked, err);
    while (status == SP_OK && !finished(opaque)) {
        status = t->tick(t, &now, err);
        if (status != SP_OK || now - looked < look_us)
            continue;
        uint32_t progress;
        status = chip_progress(w, &progress, err);
        if (status == SP_OK && seen && progress == last)
            status = tell_hang(w, err);
        last = progress;
        seen = true;
        looked = now;
    }
    return status;
}

typedef struct layer_wait {
    const bh_watch *watch;
    uint32_t number, tile; /* the first tile not known to have finished */
    sp_status status;
    sp_error *err;
} layer_wait;

static bool layers_finished(void *opaque) {
    layer_wait *l = opaque;
    for (; l->tile < l->watch->tiles; l->tile++) {
        uint32_t done;
        bh_transport *t = l->watch->transport;
        l->status =
            t->read(t, l->watch->tile[l->tile], MAILBOX + offsetof(struct mailbox, done), &done, sizeof done, l->err);
        if (l->status != SP_OK)
            return true;
        if ((int32_t)(done - l->number) < 0)
            return false;
    }
    return true;
}

sp_status sp_bh_watch_layers(const bh_watch *watch, uint32_t number, sp_error *err) {
    layer_wait wait = {watch, number, 0, SP_OK, err};
    sp_status status = sp_bh_watch(watch, layers_finished, &wait, err);
    return status == SP_OK ? wait.status : status;
}

sp_status sp_bh_wait_started(bh_transport *t, uint32_t tile, uint32_t cores, sp_error *err) {
    uint64_t now = 0, first = 0;
    sp_status status = t->tick(t, &first, err);
    while (status == SP_OK) {
        uint32_t version[CORES], started = 0;
        status = t->read(t, tile, MAILBOX + offsetof(struct mailbox, version), version, sizeof version, err);
        for (uint32_t c = 0; c < cores && status == SP_OK; c++) {
            started += version[c] != 0;
            if (version[c] && version[c] != TILE_VERSION)
                return sp_fail(err, SP_ERR_ENGINE,
                               "blackhole: tile (%u, %u): %s runs firmware of version %u; this host needs version %u",
                               NOC_X(tile), NOC_Y(tile), core_name[c], version[c], TILE_VERSION);
        }
        if (status != SP_OK || started == cores)
            return status;
        status = t->tick(t, &now, err);
        if (status == SP_OK && now - first > t->hang_us)
            for (uint32_t c = 0; c < cores; c++)
                if (!version[c])
                    return sp_fail(err, SP_ERR_ENGINE_HUNG, "blackhole: tile (%u, %u): %s does not start", NOC_X(tile),
                                   NOC_Y(tile), core_name[c]);
    }
    return status;
}
