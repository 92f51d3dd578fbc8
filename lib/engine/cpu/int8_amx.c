/* Mixed precision on AMX tiles. */
#include "engine/cpu/amx.h"

static inline __attribute__((always_inline)) void accumulate(const block *b, const int kernel, const sink *to,
                                                             finished *f, const int pool, const ending end) {
    const uint32_t share = share_of(f, b, kernel);
#define START(tile, half) _tile_zero(tile)
    AMX_BLOCK(b, kernel, START, _tile_dpbusd, store_some(to, f, share, pool, end));
#undef START
}

static uint64_t peak(const void *data, uint64_t rounds) {
    AMX_PEAK(data, rounds, _tile_dpbusd);
    return rounds * 4 * BLOCK_PIXELS * WEIGHT_BYTES;
}

#define BF16 sp_kernels_bf16_amx
#define ENTER amx_enter
#define LEAVE amx_leave
#define LEVEL SP_CPU_AMX
#define NAME sp_kernels_int8_amx

#include "engine/cpu/int8_template.h"
