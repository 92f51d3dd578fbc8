/* One extraction from the list of pictures to the finished output. */
#ifndef SUPERPOINT_EXTRACT_EXTRACT_H
#define SUPERPOINT_EXTRACT_EXTRACT_H

#include "common/setup.h"
#include "extract/inputs.h"
#include "output/output.h"

typedef struct extraction_options {
    const char *program;
    sp_setup setup;
    sp_params params;
    input_options inputs;
    const char *output;
    const output_format *format;
    camera_options camera;
    uint32_t decoders;   /* 0: one for each CPU */
    double peer_timeout; /* seconds, see group_run */
    bool fail_fast, quiet, overwrite, restart;
} extraction_options;

/* The exit code of the program; everything has been said on standard error. */
int extraction_run(const extraction_options *o);

#endif
