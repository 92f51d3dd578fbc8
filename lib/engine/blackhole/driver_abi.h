/*
 * The kernel driver's calls, as this project uses them: numbers, sizes and fields of the ABI of tt-kmd 2.x.
 *
 * Facts read from tt-kmd's ioctl.h (whose use from programs the Linux-syscall-note permits); the declarations are our
 * own. Every field is naturally aligned, so the compiler adds no padding; the asserts below keep it so.
 */
#ifndef BH_DRIVER_ABI_H
#define BH_DRIVER_ABI_H

#include <linux/ioctl.h>
#include <stddef.h>
#include <stdint.h>

#define DRIVER_CALL(n) _IO(0xFA, n)
#define CALL_DEVICE_INFO DRIVER_CALL(0)
#define CALL_DRIVER_INFO DRIVER_CALL(5)
#define CALL_RESET DRIVER_CALL(6)
#define CALL_PIN_PAGES DRIVER_CALL(7)
#define CALL_UNPIN_PAGES DRIVER_CALL(10)
#define CALL_ALLOCATE_WINDOW DRIVER_CALL(11)
#define CALL_FREE_WINDOW DRIVER_CALL(12)
#define CALL_CONFIGURE_WINDOW DRIVER_CALL(13)
#define CALL_CLEANUP_WRITE DRIVER_CALL(14)
#define CALL_POWER DRIVER_CALL(15)

#define DRIVER_ABI 2u /* GET_DRIVER_INFO's driver_version */
#define VENDOR_TENSTORRENT 0x1E52u
#define DEVICE_BLACKHOLE 0xB140u

struct device_info {
    uint32_t in_bytes;  /* size of what follows */
    uint32_t out_bytes; /* size that the driver knows */
    uint16_t vendor, device, subsystem_vendor, subsystem, bus_device_function, dma_log2, pci_domain, unused;
};

struct driver_info {
    uint32_t in_bytes, out_bytes;
    uint32_t abi;
    uint8_t major, minor, patch, unused;
};

enum { RESET_ASIC = 4, RESET_AFTER = 6 };
struct reset_device {
    uint32_t in_bytes, flags;
    uint32_t out_bytes, result;
};

enum { PIN_FOR_NOC = 2 };
struct pin_pages {
    uint32_t out_size, flags;
    uint64_t address, size;
    uint64_t physical, noc; /* out */
};

struct unpin_pages {
    uint64_t address, size, unused;
};

struct allocate_window {
    uint64_t size, unused0;
    uint32_t id, unused1; /* out, from here */
    uint64_t map_uncached, map_write_combined, unused2;
};

struct free_window {
    uint32_t id;
};

enum { ORDER_DEFAULT = 0, ORDER_STRICT = 1, ORDER_POSTED = 2 };
struct configure_window {
    uint32_t id, unused0;
    uint64_t address; /* a multiple of the window's size */
    uint16_t x_end, y_end, x_start, y_start;
    uint8_t noc, multicast, ordering, linked, static_vc, unused1[3];
    uint32_t unused2[2];
    uint64_t out;
};

struct cleanup_write {
    uint32_t bytes, flags;
    uint8_t enabled, x, y, noc;
    uint32_t unused;
    uint64_t address, data;
};

enum { POWER_MAX_CLOCK = 1, POWER_DRAM = 2, POWER_TENSIX = 4 };
struct power {
    uint32_t bytes, flags;
    uint8_t unused;
    uint8_t valid; /* number of flags that count in bits 0...3, of settings in 4...7 */
    uint16_t power_flags;
    uint16_t settings[14];
};

_Static_assert(sizeof(struct device_info) == 24 && sizeof(struct driver_info) == 16, "ABI");
_Static_assert(sizeof(struct reset_device) == 16 && sizeof(struct pin_pages) == 40, "ABI");
_Static_assert(sizeof(struct unpin_pages) == 24 && sizeof(struct allocate_window) == 48, "ABI");
_Static_assert(sizeof(struct free_window) == 4 && sizeof(struct configure_window) == 48, "ABI");
_Static_assert(sizeof(struct cleanup_write) == 32 && sizeof(struct power) == 40, "ABI");

#endif
