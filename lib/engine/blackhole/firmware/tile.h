/*
 * What the host and the five cores of a tile agree on: places in L1, the mailbox, the layer table.
 *
 * Both compilers lay these structures out alike: every field is 32 bits wide. TILE_VERSION changes
 * whenever anything here does; each core reports the version it was compiled with, and the host
 * refuses another.
 */
#ifndef BH_TILE_H
#define BH_TILE_H

#include "chip.h"

#define TILE_VERSION 2u

/* ------------------------------------------------------------------ programs ------------------- */

enum { CORE_BRISC, CORE_UNPACK, CORE_MATH, CORE_PACK, CORE_NCRISC, CORES };

/* Where the programs are linked. Room for each up to the next one. */
#define PROGRAM_BRISC 0x0000u
#define PROGRAM_TRISC(t) (0x6000u + 0x2000u * (t))
#define PROGRAM_NCRISC 0xC000u
#define PROGRAMS_END 0x10000u
/* The second word of every program is the version it was compiled with (see start.h). */
#define PROGRAM_VERSION_OFFSET 4u

/* ------------------------------------------------------------------ memory map ----------------- */

#define MAILBOX 0x10000u
#define LAYER_TABLE 0x10400u /* MAX_LAYERS records */
#define MAX_LAYERS 16u
#define ZEROS 0x12000u /* source of halo rows outside the frame */
#define ZEROS_BYTES NOC_MAX_TRANSFER
#define PICTURE 0x16000u /* this tile's rows of the picture with their halo */
#define PICTURE_BYTES 0xA000u
/* Two buffers for one group of weights each: 64 outputs, at most 9 taps x 8 planes and the bias. */
#define WEIGHTS 0x20000u
#define WEIGHT_BLOCK_BYTES 2048u
#define WEIGHT_BUFFER_BYTES (74u * WEIGHT_BLOCK_BYTES)
#define ACTIVATIONS (WEIGHTS + 2u * WEIGHT_BUFFER_BYTES) /* the host lays out what follows */

/*
 * An activation buffer: ONES_PIXELS pixels whose channels 0 and 1 are 1.0 (SrcB of the bias), then
 * planes of 16 channels of fp16. A plane: LEAD_PIXELS, then rows 0...h+1 of `pitch` pixels. Rows 0 and
 * h+1 and columns 0 and w+1 are halo: zero at the edge of the frame. Then slack for the overshoot
 * of the last block. All tiles use the pitch and the plane size of the largest tile, so that an
 * address is valid in a neighbour too.
 */
#define PLANE_CHANNELS 16u
#define PIXEL_BYTES 32u
#define ONES_PIXELS 64u
#define LEAD_PIXELS 4u
#define BLOCK_PIXELS 64u     /* pixels that one pass of the matrix unit covers */
#define PLANE_UNIT 128u      /* planes are multiples of this many pixels: one step of unpacker 1's Z counter */
#define UNPACK_Y_LIMIT 8192u /* pixel index within a strip: Y counts 13 bits */
#define UNPACK_Z_LIMIT 256u  /* Z counts 8 bits */

/* ------------------------------------------------------------------ mailbox -------------------- */

/* What one NoC write or atomic touches. */
struct line {
    uint32_t value, unused[3];
};

/* Somewhere outside the tile: a DRAM bank's port or the host's memory behind PCIe. */
struct remote {
    uint32_t at;         /* NOC_AT of the port */
    uint32_t low, high;  /* 64-bit address there */
    uint32_t slot_bytes; /* frames of odd number use the address + this */
};

/* Neighbours: above, below, left, right, and the four diagonal ones. */
enum { NORTH, SOUTH, WEST, EAST, NORTH_WEST, NORTH_EAST, SOUTH_WEST, SOUTH_EAST, NEIGHBOURS };

#define MAILBOX_SUPPRESS 1u /* flags: NCRISC suppresses, not only softmax */

struct mailbox {
    /* Written by the host before it releases the cores. */
    uint32_t layers; /* records in the table */
    uint32_t flags;
    uint32_t root;                  /* NOC_AT of the tile that counts finished tiles */
    uint32_t tiles;                 /* tiles that take part */
    uint32_t neighbour[NEIGHBOURS]; /* NOC_AT, or NOC_NOWHERE outside the frame */
    uint32_t feeder;                /* NOC_AT of the tile that multicasts weights, or NOC_NOWHERE: fetch your own */
    uint32_t picture_offset;        /* bytes from picture's address to this tile's left halo pixel, 0...63 */
    uint32_t picture_pitch;         /* bytes a row, a multiple of 64; zeros stand around the picture */
    uint32_t run;                   /* layers to run since the start; the host raises it while the cores run */
    struct remote picture;          /* this tile's first halo row, rounded down to 64 bytes */
    struct remote descriptors;      /* this tile's part of the result */
    struct remote finished;         /* root only: line that takes the number of finished frames */
    /* Feeder only: multicast rectangle, tiles in it that answer, tiles that use the weights. */
    uint32_t rectangle, rectangle_tiles, users, unused0;

    /* Written by the cores. */
    uint32_t version[CORES];   /* TILE_VERSION, once the core runs */
    uint32_t step[CORES];      /* STEP: what the core was last seen doing */
    uint32_t done;             /* BRISC: layers finished since the start (feeder: groups sent) */
    uint32_t layer;            /* BRISC: address of the record that the T cores work on */
    uint32_t go;               /* BRISC: number of that layer: 1, 2, ... */
    uint32_t weights_used;     /* unpack: groups no longer needed */
    uint32_t thread_done[3];   /* unpack, math, pack: last layer finished */
    uint32_t configured;       /* unpack: the Tensix back end is configured */
    uint32_t math_ready;       /* math: semaphore initialised, replay buffer filled */
    uint32_t taps_done[CORES]; /* number of the last first layer whose share of the taps this core has made */
    /* Wall clock, low word. Of each layer of the last frame: begun, T cores started, T cores done, all done. Of the
     * first layer: all taps made. Of the tail: logits seen, scores made, suppressed. */
    uint32_t begin_clock[MAX_LAYERS], go_clock[MAX_LAYERS], threads_clock[MAX_LAYERS], end_clock[MAX_LAYERS];
    uint32_t taps_clock, tail_clock[3];

    /* Lines that others write over the NoC. All are counters that only grow. */
    struct line layer_from[NEIGHBOURS];  /* layers that this neighbour has finished */
    struct line scores_from[NEIGHBOURS]; /* score maps that this neighbour has finished */
    struct line weights_ready;           /* groups of weights that have arrived */
    struct line frames;                  /* root only: atomic counter of finished tiles x frames */
    struct line used[2];                 /* feeder only: atomic counters of used groups of even and odd number */

    /* Sources of such writes. One for each core that writes, so that none changes under another's transfer. */
    struct line brisc_out, ncrisc_out;
    struct line atomic_old[2]; /* where an atomic's answer goes: BRISC, NCRISC */
};

/* The layer number is the count of layers since the start, modulo 2^24. */
#define STEP(layer, what) ((uint32_t)(layer) << 8 | (uint32_t)(what))
enum {
    STEP_NONE,
    STEP_STARTED,
    STEP_WAIT_RUN,        /* BRISC: waits for the host */
    STEP_WAIT_NEIGHBOURS, /* BRISC, NCRISC: waits for the neighbours */
    STEP_HALO,            /* BRISC, NCRISC: reads halos */
    STEP_PICTURE,         /* BRISC: reads the picture */
    STEP_TAPS,            /* all cores: make the first layer's input; unpack: and waits for the others */
    STEP_FACTORS,         /* BRISC: makes the factors of the normalisation */
    STEP_WAIT_THREADS,    /* BRISC: waits for unpack, math and pack */
    STEP_TELL,            /* BRISC: tells the neighbours */
    STEP_RESULT,          /* BRISC, NCRISC: writes results out */
    STEP_WAIT_TILES,      /* BRISC of the root: waits for all tiles; NCRISC: waits for BRISC's last layer */
    STEP_WAIT_LAYER,      /* T cores: wait for a layer; NCRISC: waits for the logits */
    STEP_WAIT_WEIGHTS,    /* unpack: waits for weights; feeder: waits until a buffer is free */
    STEP_WORK,            /* T cores: instructions issued, Tensix works */
    STEP_SOFTMAX,         /* NCRISC */
    STEP_SUPPRESS,        /* NCRISC */
    STEP_FEED,            /* feeder: reads or multicasts */
    STEPS
};

/* ------------------------------------------------------------------ layer table ---------------- */

enum { LAYER_CONV, LAYER_SQUARES, LAYER_SCALE };
enum { HALO_NONE, HALO_FETCH, HALO_WAIT }; /* HALO_WAIT: a neighbour may still read what this layer overwrites */

struct layer {
    uint32_t kind;       /* CONV; SQUARES: out = sum over the planes of `a` of a*a; SCALE: out = a * plane 0 of in */
    uint32_t in;         /* input buffer (its ones) */
    uint32_t in_plane;   /* pixels a plane, a multiple of PLANE_UNIT */
    uint32_t pitch;      /* pixels a row, ring included */
    uint32_t rows, cols; /* of this tile, without halo; cols <= pitch - 2 */
    uint32_t taps;       /* 9 or 1 */
    uint32_t in_planes;
    uint32_t groups;      /* of 64 output channels */
    uint32_t last_planes; /* planes to pack of the last group, 1...4 */
    uint32_t relu, pool;
    uint32_t out; /* output buffer (its ones) */
    uint32_t out_plane, out_pitch;
    uint32_t blocks; /* of 64 pixels a group; with pooling of 32 pixels x 2 rows */
    uint32_t halo;
    uint32_t zero_ring;             /* the next layer reads the output's ring */
    uint32_t north_rows, west_cols; /* of the neighbours above and to the left, at the input's resolution */
    uint32_t phases;                /* fidelity phases of the matrix unit: 2, 3 or 4 */
    uint32_t from_picture;          /* the cores first make the input from picture rows */
    uint32_t weights_at, weights;   /* NOC_AT of a DRAM port and address there */
    uint32_t weights_bytes;         /* a group; 0: no weights */
    uint32_t a, a_planes;           /* SQUARES, SCALE: buffer for SrcA, and its planes */
    uint32_t unused[5];
};

/* ------------------------------------------------------------------ tail ----------------------- */

#define SUPPRESS_RADIUS 4u

/* What NCRISC needs. The score map is fp32 with a frame of SUPPRESS_RADIUS pixels around, so that the window
 * needs no edge tests. It lies after the layer table. */
struct tail {
    uint32_t after_layer; /* layers of a frame that must be finished before the logits can be read */
    uint32_t logits, logits_plane, logits_pitch; /* first cell of plane 0; bytes a plane; bytes a row */
    uint32_t rows, cols;                         /* cells of this tile */
    uint32_t log2e;                              /* fp32 bits: log2(e) over the scale of the logits */
    uint32_t scores, score_pitch;                /* pixel (-4,-4) of the score map; bytes a row */
    uint32_t north_rows, west_cols;              /* cells of the tile above, of the tile to the left */
    uint32_t kept, kept_pitch;                   /* bit map of the pixels that survive; bytes a row, a multiple of 4 */
    uint32_t kept_bytes;                         /* of the whole bit map, a multiple of 16 */
    struct remote scores_out;                    /* this tile's first pixel of the frame's score map */
    uint32_t scores_out_pitch;                   /* bytes a row of the frame */
    struct remote kept_out;
    uint32_t unused[1];
};
#define TAIL (LAYER_TABLE + MAX_LAYERS * 128u)

#ifndef __ASSEMBLER__
_Static_assert(sizeof(struct layer) == 128, "layer record");
_Static_assert(sizeof(struct mailbox) <= LAYER_TABLE - MAILBOX, "mailbox");
_Static_assert(__builtin_offsetof(struct mailbox, layer_from) % 16 == 0, "NoC lines are 16-byte aligned");
_Static_assert(TAIL + sizeof(struct tail) <= ZEROS, "tail");
#endif

#endif
