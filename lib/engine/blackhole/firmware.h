/* The programs of the cores, as the build embedded them. */
#ifndef BH_FIRMWARE_H
#define BH_FIRMWARE_H

#include <stddef.h>
#include <stdint.h>

#include "firmware/tile.h"

typedef struct bh_program {
    const char *name;
    uint32_t place; /* where in L1 it is linked to run */
    const unsigned char *image;
    size_t bytes;
} bh_program;

typedef struct bh_firmware {
    bh_program core[CORES]; /* of a working tile */
    bh_program feeder;      /* BRISC of a tile that multicasts weights */
} bh_firmware;

void sp_bh_firmware_get(bh_firmware *firmware);

extern const unsigned char sp_bh_image_brisc[], sp_bh_image_unpack[], sp_bh_image_math[], sp_bh_image_pack[],
    sp_bh_image_ncrisc[], sp_bh_image_feeder[];
extern const unsigned int sp_bh_image_brisc_bytes, sp_bh_image_unpack_bytes, sp_bh_image_math_bytes,
    sp_bh_image_pack_bytes, sp_bh_image_ncrisc_bytes, sp_bh_image_feeder_bytes;

#endif
