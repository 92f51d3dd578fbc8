/*
 * BRISC of a spare tile: reads every group of weights from DRAM once and multicasts it to a rectangle of tiles, instead
 * of every tile fetching its own copy.
 *
 * Flow control: a tile adds 1 to used[g & 1] here when it has used up group g. Group g may be sent when all tiles
 * have used g-2, that is when the counter of its parity says users * (g/2). One counter for both parities would
 * not do: a fast tile could stand in for a slow one. The data go first and are acknowledged; then the line that says
 * how many groups have arrived.
 */
#define NOC_OWN_INITIATOR 0u
#define NOC_OWN_ID 0u
#include "noc.h"

START(LOCAL_RAM_TOP_BN)

#define TABLE ((const struct layer *)LAYER_TABLE)
/* A multicast is one request with many answers, which unbalances its id's counter of outstanding requests: it has an id
 * that nobody waits for, and waiting goes by the counter of write acknowledgements. */
#define NOC_MULTICAST_ID 2u

static u32 acks_due;

static void multicast(u32 address, u32 n) {
    while (n) {
        u32 part = n < NOC_MAX_TRANSFER ? n : NOC_MAX_TRANSFER;
        noc_addresses(noc_me, address, MB->rectangle, address);
        NOC_REG(NOC_TAG) = NOC_MULTICAST_ID << 10;
        noc_go(NOC_WRITE | NOC_ANSWER | NOC_MULTICAST | NOC_STATIC_VC | NOC_PATH_RESERVE | NOC_VC_MULTICAST, part);
        acks_due += MB->rectangle_tiles;
        address += part, n -= part;
    }
    noc_ready();
    while (NOC_WRITE_ACKS != acks_due) { /* [multicast-done] */
    }
}

static void send_group(const struct layer *l, u32 index, u32 group) {
    const u32 buffer = WEIGHTS + (group & 1) * WEIGHT_BUFFER_BYTES;
    step(CORE_BRISC, group, STEP_FEED);
    noc_read(l->weights_at, l->weights + index * l->weights_bytes, buffer, l->weights_bytes);
    noc_wait(); /* own copy of group - 2 may be overwritten: its multicast has been acknowledged */
    step(CORE_BRISC, group, STEP_WAIT_WEIGHTS);
    if (group >= 2)
        wait_reached(&MB->used[group & 1].value, MB->users * (group / 2));
    step(CORE_BRISC, group, STEP_FEED);
    multicast(buffer, l->weights_bytes);
    MB->weights_ready.value = group + 1;
    publish(&MB->weights_ready.value);
    multicast((u32)&MB->weights_ready, sizeof(struct line));
    MB->done = group + 1;
}

__attribute__((used)) void main_(void) {
    report_start(CORE_BRISC, PROGRAM_BRISC);
    noc_begin();
    acks_due = NOC_WRITE_ACKS;
    const u32 layers = MB->layers;
    for (u32 i = 0, group = 0;; i = i + 1 < layers ? i + 1 : 0)
        if (TABLE[i].weights_bytes)
            for (u32 g = 0; g < TABLE[i].groups; g++, group++)
                send_group(TABLE + i, g, group);
}
