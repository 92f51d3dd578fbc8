/*
 * Command lines: one table of a command's own options, joined with those of the engine (setup.h) and
 * of a detection (params.h). Long options only, `--name value` or `--name=value`; operands anywhere;
 * `--` ends options. --help is understood by all.
 */
#ifndef SP_COMMON_CLI_H
#define SP_COMMON_CLI_H

#include "common/setup.h"
#include "superpoint.h"

typedef struct cli_option {
    const char *name;  /* without dashes */
    const char *value; /* what a value looks like, "FILE"; NULL: the option takes none */
    const char *help;  /* one line */
} cli_option;

/* The options that set an sp_setup; the same in every program. Ended by a NULL name. */
extern const cli_option sp_setup_options[];

typedef struct cli {
    const char *program;       /* "superpoint detect", for messages */
    const char *usage;         /* "superpoint detect [OPTION...] IMAGE...", without newline */
    const char *about;         /* what it does: lines, each ended */
    const char *epilogue;      /* examples and the like: lines, each ended */
    const cli_option *options; /* the command's own, ended by a NULL name */
    sp_setup *setup;           /* NULL: takes no engine options */
    sp_params *params;         /* NULL: takes no detection parameters */

    /* Called for each of the command's own options (value NULL without one), and, with option NULL,
     * for each operand. SP_OK to go on; on failure err says what was wrong. */
    sp_status (*take)(void *context, const cli_option *option, const char *value, sp_error *err);
    /* Called when all have been taken, to judge them together; NULL: nothing to judge. */
    sp_status (*complete)(void *context, sp_error *err);
    void *context;
} cli;

enum { CLI_GO_ON = -1 };

/* Parse and judge; CLI_GO_ON, or the exit code with which to leave: 0 after --help, 2 after a message. */
int cli_parse(const cli *c, int argc, char **argv);

/* For `take` of a command without operands. */
sp_status cli_no_operand(const char *operand, sp_error *err);

/* Say on standard error what failed; the exit code that stands for it. */
int cli_fail(const cli *c, const sp_error *err);

#endif
