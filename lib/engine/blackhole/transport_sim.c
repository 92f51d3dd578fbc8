/*
 * Transport by the library of the ttsim simulator: bit-exact, single-threaded, without timing. It looks like the
 * PCIe device: BAR 0 with TLB windows, of which this uses the first, moved on demand.
 *
 * The library is one chip per process and cannot be loaded twice, so it is the one piece of global state of this
 * folder: it stays initialised, with whatever the last user left on the chip, as a card would.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "transport.h"

/* Source: ttsim docs/libttsim_api.md and tt-isa-documentation BlackholeA0/PCIExpressTile. */
#define BAR0 0x100000000ull
#define WINDOW_BYTES 0x200000u
#define WINDOW_REGISTERS (BAR0 + 0x1FC00000ull) /* three words a window */
#define ORDER_STRICT (1u << 6)                  /* of the third word */
#define WINDOW_MULTICAST (1u << 5)
#define PCI_VENDOR_BLACKHOLE 0xB1401E52u
#define DMA_BASE 0x10000000ull /* where the chip sees shared memory, one region every DMA_STRIDE */
#define DMA_STRIDE 0x100000000ull
#define CLOCKS_A_TICK 128u
#define CLOCK_MHZ 1350u
#define HANG_CLOCKS 6000000u

enum { MAX_SHARES = 4 };

static struct {
    pthread_mutex_t mutex;
    void *library;
    bool in_use;
    void (*exit)(void);
    uint32_t (*config_read)(uint32_t, uint32_t);
    void (*mem_read)(uint64_t, void *, uint32_t);
    void (*mem_write)(uint64_t, const void *, uint32_t);
    void (*clock)(uint32_t);
    struct {
        size_t bytes;
        unsigned char *memory; /* NULL: free */
    } share[MAX_SHARES];
} sim = {.mutex = PTHREAD_MUTEX_INITIALIZER};

typedef struct sim_transport {
    bh_transport base;
    uint32_t window[3]; /* as last written */
    uint64_t clocks;
} sim_transport;

/* The chip reads or writes shared memory. What lies outside is not touched: a stray write of the firmware must not
 * reach this process. */
static unsigned char *shared_at(uint64_t address, uint32_t n) {
    const uint64_t i = (address - DMA_BASE) / DMA_STRIDE, offset = (address - DMA_BASE) % DMA_STRIDE;
    if (address < DMA_BASE || i >= MAX_SHARES || !sim.share[i].memory || offset > sim.share[i].bytes ||
        n > sim.share[i].bytes - offset)
        return NULL;
    return sim.share[i].memory + offset;
}

static void dma_read(uint64_t address, void *to, uint32_t n) {
    const unsigned char *from = shared_at(address, n);
    if (from)
        memcpy(to, from, n);
    else
        memset(to, 0xFF, n);
}

static void dma_write(uint64_t address, const void *from, uint32_t n) {
    unsigned char *to = shared_at(address, n);
    if (to)
        memcpy(to, from, n);
}

static void point_window(sim_transport *s, uint32_t first, uint32_t last, bool multicast, uint64_t address) {
    const uint64_t page = address / WINDOW_BYTES;
    const uint32_t start = multicast ? first : 0;
    const uint32_t words[3] = {(uint32_t)page,
                               (uint32_t)(page >> 32 & 0x7FF) | NOC_X(last) << 11 | NOC_Y(last) << 17 |
                                   NOC_X(start) << 23 | NOC_Y(start) << 29,
                               NOC_Y(start) >> 3 | (multicast ? WINDOW_MULTICAST : 0) | ORDER_STRICT};
    for (uint32_t i = 0; i < 3; i++)
        if (words[i] != s->window[i]) {
            sim.mem_write(WINDOW_REGISTERS + 4 * i, &words[i], 4);
            s->window[i] = words[i];
        }
}

static sp_status sim_read(bh_transport *t, uint32_t at, uint64_t address, void *to, size_t n, sp_error *err) {
    unsigned char *p = to;
    (void)err;
    while (n) {
        const uint32_t offset = (uint32_t)(address % WINDOW_BYTES);
        const uint32_t part = n < WINDOW_BYTES - offset ? (uint32_t)n : WINDOW_BYTES - offset;
        point_window((sim_transport *)t, 0, at, false, address);
        sim.mem_read(BAR0 + offset, p, part);
        address += part, p += part, n -= part;
    }
    return SP_OK;
}

static void put(bh_transport *t, uint32_t first, uint32_t last, bool multicast, uint64_t address, const void *from,
                size_t n) {
    const unsigned char *p = from;
    while (n) {
        const uint32_t offset = (uint32_t)(address % WINDOW_BYTES);
        const uint32_t part = n < WINDOW_BYTES - offset ? (uint32_t)n : WINDOW_BYTES - offset;
        point_window((sim_transport *)t, first, last, multicast, address);
        sim.mem_write(BAR0 + offset, p, part);
        address += part, p += part, n -= part;
    }
}

static sp_status sim_write(bh_transport *t, uint32_t at, uint64_t address, const void *from, size_t n, sp_error *err) {
    (void)err;
    put(t, 0, at, false, address, from, n);
    return SP_OK;
}

static sp_status sim_multicast(bh_transport *t, uint32_t first, uint32_t last, uint64_t address, const void *from,
                               size_t n, sp_error *err) {
    (void)err;
    put(t, first, last, true, address, from, n);
    return SP_OK;
}

/* The simulator knows the reset bits of the cores only. */
static sp_status sim_hold(bh_transport *t, uint32_t at, sp_error *err) {
    return sim_write(t, at, SOFT_RESET, &(uint32_t){RESET_CORES}, 4, err);
}

static sp_status sim_tick(bh_transport *t, uint64_t *now_us, sp_error *err) {
    (void)err;
    sim_transport *s = (sim_transport *)t;
    sim.clock(CLOCKS_A_TICK);
    s->clocks += CLOCKS_A_TICK;
    *now_us = s->clocks / CLOCK_MHZ;
    return SP_OK;
}

static sp_status sim_share(bh_transport *t, size_t bytes, void **memory, struct remote *remote, sp_error *err) {
    (void)t;
    size_t i = 0;
    while (i < MAX_SHARES && sim.share[i].memory)
        i++;
    if (i == MAX_SHARES || bytes > DMA_STRIDE)
        return sp_fail(err, SP_ERR_LIMIT, "blackhole simulator: %zu more bytes cannot be shared", bytes);
    unsigned char *p = calloc(1, bytes);
    if (!p)
        return sp_fail_memory(err, "memory shared with the chip", bytes);
    sim.share[i].bytes = bytes;
    sim.share[i].memory = p;
    const uint64_t base = DMA_BASE + i * DMA_STRIDE;
    *memory = p;
    *remote = (struct remote){.at = BH_PCIE_PORT, .low = (uint32_t)base, .high = (uint32_t)(base >> 32)};
    return SP_OK;
}

static void sim_unshare(bh_transport *t, void *memory) {
    (void)t;
    for (size_t i = 0; i < MAX_SHARES; i++)
        if (sim.share[i].memory == memory)
            sim.share[i].memory = NULL;
    free(memory);
}

static void sim_close(bh_transport *t) {
    pthread_mutex_lock(&sim.mutex);
    for (size_t i = 0; i < MAX_SHARES; i++)
        sim_unshare(t, sim.share[i].memory);
    sim.in_use = false;
    pthread_mutex_unlock(&sim.mutex);
    free(t);
}

/* Every tile of the grid exists in the simulator: columns 1...7 and 10...16, rows 2...11. */
static void list_tiles(bh_chip *chip) {
    for (uint32_t x = 1; x <= 16; x++)
        for (uint32_t y = 2; y <= 11; y++)
            if (x <= 7 || x >= 10)
                chip->tile[chip->tiles++] = NOC_AT(x, y);
    for (uint32_t b = 0; b < BH_BANKS; b++)
        chip->bank[b] = BH_DRAM_PORT(b);
}

static sp_status load(const char *path, sp_error *err) {
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return sp_fail(err, SP_ERR_UNAVAILABLE, "blackhole: TTSIM: %s", dlerror());
    void (*init)(void);
    void (*set_dma)(void (*)(uint64_t, void *, uint32_t), void (*)(uint64_t, const void *, uint32_t));
    const struct {
        const char *name;
        void *to;
    } symbol[] = {{"libttsim_init", &init},
                  {"libttsim_exit", &sim.exit},
                  {"libttsim_set_pci_dma_mem_callbacks", &set_dma},
                  {"libttsim_pci_config_rd32", &sim.config_read},
                  {"libttsim_pci_mem_rd_bytes", &sim.mem_read},
                  {"libttsim_pci_mem_wr_bytes", &sim.mem_write},
                  {"libttsim_clock", &sim.clock}};
    for (size_t i = 0; i < sizeof symbol / sizeof symbol[0]; i++) {
        void *address = dlsym(library, symbol[i].name);
        if (!address) {
            dlclose(library);
            return sp_fail(err, SP_ERR_UNAVAILABLE, "blackhole: TTSIM: %s has no %s", path, symbol[i].name);
        }
        memcpy(symbol[i].to, &address, sizeof address); /* a data pointer holds a function's address here (POSIX) */
    }
    set_dma(dma_read, dma_write);
    init();
    const uint32_t id = sim.config_read(0, 0);
    if (id != PCI_VENDOR_BLACKHOLE) {
        sim.exit();
        dlclose(library);
        return sp_fail(err, SP_ERR_UNAVAILABLE, "blackhole: TTSIM: %s simulates PCI device %04x:%04x, not a Blackhole",
                       path, id & 0xFFFF, id >> 16);
    }
    sim.library = library;
    return SP_OK;
}

sp_status sp_bh_open_simulator(const char *library, bh_transport **out, sp_error *err) {
    *out = NULL;
    sim_transport *s = calloc(1, sizeof *s);
    if (!s)
        return sp_fail_memory(err, "simulator transport", sizeof *s);
    pthread_mutex_lock(&sim.mutex);
    sp_status status = SP_OK;
    if (sim.in_use)
        status = sp_fail(err, SP_ERR_UNAVAILABLE, "blackhole: the simulated chip is in use in this process");
    else if (!sim.library)
        status = load(library, err);
    sim.in_use |= status == SP_OK;
    pthread_mutex_unlock(&sim.mutex);
    if (status != SP_OK) {
        free(s);
        return status;
    }
    memset(s->window, 0xFF, sizeof s->window);
    s->base = (bh_transport){.chip = {.name = "Tenstorrent Blackhole, simulated by ttsim",
                                      .versions = "ttsim",
                                      .clock_mhz = CLOCK_MHZ,
                                      .simulated = true},
                             .hang_us = HANG_CLOCKS / CLOCK_MHZ,
                             .read = sim_read,
                             .write = sim_write,
                             .multicast = sim_multicast,
                             .hold = sim_hold,
                             .tick = sim_tick,
                             .share = sim_share,
                             .unshare = sim_unshare,
                             .close = sim_close};
    list_tiles(&s->base.chip);
    *out = &s->base;
    return SP_OK;
}
