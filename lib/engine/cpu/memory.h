/* Large blocks of zeros for weights and maps. */
#ifndef SP_ENGINE_CPU_MEMORY_H
#define SP_ENGINE_CPU_MEMORY_H

#include <stdint.h>

#include "superpoint.h"

typedef struct sp_block {
    uint8_t *data; /* aligned to 2 MiB where it is as large, else to a page; NULL when empty */
    void *mapping;
    size_t mapped;
} sp_block;

/* `bytes` of zeros, on huge pages where the system gives them: with small ones the walk over rows
 * misses the TLB at almost every line. */
sp_status sp_block_alloc(sp_block *block, size_t bytes, const char *what, sp_error *err);
void sp_block_free(sp_block *block);

#endif
