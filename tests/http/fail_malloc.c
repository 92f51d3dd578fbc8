/*
 * Preloaded into the server by test_memory.py: counts allocations, and fails one of them.
 *
 * The file that FAIL_MALLOC names holds two 32-bit numbers, shared with the test: how many more
 * allocations succeed before one fails (-1: all do; counting only), and how many there have been.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *old, size_t size);

static _Atomic int *shared; /* [0]: left until the failure, [1]: counted */

__attribute__((constructor)) static void attach(void) {
    const char *path = getenv("FAIL_MALLOC");
    int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    if (fd < 0)
        return;
    void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (page != MAP_FAILED)
        shared = page;
}

static int fails(void) {
    if (!shared)
        return 0;
    atomic_fetch_add(&shared[1], 1);
    int left = atomic_load(&shared[0]);
    while (left >= 0)
        if (atomic_compare_exchange_weak(&shared[0], &left, left - 1)) {
            if (left == 0)
                errno = ENOMEM;
            return left == 0;
        }
    return 0;
}

void *malloc(size_t size) {
    return fails() ? NULL : __libc_malloc(size);
}

void *calloc(size_t count, size_t size) {
    return fails() ? NULL : __libc_calloc(count, size);
}

void *realloc(void *old, size_t size) {
    return fails() ? NULL : __libc_realloc(old, size);
}

int posix_memalign(void **out, size_t alignment, size_t size) {
    static void *(*real)(size_t, size_t);
    if (fails())
        return ENOMEM;
    if (!real)
        real = (void *(*)(size_t, size_t))(size_t)dlsym(RTLD_NEXT, "aligned_alloc");
    *out = real(alignment, (size + alignment - 1) / alignment * alignment);
    return *out ? 0 : ENOMEM;
}
