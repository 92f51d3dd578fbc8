/* bf16 on AMX tiles. */
#include "engine/cpu/amx.h"

static inline __attribute__((always_inline)) void accumulate(const block *b, const int kernel, const sink *to,
                                                             finished *f, const int pool, const ending end) {
    const uint32_t share = share_of(f, b, kernel);
/* sixteen pixels' bias: one row, sixteen times */
#define START(tile, half) _tile_loadd(tile, b->bias + 16 * (half), 0)
    AMX_BLOCK(b, kernel, START, _tile_dpbf16ps, store_some(to, f, share, pool, end));
#undef START
}

static uint64_t peak(const void *data, uint64_t rounds) {
    AMX_PEAK(data, rounds, _tile_dpbf16ps);
    return rounds * 4 * BLOCK_PIXELS * SP_BF16_TILE;
}

#define ENTER amx_enter
#define LEAVE amx_leave
#define LEVEL SP_CPU_AMX
#define NAME sp_kernels_bf16_amx

#include "engine/cpu/bf16_template.h"
