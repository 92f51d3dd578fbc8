/*
 * The kernel driver's transport against a stand-in for the card at its system calls: every call's number and bytes,
 * every way it can fail, and what arrives where on the chip.
 *
 * The stand-in keeps the chip's memory in pages of 2 MiB by place. A window is plain memory here: when it is moved,
 * what was written into it goes to the place where it pointed, and it is filled from the place where it points now.
 * Call numbers and byte offsets are written out once more, as the driver's documentation has them, not taken from the
 * code under test.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>

#include "common.h"
#include "transport_driver.h"

enum { WINDOW = 0x200000, PAGES = 64, FD = 77 };

typedef struct page {
    uint32_t at;
    uint64_t number;
    unsigned char *bytes;
} page;

typedef struct card_window {
    bool used, pointed, multicast;
    uint32_t first, last;
    uint64_t number;
    unsigned char *memory, *before; /* what it held when it was pointed */
} card_window;

static struct card {
    page pages[PAGES];
    card_window window[2];
    int windows, calls, fail_at, fail_errno, opens, open_flags;
    int fail_number, fail_number_errno; /* ioctl number that fails */
    bool open_fails, lock_fails, no_iommu, dead;
    int open_errno;
    uint32_t columns, translation, power_calls, cleanup_calls, pins, unpins, resets, coming_back, driver_abi;
    uint16_t device;
    unsigned char last_configure[48], last_cleanup[32], last_power[40], last_pin[40];
    uint64_t clock;
    int mapped; /* regions mapped and not unmapped */
} card;

static void put32(void *at, uint32_t value) {
    memcpy(at, &value, 4);
}

static uint32_t get32(const unsigned char *at, size_t offset) {
    uint32_t value;
    memcpy(&value, at + offset, 4);
    return value;
}

static uint64_t get64(const unsigned char *at, size_t offset) {
    uint64_t value;
    memcpy(&value, at + offset, 8);
    return value;
}

static unsigned char *page_of(uint32_t at, uint64_t number) {
    for (size_t i = 0; i < PAGES; i++) {
        page *p = &card.pages[i];
        if (p->bytes && p->at == at && p->number == number)
            return p->bytes;
        if (!p->bytes) {
            *p = (page){at, number, calloc(1, WINDOW)};
            assert_non_null(p->bytes);
            return p->bytes;
        }
    }
    fail_msg("the stand-in has no more pages");
    return NULL;
}

/* Bytes that changed since the window was pointed go to every place that it covers. */
static void flush(card_window *w) {
    if (!w->pointed || memcmp(w->memory, w->before, WINDOW) == 0)
        return;
    for (uint32_t x = NOC_X(w->first); x <= NOC_X(w->last); x++)
        for (uint32_t y = NOC_Y(w->first); y <= NOC_Y(w->last); y++) {
            unsigned char *to = page_of(NOC_AT(x, y), w->number);
            for (size_t i = 0; i < WINDOW; i++)
                if (w->memory[i] != w->before[i])
                    to[i] = w->memory[i];
        }
    memcpy(w->before, w->memory, WINDOW);
}

static uint32_t chip32(uint32_t at, uint64_t address) {
    for (size_t i = 0; i < 2; i++)
        flush(&card.window[i]);
    return get32(page_of(at, address / WINDOW), address % WINDOW);
}

static void set_chip32(uint32_t at, uint64_t address, uint32_t value) {
    put32(page_of(at, address / WINDOW) + address % WINDOW, value);
}

/* Telemetry: version and count, then tag | place << 16; the values apart. */
static void fill_telemetry(void) {
    enum { TABLE = 0x10001000, VALUES = 0x10002000 };
    const uint32_t tag[] = {1, 14, 28, 34, 40}, value[] = {0x1234, 1350, 0x12050300, card.columns, card.translation};
    if (card.dead)
        memset(page_of(NOC_AT(8, 0), 0x80030400 / WINDOW), 0xFF, WINDOW);
    else {
        set_chip32(NOC_AT(8, 0), 0x80030400 + 4 * 13, TABLE);
        set_chip32(NOC_AT(8, 0), 0x80030400 + 4 * 12, VALUES);
    }
    set_chip32(NOC_AT(8, 0), TABLE, 0x00010000);
    set_chip32(NOC_AT(8, 0), TABLE + 4, 5);
    for (uint32_t i = 0; i < 5; i++) {
        set_chip32(NOC_AT(8, 0), TABLE + 8 + 4 * i, tag[i] | (4 - i) << 16);
        set_chip32(NOC_AT(8, 0), VALUES + 4 * (4 - i), value[i]);
    }
}

static void new_card(void) {
    for (size_t i = 0; i < PAGES; i++)
        free(card.pages[i].bytes);
    for (size_t i = 0; i < 2; i++) {
        free(card.window[i].memory);
        free(card.window[i].before);
    }
    card = (struct card){.columns = 0x3FFF, .translation = 1, .device = 0xB140, .driver_abi = 2};
}

/* The n-th call fails, if one must. */
static bool fails(void) {
    if (++card.calls != card.fail_at)
        return false;
    errno = card.fail_errno;
    return true;
}

static int card_open(const char *path, int flags) {
    assert_string_equal(path, "/dev/tenstorrent/3");
    if (fails())
        return -1;
    if (card.open_fails) {
        errno = card.open_errno;
        return -1;
    }
    card.opens++;
    card.open_flags = flags;
    return FD;
}

static int card_close(int fd) {
    assert_int_equal(fd, FD);
    for (size_t i = 0; i < 2; i++)
        flush(&card.window[i]);
    card.opens--;
    return 0;
}

static int card_flock(int fd, int operation) {
    assert_int_equal(fd, FD);
    assert_int_equal(operation, LOCK_EX | LOCK_NB);
    if (fails())
        return -1;
    errno = EWOULDBLOCK;
    return card.lock_fails ? -1 : 0;
}

static int configure(unsigned char *a) {
    card_window *w = &card.window[get32(a, 0)];
    assert_true(w->used);
    memcpy(card.last_configure, a, sizeof card.last_configure);
    flush(w);
    const uint64_t address = get64(a, 8);
    assert_int_equal(address % WINDOW, 0);
    uint16_t corner[4];
    memcpy(corner, a + 16, sizeof corner);
    w->multicast = a[25];
    w->last = NOC_AT(corner[0], corner[1]);
    w->first = w->multicast ? NOC_AT(corner[2], corner[3]) : w->last;
    assert_true(w->multicast || (corner[2] == 0 && corner[3] == 0));
    assert_int_equal(a[24], 0); /* NoC 0 */
    assert_int_equal(a[26], 1); /* strict order */
    w->number = address / WINDOW;
    w->pointed = true;
    if (w->multicast)
        memset(w->memory, 0xA5, WINDOW);
    else
        memcpy(w->memory, page_of(w->last, w->number), WINDOW);
    memcpy(w->before, w->memory, WINDOW);
    return 0;
}

static int answer(unsigned long number, unsigned char *a) {
    switch (number) {
    case 0xFA05:
        assert_int_equal(get32(a, 0), 12);
        put32(a + 8, card.driver_abi);
        memcpy(a + 12, (unsigned char[]){2, 4, 1}, 3);
        return 0;
    case 0xFA00:
        assert_int_equal(get32(a, 0), 20);
        put32(a + 8, 0x1E52 | (uint32_t)card.device << 16);
        return 0;
    case 0xFA0F:
        memcpy(card.last_power, a, sizeof card.last_power);
        card.power_calls++;
        return 0;
    case 0xFA0B:
        assert_int_equal(get64(a, 0), WINDOW);
        put32(a + 16, (uint32_t)card.windows);
        memcpy(a + 24, &(uint64_t){0x10000000u * (uint64_t)(card.windows + 1)}, 8);
        memcpy(a + 32, &(uint64_t){0x90000000u * (uint64_t)(card.windows + 1)}, 8);
        card.window[card.windows++].used = true;
        return 0;
    case 0xFA0C:
        card.window[get32(a, 0)].used = false;
        return 0;
    case 0xFA0D:
        return configure(a);
    case 0xFA0E:
        memcpy(card.last_cleanup, a, sizeof card.last_cleanup);
        card.cleanup_calls++;
        return 0;
    case 0xFA07:
        memcpy(card.last_pin, a, sizeof card.last_pin);
        if (card.no_iommu && get64(a, 16) < 1u << 30) {
            errno = EINVAL;
            return -1;
        }
        memcpy(a + 32, &(uint64_t){0x1000000012340000u}, 8);
        card.pins++;
        return 0;
    case 0xFA0A:
        card.unpins++;
        return 0;
    case 0xFA06:
        card.resets++;
        put32(a + 12, get32(a, 4) == 6 && card.coming_back ? card.coming_back-- : 0);
        return 0;
    default:
        fail_msg("unknown call %lx", number);
        return -1;
    }
}

static int card_ioctl(int fd, unsigned long number, void *argument) {
    assert_int_equal(fd, FD);
    if (fails())
        return -1;
    if ((int)number == card.fail_number) {
        errno = card.fail_number_errno;
        return -1;
    }
    return answer(number, argument);
}

static void *card_mmap(void *address, size_t bytes, int protection, int flags, int fd, off_t offset) {
    (void)address;
    assert_int_equal(protection, PROT_READ | PROT_WRITE);
    if (fails())
        return MAP_FAILED;
    card.mapped++;
    if (fd < 0) {
        assert_true(flags & MAP_ANONYMOUS);
        void *p = NULL;
        assert_int_equal(posix_memalign(&p, 4096, bytes > 1u << 29 ? 4096 : bytes), 0);
        if (flags & MAP_HUGETLB) { /* a test without a gigabyte: refuse as a machine without huge pages does */
            free(p);
            card.mapped--;
            errno = ENOMEM;
            return MAP_FAILED;
        }
        return p;
    }
    assert_int_equal(fd, FD);
    assert_int_equal(bytes, WINDOW);
    card_window *w = &card.window[card.windows - 1];
    /* The first window is the uncached one, the second write-combining. */
    assert_int_equal(offset, card.windows == 1 ? 0x10000000 : 0x120000000);
    w->memory = calloc(1, WINDOW);
    w->before = calloc(1, WINDOW);
    assert_true(w->memory && w->before);
    fill_telemetry();
    return w->memory;
}

static int card_munmap(void *address, size_t bytes) {
    card.mapped--;
    if (bytes != WINDOW)
        free(address);
    return 0;
}

static void card_sleep(unsigned us) {
    card.clock += us;
}

static uint64_t card_now(void) {
    return card.clock++;
}

static const bh_system standin = {card_open, card_close,  card_ioctl, card_flock,
                                  card_mmap, card_munmap, card_sleep, card_now};

static bh_transport *open_card(void) {
    bh_transport *t;
    sp_error err;
    assert_ok(sp_bh_open_driver("/dev/tenstorrent/3", &standin, &t, &err), &err);
    return t;
}

static sp_status try_open(sp_error *err) {
    bh_transport *t = (bh_transport *)&card;
    const sp_status status = sp_bh_open_driver("/dev/tenstorrent/3", &standin, &t, err);
    if (status != SP_OK)
        assert_null(t);
    else
        t->close(t);
    assert_int_equal(card.opens, 0); /* nothing is left behind */
    assert_int_equal(card.mapped, 0);
    return status;
}

/* ------------------------------------------------------------------ tests ---------------------- */

static void opening(void **state) {
    (void)state;
    new_card();
    bh_transport *t = open_card();
    assert_int_equal(card.open_flags, O_RDWR | O_CLOEXEC | O_APPEND | O_EXCL | O_NONBLOCK);
    assert_int_equal(t->chip.tiles, 140);
    assert_int_equal(t->chip.tile[0], NOC_AT(1, 2));
    assert_int_equal(t->chip.tile[69], NOC_AT(7, 11));
    assert_int_equal(t->chip.tile[70], NOC_AT(10, 2));
    assert_int_equal(t->chip.tile[139], NOC_AT(16, 11));
    assert_int_equal(t->chip.clock_mhz, 1350);
    assert_string_equal(t->chip.versions, "driver 2.4.1, board firmware 18.5.3");
    assert_false(t->chip.simulated);
    /* Power: 40 bytes, three flags count, clock, DRAM and Tensix up. */
    assert_int_equal(get32(card.last_power, 0), 40);
    assert_int_equal(card.last_power[9], 3);
    assert_int_equal(card.last_power[10], 7);
    /* Clean-up: 32 bytes, enabled, first tile, NoC 0, all five cores into reset. */
    assert_int_equal(get32(card.last_cleanup, 0), 32);
    assert_memory_equal(card.last_cleanup + 8, ((unsigned char[]){1, 1, 2, 0}), 4);
    assert_true(get64(card.last_cleanup, 16) == 0xFFB121B0u);
    assert_true(get64(card.last_cleanup, 24) == 0x47800u);
    t->close(t);
    assert_int_equal(card.opens, 0);
    assert_int_equal(card.mapped, 0);
    assert_false(card.window[0].used || card.window[1].used);
}

static void disabled_columns(void **state) {
    (void)state;
    new_card();
    card.columns = 0x3FFF & ~(1u << 3 | 1u << 12);
    bh_transport *t = open_card();
    assert_int_equal(t->chip.tiles, 120);
    assert_int_equal(t->chip.tile[119], NOC_AT(14, 11)); /* the last two columns are gone */
    t->close(t);
}

static void bytes_arrive(void **state) {
    (void)state;
    new_card();
    bh_transport *t = open_card();
    sp_error err;
    unsigned char data[300], back[300];
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (unsigned char)(i * 7 + 1);
    /* Small and large writes, across a window's end, and read back. */
    assert_ok(t->write(t, NOC_AT(5, 6), 0x1000, data, 4, &err), &err);
    assert_int_equal(chip32(NOC_AT(5, 6), 0x1000), get32(data, 0));
    assert_ok(t->write(t, NOC_AT(17, 12), 0x3FFF80, data, sizeof data, &err), &err);
    for (size_t i = 0; i < sizeof data; i += 4)
        assert_int_equal(chip32(NOC_AT(17, 12), 0x3FFF80 + i), get32(data, i));
    assert_ok(t->read(t, NOC_AT(17, 12), 0x3FFF80, back, sizeof back, &err), &err);
    assert_memory_equal(data, back, sizeof data);
    /* To a rectangle, and to nobody else. */
    assert_ok(t->multicast(t, NOC_AT(2, 3), NOC_AT(4, 5), 0x8000, data, sizeof data, &err), &err);
    for (uint32_t x = 1; x <= 5; x++)
        for (uint32_t y = 2; y <= 6; y++)
            assert_int_equal(chip32(NOC_AT(x, y), 0x8000 + 8),
                             x >= 2 && x <= 4 && y >= 3 && y <= 5 ? get32(data, 8) : 0);
    /* As bytes: window, address, end and start corners, NoC, multicast, order. */
    assert_int_equal(get32(card.last_configure, 0), 1);
    assert_true(get64(card.last_configure, 8) == 0);
    assert_memory_equal(card.last_configure + 16, ((unsigned char[]){4, 0, 5, 0, 2, 0, 3, 0, 0, 1, 1, 0, 0}), 13);
    t->close(t);
}

/* Cores and Tensix units into reset, then the units out of it. */
static void hold(void **state) {
    (void)state;
    new_card();
    bh_transport *t = open_card();
    sp_error err;
    assert_ok(t->hold(t, NOC_AT(10, 2), &err), &err);
    assert_int_equal(chip32(NOC_AT(10, 2), 0xFFB121B0u), 0x47800);
    t->close(t);
}

static void shared_memory(void **state) {
    (void)state;
    new_card();
    bh_transport *t = open_card();
    sp_error err;
    void *memory;
    struct remote remote;
    assert_ok(t->share(t, 5000, &memory, &remote, &err), &err);
    assert_int_equal(get32(card.last_pin, 0), 16); /* both addresses wanted */
    assert_int_equal(get32(card.last_pin, 4), 2);  /* for the NoC */
    assert_true(get64(card.last_pin, 8) == (uint64_t)(uintptr_t)memory);
    assert_true(get64(card.last_pin, 16) == 8192); /* whole pages */
    assert_int_equal(remote.at, NOC_AT(19, 24));
    assert_int_equal(remote.low, 0x12340000);
    assert_int_equal(remote.high, 0x10000000);
    for (size_t i = 0; i < 8192; i++)
        assert_int_equal(((unsigned char *)memory)[i], 0);
    t->unshare(t, memory);
    assert_int_equal(card.unpins, 1);
    card.no_iommu = true;
    assert_int_equal(t->share(t, 5000, &memory, &remote, &err), SP_ERR_UNAVAILABLE);
    assert_non_null(strstr(err.text, "IOMMU"));
    card.no_iommu = false;
    for (int i = 0; i < 4; i++)
        assert_ok(t->share(t, 4096, &memory, &remote, &err), &err);
    assert_int_equal(t->share(t, 4096, &memory, &remote, &err), SP_ERR_LIMIT);
    t->close(t);
    assert_int_equal(card.pins, card.unpins);
    assert_int_equal(card.mapped, 0);
}

static void refused(void **state) {
    (void)state;
    sp_error err;
    new_card();
    card.open_fails = true;
    const struct {
        int error;
        const char *text;
    } open_error[] = {{EAGAIN, "in use"},
                      {EBUSY, "in use"},
                      {ENOENT, "No such file"},
                      {EACCES, "denied"},
                      {ENODEV, "No such device"}};
    for (size_t i = 0; i < sizeof open_error / sizeof open_error[0]; i++) {
        card.open_errno = open_error[i].error;
        assert_int_equal(try_open(&err), SP_ERR_UNAVAILABLE);
        assert_non_null(strstr(err.text, open_error[i].text));
        assert_non_null(strstr(err.text, "/dev/tenstorrent/3"));
    }
    new_card();
    card.lock_fails = true;
    assert_int_equal(try_open(&err), SP_ERR_UNAVAILABLE);
    assert_non_null(strstr(err.text, "in use"));
    new_card();
    card.driver_abi = 1;
    assert_int_equal(try_open(&err), SP_ERR_UNAVAILABLE);
    new_card();
    card.device = 0x401E; /* another chip of the same maker */
    assert_int_equal(try_open(&err), SP_ERR_UNAVAILABLE);
    assert_non_null(strstr(err.text, "401e"));
    new_card();
    card.columns = 0;
    assert_int_equal(try_open(&err), SP_ERR_UNAVAILABLE);
    new_card();
    card.translation = 0;
    assert_int_equal(try_open(&err), SP_ERR_UNAVAILABLE);
    new_card();
    card.dead = true;
    assert_int_equal(try_open(&err), SP_ERR_ENGINE_HUNG);
    assert_non_null(strstr(err.text, "reset it"));
}

/* Every error that the driver documents, from every call. */
static void every_errno(void **state) {
    (void)state;
    static const int number[] = {0xFA05, 0xFA00, 0xFA0F, 0xFA0B, 0xFA0D, 0xFA0E};
    static const int error[] = {EFAULT, EINVAL, ENOMEM, EPERM, ENODEV, EIO, EOPNOTSUPP, ENOTTY, EBUSY, ETIMEDOUT};
    for (size_t n = 0; n < sizeof number / sizeof number[0]; n++)
        for (size_t e = 0; e < sizeof error / sizeof error[0]; e++) {
            new_card();
            card.fail_number = number[n];
            card.fail_number_errno = error[e];
            sp_error err;
            const sp_status status = try_open(&err);
            const bool no_power_states =
                number[n] == 0xFA0F && (error[e] == EINVAL || error[e] == EOPNOTSUPP || error[e] == ENOTTY);
            if (no_power_states || number[n] == 0xFA0E) { /* older drivers lack these, and work without */
                assert_int_equal(status, SP_OK);
                continue;
            }
            assert_int_equal(status, error[e] == ENODEV && number[n] != 0xFA0F ? SP_ERR_ENGINE_HUNG : SP_ERR_ENGINE);
            assert_non_null(strstr(err.text, strerror(error[e])));
        }
}

/* An interrupted call is made again. */
static void interrupted(void **state) {
    (void)state;
    for (int n = 3; n <= 8; n++) {
        new_card();
        card.fail_at = n;
        card.fail_errno = EINTR;
        sp_error err;
        const sp_status status = try_open(&err);
        if (n != 5 && n != 7) /* power is not asked for twice, and mmap is never interrupted */
            assert_ok(status, &err);
    }
}

static void nth_call_fails(void **state) {
    (void)state;
    new_card();
    bh_transport *t = open_card();
    t->close(t);
    const int calls = card.calls;
    assert_true(calls > 12);
    int refusals = 0;
    for (int n = 1; n <= calls; n++) {
        new_card();
        card.fail_at = n;
        card.fail_errno = EIO;
        sp_error err;
        if (try_open(&err) == SP_OK)
            continue; /* clean-up and closing: nobody to tell, nothing lost */
        refusals++;
        assert_non_null(strstr(err.text, "Input/output error"));
    }
    assert_true(refusals >= calls - 4);
}

static void resetting(void **state) {
    (void)state;
    sp_error err;
    new_card();
    card.coming_back = 7; /* the driver answers "not yet" so often */
    assert_ok(sp_bh_reset_driver("/dev/tenstorrent/3", &standin, &err), &err);
    assert_int_equal(card.resets, 1 + 8);
    assert_int_equal(card.opens, 0);
    new_card();
    card.coming_back = 1000000;
    assert_int_equal(sp_bh_reset_driver("/dev/tenstorrent/3", &standin, &err), SP_ERR_ENGINE_HUNG);
    new_card();
    card.fail_number = 0xFA06;
    card.fail_number_errno = EBUSY;
    assert_int_equal(sp_bh_reset_driver("/dev/tenstorrent/3", &standin, &err), SP_ERR_ENGINE);
}

/* A frame waits without burning a processor: first it spins, then it sleeps. */
static void waiting(void **state) {
    (void)state;
    new_card();
    bh_transport *t = open_card();
    sp_error err;
    uint64_t now, start;
    assert_ok(t->tick(t, &start, &err), &err);
    for (int i = 0; i < 4000; i++)
        assert_ok(t->tick(t, &now, &err), &err);
    assert_true(now - start > 50 * 1000); /* most of the ticks slept 50 us */
    assert_true(t->hang_us >= 100000);
    t->close(t);
}

/* The real thing where there is none: refused with the path. */
static void no_card(void **state) {
    (void)state;
    bh_transport *t;
    sp_error err;
    assert_int_equal(sp_bh_open_driver("/dev/tenstorrent/no-such-card", &sp_bh_system, &t, &err), SP_ERR_UNAVAILABLE);
    assert_non_null(strstr(err.text, "no-such-card"));
    /* A file that is no card: the first call is refused. */
    assert_int_equal(sp_bh_open_driver("/dev/null", &sp_bh_system, &t, &err), SP_ERR_ENGINE);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(opening),     cmocka_unit_test(disabled_columns), cmocka_unit_test(bytes_arrive),
        cmocka_unit_test(hold),        cmocka_unit_test(shared_memory),    cmocka_unit_test(refused),
        cmocka_unit_test(every_errno), cmocka_unit_test(interrupted),      cmocka_unit_test(nth_call_fails),
        cmocka_unit_test(resetting),   cmocka_unit_test(waiting),          cmocka_unit_test(no_card)};
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    new_card();
    return failed;
}
