#include "engine/cpu/memory.h"

#include <string.h>
#include <sys/mman.h>

#include "base/error.h"
#include "base/size.h"

enum { HUGE_PAGE = 2 << 20, SMALL_PAGE = 4096 };

sp_status sp_block_alloc(sp_block *block, size_t bytes, const char *what, sp_error *err) {
    memset(block, 0, sizeof *block);
    const size_t align = bytes >= HUGE_PAGE ? HUGE_PAGE : SMALL_PAGE;
    const size_t rounded = sp_round_up(bytes, align);
    const size_t mapped = rounded + align; /* room to begin at a multiple of `align` */
    void *mapping = mmap(NULL, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapping == MAP_FAILED)
        return sp_fail_memory(err, what, mapped);
    block->mapping = mapping;
    block->mapped = mapped;
    block->data = (uint8_t *)sp_round_up((uintptr_t)mapping, align);
    madvise(block->data, rounded, MADV_HUGEPAGE); /* advice only: small pages work too */
    return SP_OK;
}

void sp_block_free(sp_block *block) {
    if (block->mapping)
        munmap(block->mapping, block->mapped);
    memset(block, 0, sizeof *block);
}
