/* What the command `match` was asked for, and its two ways. */
#ifndef SUPERPOINT_MATCH_MATCH_H
#define SUPERPOINT_MATCH_MATCH_H

#include "common/cli.h"
#include "match/writers.h"

typedef enum pairing { PAIRING_EXHAUSTIVE, PAIRING_SEQUENTIAL, PAIRING_RETRIEVAL, PAIRING_FILE } pairing;

typedef struct match_options {
    const char *program;
    sp_setup setup;
    sp_params params;
    sp_match_options match;
    cli_operands operands; /* one or two */

    /* two pictures */
    const char *draw;
    bool json;

    /* feature files */
    const char *output;
    const match_format *format;
    pairing pairing;
    const char *pairs;
    uint32_t neighbours; /* of PAIRING_SEQUENTIAL and PAIRING_RETRIEVAL */
    bool geometries, quiet;
    size_t memory; /* for features, in bytes */
} match_options;

sp_status match_pictures(const match_options *o, sp_error *err);
sp_status match_files(const match_options *o, bool *interrupted, sp_error *err);

#endif
