#include "firmware.h"

/* The linker was given these places by firmware/CMakeLists.txt. */
_Static_assert(PROGRAM_BRISC == 0 && PROGRAM_TRISC(0) == 0x6000 && PROGRAM_TRISC(1) == 0x8000 &&
                   PROGRAM_TRISC(2) == 0xA000 && PROGRAM_NCRISC == 0xC000 && PROGRAMS_END == 0x10000,
               "places of the programs");

void sp_bh_firmware_get(bh_firmware *firmware) {
    *firmware = (bh_firmware){
        .core = {[CORE_BRISC] = {"brisc", PROGRAM_BRISC, sp_bh_image_brisc, sp_bh_image_brisc_bytes},
                 [CORE_UNPACK] = {"unpack", PROGRAM_TRISC(0), sp_bh_image_unpack, sp_bh_image_unpack_bytes},
                 [CORE_MATH] = {"math", PROGRAM_TRISC(1), sp_bh_image_math, sp_bh_image_math_bytes},
                 [CORE_PACK] = {"pack", PROGRAM_TRISC(2), sp_bh_image_pack, sp_bh_image_pack_bytes},
                 [CORE_NCRISC] = {"ncrisc", PROGRAM_NCRISC, sp_bh_image_ncrisc, sp_bh_image_ncrisc_bytes}},
        .feeder = {"feeder", PROGRAM_BRISC, sp_bh_image_feeder, sp_bh_image_feeder_bytes}};
}
