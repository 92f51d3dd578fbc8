/* The kernel driver's transport, and the system calls it is made of, so that a test can stand in for the card. */
#ifndef BH_TRANSPORT_DRIVER_H
#define BH_TRANSPORT_DRIVER_H

#include <sys/types.h>

#include "transport.h"

/* As the functions of the same names; errno on failure. */
typedef struct bh_system {
    int (*open)(const char *path, int flags);
    int (*close)(int fd);
    int (*ioctl)(int fd, unsigned long number, void *argument);
    int (*flock)(int fd, int operation);
    void *(*mmap)(void *address, size_t bytes, int protection, int flags, int fd, off_t offset);
    int (*munmap)(void *address, size_t bytes);
    void (*sleep_us)(unsigned us);
    uint64_t (*now_us)(void);
} bh_system;

/* The machine's own. */
extern const bh_system sp_bh_system;

#define BH_DEFAULT_DEVICE "/dev/tenstorrent/0"

/*
 * Open a card, alone: a second user is refused (SP_ERR_UNAVAILABLE) for as long as the first holds it. Asks for full
 * power. `path` is a device file of the kernel driver, version 2 of its interface.
 */
sp_status sp_bh_open_driver(const char *path, const bh_system *system, bh_transport **transport, sp_error *err);

/* Reset the whole chip, as the remedy for one that does not answer: takes seconds. Nobody may have it open. */
sp_status sp_bh_reset_driver(const char *path, const bh_system *system, sp_error *err);

#endif
