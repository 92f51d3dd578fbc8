/*
 * Transport by the kernel driver: /dev/tenstorrent/N.
 *
 * The chip is reached through two windows of 2 MiB of its NoC address space, moved on demand: an uncached
 * one for registers and reads, a write-combining one for bulk writes. Both are strictly ordered; before the kind of
 * access changes the write-combining buffers are drained with a fence. Results come the other way: the chip writes them
 * into pinned memory of this process.
 */
#include "transport_driver.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "base/size.h"
#include "driver_abi.h"
#include "telemetry.h"

#define WINDOW_BYTES 0x200000u
#define PAGE_BYTES 4096u
#define HUGE_PAGE_BYTES ((size_t)1 << 30)
#define MAP_HUGE_1GB_FLAGS (MAP_HUGETLB | 30 << 26) /* log2 of the page size, where MAP_HUGE_SHIFT puts it */
#define HANG_US 1000000u
#define SPIN_US 2000u /* a frame takes less; after that the waiting sleeps */
#define RESET_TRIES 100u
#define RESET_PAUSE_US 100000u

enum { REGISTERS, BULK, WINDOWS, MAX_SHARES = 4 };

typedef struct window {
    uint32_t id;
    volatile unsigned char *memory; /* NULL: not allocated */
    uint32_t first, last;           /* where it points */
    uint64_t page;
    bool multicast, pointed;
} window;

typedef struct driver {
    bh_transport base;
    const bh_system *system;
    int fd;
    window window[WINDOWS];
    bool bulk_pending; /* write-combining buffers may hold something */
    uint64_t opened_us, last_access_us;
    struct {
        void *memory;
        size_t bytes;
    } share[MAX_SHARES];
} driver;

/* ------------------------------------------------------------------ system calls --------------- */

static int system_open(const char *path, int flags) {
    return open(path, flags);
}

static int system_ioctl(int fd, unsigned long number, void *argument) {
    return ioctl(fd, number, argument);
}

static void system_sleep(unsigned us) {
    const struct timespec pause = {us / 1000000, (long)(us % 1000000) * 1000};
    nanosleep(&pause, NULL);
}

static uint64_t system_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

const bh_system sp_bh_system = {system_open, close, system_ioctl, flock, mmap, munmap, system_sleep, system_now};

static sp_status call(driver *d, unsigned long number, void *argument, const char *what, sp_error *err) {
    int result;
    do
        result = d->system->ioctl(d->fd, number, argument);
    while (result < 0 && errno == EINTR);
    if (result < 0)
        return sp_fail(err, errno == ENODEV ? SP_ERR_ENGINE_HUNG : SP_ERR_ENGINE, "blackhole: %s: %s: %s",
                       d->base.chip.name, what, strerror(errno));
    return SP_OK;
}

/* ------------------------------------------------------------------ windows -------------------- */

static sp_status allocate_window(driver *d, uint32_t kind, sp_error *err) {
    window *w = &d->window[kind];
    struct allocate_window a = {.size = WINDOW_BYTES};
    sp_status status = call(d, CALL_ALLOCATE_WINDOW, &a, "allocating a window", err);
    if (status != SP_OK)
        return status;
    w->id = a.id;
    const uint64_t offset = kind == BULK ? a.map_write_combined : a.map_uncached;
    void *memory = d->system->mmap(NULL, WINDOW_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, d->fd, (off_t)offset);
    if (memory == MAP_FAILED) {
        status = sp_fail(err, SP_ERR_ENGINE, "blackhole: %s: mapping a window: %s", d->base.chip.name, strerror(errno));
        d->system->ioctl(d->fd, CALL_FREE_WINDOW, &(struct free_window){w->id});
        return status;
    }
    w->memory = memory;
    return SP_OK;
}

/* What was written through write-combining must have left the processor before anything else is done. */
static void drain_bulk(driver *d) {
    if (d->bulk_pending)
        __sync_synchronize(); /* on x86 a full fence empties the write-combining buffers */
    d->bulk_pending = false;
}

static sp_status point(driver *d, window *w, uint32_t first, uint32_t last, bool multicast, uint64_t address,
                       sp_error *err) {
    const uint64_t page = address / WINDOW_BYTES;
    if (w->pointed && w->first == first && w->last == last && w->multicast == multicast && w->page == page)
        return SP_OK;
    drain_bulk(d);
    struct configure_window c = {.id = w->id,
                                 .address = page * WINDOW_BYTES,
                                 .x_end = NOC_X(last),
                                 .y_end = NOC_Y(last),
                                 .multicast = multicast,
                                 .ordering = ORDER_STRICT};
    if (multicast) {
        c.x_start = NOC_X(first);
        c.y_start = NOC_Y(first);
    }
    w->pointed = false;
    sp_status status = call(d, CALL_CONFIGURE_WINDOW, &c, "moving a window", err);
    if (status != SP_OK)
        return status;
    *w = (window){w->id, w->memory, first, last, page, multicast, true};
    return SP_OK;
}

/* Word by word: a device must not be accessed by whatever memcpy likes, and every address here is a multiple of 4. */
static void copy_in(volatile unsigned char *to, const unsigned char *from, size_t n) {
    size_t i = 0;
    for (; i + 4 <= n; i += 4) {
        uint32_t word;
        memcpy(&word, from + i, 4);
        *(volatile uint32_t *)(to + i) = word;
    }
    for (; i < n; i++)
        to[i] = from[i];
}

static void copy_out(unsigned char *to, const volatile unsigned char *from, size_t n) {
    size_t i = 0;
    for (; i + 4 <= n; i += 4) {
        const uint32_t word = *(const volatile uint32_t *)(from + i);
        memcpy(to + i, &word, 4);
    }
    for (; i < n; i++)
        to[i] = from[i];
}

static size_t part_of_window(uint64_t address, size_t n) {
    return sp_min_size(n, WINDOW_BYTES - (size_t)(address % WINDOW_BYTES));
}

static sp_status driver_read(bh_transport *t, uint32_t at, uint64_t address, void *to, size_t n, sp_error *err) {
    driver *d = (driver *)t;
    unsigned char *p = to;
    drain_bulk(d);
    for (size_t part; n; address += part, p += part, n -= part) {
        part = part_of_window(address, n);
        sp_status status = point(d, &d->window[REGISTERS], 0, at, false, address, err);
        if (status != SP_OK)
            return status;
        copy_out(p, d->window[REGISTERS].memory + address % WINDOW_BYTES, part);
    }
    return SP_OK;
}

static sp_status put(driver *d, uint32_t first, uint32_t last, bool multicast, uint64_t address, const void *from,
                     size_t n, sp_error *err) {
    const unsigned char *p = from;
    const uint32_t kind = n > 64 ? BULK : REGISTERS;
    if (kind == REGISTERS)
        drain_bulk(d);
    for (size_t part; n; address += part, p += part, n -= part) {
        part = part_of_window(address, n);
        sp_status status = point(d, &d->window[kind], first, last, multicast, address, err);
        if (status != SP_OK)
            return status;
        copy_in(d->window[kind].memory + address % WINDOW_BYTES, p, part);
    }
    d->bulk_pending |= kind == BULK;
    d->last_access_us = d->system->now_us();
    return SP_OK;
}

static sp_status driver_write(bh_transport *t, uint32_t at, uint64_t address, const void *from, size_t n,
                              sp_error *err) {
    return put((driver *)t, 0, at, false, address, from, n, err);
}

static sp_status driver_multicast(bh_transport *t, uint32_t first, uint32_t last, uint64_t address, const void *from,
                                  size_t n, sp_error *err) {
    return put((driver *)t, first, last, true, address, from, n, err);
}

/* [tensix-reset] Cores and units into reset, then the units out of it: what a previous user left in SrcA, SrcB, Dst,
 * semaphores and fifos is gone, and the cores stay held. */
static sp_status driver_hold(bh_transport *t, uint32_t at, sp_error *err) {
    sp_status status = driver_write(t, at, SOFT_RESET, &(uint32_t){RESET_CORES | RESET_TENSIX}, 4, err);
    return status == SP_OK ? driver_write(t, at, SOFT_RESET, &(uint32_t){RESET_CORES}, 4, err) : status;
}

static sp_status driver_tick(bh_transport *t, uint64_t *now_us, sp_error *err) {
    (void)err;
    driver *d = (driver *)t;
    drain_bulk(d);
    const uint64_t now = d->system->now_us();
    if (now - d->last_access_us > SPIN_US)
        d->system->sleep_us(50);
    *now_us = now - d->opened_us;
    return SP_OK;
}

/* ------------------------------------------------------------------ shared memory -------------- */

static sp_status driver_share(bh_transport *t, size_t bytes, void **memory, struct remote *remote, sp_error *err) {
    driver *d = (driver *)t;
    size_t i = 0;
    while (i < MAX_SHARES && d->share[i].memory)
        i++;
    if (i == MAX_SHARES)
        return sp_fail(err, SP_ERR_LIMIT, "blackhole: no more than %d regions can be shared", MAX_SHARES);
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS;
    for (int huge = 0; huge <= 1; huge++) { /* ordinary pages need an IOMMU; one huge page does without */
        const size_t size = sp_round_up(bytes, huge ? HUGE_PAGE_BYTES : PAGE_BYTES);
        void *p = d->system->mmap(NULL, size, PROT_READ | PROT_WRITE, huge ? flags | MAP_HUGE_1GB_FLAGS : flags, -1, 0);
        if (p == MAP_FAILED)
            continue;
        struct pin_pages pin = {.out_size = 16, .flags = PIN_FOR_NOC, .address = (uint64_t)(uintptr_t)p, .size = size};
        if (d->system->ioctl(d->fd, CALL_PIN_PAGES, &pin) == 0) {
            memset(p, 0, size);
            d->share[i].memory = p;
            d->share[i].bytes = size;
            *memory = p;
            *remote = (struct remote){.at = BH_PCIE_PORT, .low = (uint32_t)pin.noc, .high = (uint32_t)(pin.noc >> 32)};
            return SP_OK;
        }
        const int error = errno;
        d->system->munmap(p, size);
        errno = error;
    }
    return sp_fail(
        err, SP_ERR_UNAVAILABLE,
        "blackhole: %s: cannot share %zu bytes with the card: %s (it needs an IOMMU or a free 1 GiB huge page)",
        d->base.chip.name, bytes, strerror(errno));
}

static void driver_unshare(bh_transport *t, void *memory) {
    driver *d = (driver *)t;
    for (size_t i = 0; memory && i < MAX_SHARES; i++)
        if (d->share[i].memory == memory) {
            struct unpin_pages unpin = {(uint64_t)(uintptr_t)memory, d->share[i].bytes, 0};
            d->system->ioctl(d->fd, CALL_UNPIN_PAGES, &unpin);
            d->system->munmap(memory, d->share[i].bytes);
            d->share[i].memory = NULL;
        }
}

static void driver_close(bh_transport *t) {
    driver *d = (driver *)t;
    drain_bulk(d);
    for (size_t i = 0; i < MAX_SHARES; i++)
        driver_unshare(t, d->share[i].memory);
    for (size_t i = 0; i < WINDOWS; i++)
        if (d->window[i].memory) {
            d->system->munmap((void *)d->window[i].memory, WINDOW_BYTES);
            d->system->ioctl(d->fd, CALL_FREE_WINDOW, &(struct free_window){d->window[i].id});
        }
    if (d->fd >= 0)
        d->system->close(d->fd); /* the driver lowers the power and performs the clean-up write */
    free(d);
}

/* ------------------------------------------------------------------ opening -------------------- */

/* Alone: newer drivers arbitrate with O_EXCL, the lock keeps apart users of this project on older ones. O_APPEND: power
 * is asked for, not assumed. */
static sp_status open_alone(driver *d, const char *path, sp_error *err) {
    d->fd = d->system->open(path, O_RDWR | O_CLOEXEC | O_APPEND | O_EXCL | O_NONBLOCK);
    if (d->fd < 0 && (errno == EAGAIN || errno == EBUSY))
        return sp_fail(err, SP_ERR_UNAVAILABLE, "blackhole: %s is in use by another process", path);
    if (d->fd < 0)
        return sp_fail(err, SP_ERR_UNAVAILABLE, "blackhole: %s: %s", path, strerror(errno));
    if (d->system->flock(d->fd, LOCK_EX | LOCK_NB) == 0)
        return SP_OK;
    if (errno == EWOULDBLOCK)
        return sp_fail(err, SP_ERR_UNAVAILABLE, "blackhole: %s is in use by another process", path);
    return sp_fail(err, SP_ERR_UNAVAILABLE, "blackhole: %s: locking: %s", path, strerror(errno));
}

static sp_status identify(driver *d, const char *path, sp_error *err) {
    bh_chip *chip = &d->base.chip;
    struct driver_info driver_info = {.in_bytes = sizeof driver_info - 4};
    sp_status status = call(d, CALL_DRIVER_INFO, &driver_info, "asking for the driver's version", err);
    if (status == SP_OK && driver_info.abi < DRIVER_ABI)
        return sp_fail(err, SP_ERR_UNAVAILABLE,
                       "blackhole: %s: the kernel driver speaks version %u of its interface; %u is needed", path,
                       driver_info.abi, DRIVER_ABI);
    struct device_info info = {.in_bytes = sizeof info - 4};
    if (status == SP_OK)
        status = call(d, CALL_DEVICE_INFO, &info, "asking what it is", err);
    if (status != SP_OK)
        return status;
    if (info.vendor != VENDOR_TENSTORRENT || info.device != DEVICE_BLACKHOLE)
        return sp_fail(err, SP_ERR_UNAVAILABLE, "blackhole: %s is PCI device %04x:%04x, not a Blackhole (%04x:%04x)",
                       path, info.vendor, info.device, VENDOR_TENSTORRENT, DEVICE_BLACKHOLE);
    snprintf(chip->name, sizeof chip->name, "Tenstorrent Blackhole, %s", path);
    snprintf(chip->versions, sizeof chip->versions, "driver %u.%u.%u", driver_info.major, driver_info.minor,
             driver_info.patch);
    return SP_OK;
}

/* Full power. A driver without power states keeps it up by itself. */
static sp_status ask_for_power(driver *d, sp_error *err) {
    struct power power = {
        .bytes = sizeof power, .valid = 3, .power_flags = POWER_MAX_CLOCK | POWER_DRAM | POWER_TENSIX};
    if (d->system->ioctl(d->fd, CALL_POWER, &power) == 0 || errno == ENOTTY || errno == EINVAL || errno == EOPNOTSUPP)
        return SP_OK;
    return sp_fail(err, SP_ERR_ENGINE, "blackhole: %s: raising the power: %s", d->base.chip.name, strerror(errno));
}

/* Should this process die, the kernel stops the tile that counts frames and writes to host memory. An older driver
 * cannot; then the next user's hold does. */
static void register_cleanup(driver *d) {
    struct cleanup_write c = {.bytes = sizeof c,
                              .enabled = 1,
                              .x = NOC_X(d->base.chip.tile[0]),
                              .y = NOC_Y(d->base.chip.tile[0]),
                              .address = SOFT_RESET,
                              .data = RESET_CORES};
    d->system->ioctl(d->fd, CALL_CLEANUP_WRITE, &c);
}

sp_status sp_bh_open_driver(const char *path, const bh_system *system, bh_transport **out, sp_error *err) {
    *out = NULL;
    driver *d = calloc(1, sizeof *d);
    if (!d)
        return sp_fail_memory(err, "driver transport", sizeof *d);
    d->system = system;
    d->base = (bh_transport){.hang_us = HANG_US,
                             .read = driver_read,
                             .write = driver_write,
                             .multicast = driver_multicast,
                             .hold = driver_hold,
                             .tick = driver_tick,
                             .share = driver_share,
                             .unshare = driver_unshare,
                             .close = driver_close};
    snprintf(d->base.chip.name, sizeof d->base.chip.name, "%s", path);
    d->opened_us = d->last_access_us = system->now_us();
    sp_status status = open_alone(d, path, err);
    if (status == SP_OK)
        status = identify(d, path, err);
    if (status == SP_OK)
        status = ask_for_power(d, err);
    for (uint32_t kind = 0; kind < WINDOWS && status == SP_OK; kind++)
        status = allocate_window(d, kind, err);
    if (status == SP_OK)
        status = sp_bh_read_telemetry(&d->base, err);
    if (status != SP_OK) {
        driver_close(&d->base);
        return status;
    }
    register_cleanup(d);
    *out = &d->base;
    return SP_OK;
}

/* One step of a reset on a file of its own: the driver forgets a file's windows when it resets. */
static int reset_step(const char *path, const bh_system *system, uint32_t flags, uint32_t *result) {
    const int fd = system->open(path, O_RDWR | O_CLOEXEC | O_APPEND | O_NONBLOCK);
    if (fd < 0)
        return -1;
    struct reset_device r = {.in_bytes = 8, .flags = flags};
    const int done = system->ioctl(fd, CALL_RESET, &r);
    const int error = errno;
    system->close(fd);
    errno = error;
    *result = r.result;
    return done;
}

sp_status sp_bh_reset_driver(const char *path, const bh_system *system, sp_error *err) {
    uint32_t result = 0;
    if (reset_step(path, system, RESET_ASIC, &result) < 0)
        return sp_fail(err, SP_ERR_ENGINE, "blackhole: %s: reset: %s", path, strerror(errno));
    if (result)
        return sp_fail(err, SP_ERR_ENGINE, "blackhole: %s: reset: the driver answers %u", path, result);
    for (uint32_t i = 0; i < RESET_TRIES; i++) { /* the chip takes a while to come back on the bus */
        system->sleep_us(RESET_PAUSE_US);
        if (reset_step(path, system, RESET_AFTER, &result) == 0 && !result)
            return SP_OK;
    }
    return sp_fail(err, SP_ERR_ENGINE_HUNG, "blackhole: %s: the chip did not come back from its reset within %u s",
                   path, RESET_TRIES * RESET_PAUSE_US / 1000000);
}
