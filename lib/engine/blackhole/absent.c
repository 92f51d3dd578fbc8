/* In place of the engine where the firmware's cross compiler was not found. */
#include "base/error.h"
#include "engine/engine.h"

static sp_status probe(const sp_engine_options *options, sp_error *err) {
    (void)options;
    return sp_fail(err, SP_ERR_UNAVAILABLE,
                   "blackhole: this build has no such engine (riscv64-unknown-elf-gcc was not found)");
}

const sp_engine_kind sp_engine_blackhole = {.name = "blackhole", .probe = probe};
