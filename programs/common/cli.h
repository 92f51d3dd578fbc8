/*
 * Command lines: one table of a command's own options, joined with those of the engine (setup.h) and
 * of a detection (params.h). Long options only, `--name value` or `--name=value`; operands anywhere;
 * `--` ends options. --help is understood by all.
 *
 *     typedef struct options { cli_operands images; const char *npz; bool json; } options;
 *     static const cli_option own[] = {{"json", NULL, "one JSON document", CLI_FLAG(options, json)},
 *                                      {"npz", "FILE", "write arrays for numpy", CLI_TEXT(options, npz)},
 *                                      CLI_END};
 */
#ifndef SP_COMMON_CLI_H
#define SP_COMMON_CLI_H

#include <stddef.h>

#include "common/setup.h"
#include "superpoint.h"

typedef struct cli_option {
    const char *name;  /* without dashes */
    const char *value; /* what a value looks like, "FILE"; NULL: the option takes none */
    const char *help;  /* one line */
    size_t member;     /* where it goes: CLI_FLAG, CLI_TEXT or CLI_TAKE */
} cli_option;

#define CLI_END                                                                                                        \
    { NULL, NULL, NULL, 0 }

/* To be given to cli.take. */
#define CLI_TAKE ((size_t)0)
/* The member of the structure at cli.context that the option sets: a bool, or a text that points into argv. The
 * comparison is for the compiler alone, which refuses a member of another type. */
#define CLI_FLAG(type, name) CLI_MEMBER(type, name, bool)
#define CLI_TEXT(type, name) CLI_MEMBER(type, name, const char *)
#define CLI_MEMBER(type, name, kind) (1 + offsetof(type, name) + 0 * sizeof(&((type *)NULL)->name == (kind *)NULL))

/* What a command works on, in the order given. The names lie in argv. */
typedef struct cli_operands {
    const char **names;
    size_t count;
} cli_operands;

/* The options that set an sp_setup; the same in every program. Ended by CLI_END. */
extern const cli_option sp_setup_options[];

typedef struct cli {
    const char *program;       /* "superpoint detect", for messages */
    const char *usage;         /* "superpoint detect [OPTION...] IMAGE...", without newline */
    const char *about;         /* what it does: lines, each ended */
    const char *epilogue;      /* examples and the like: lines, each ended */
    const cli_option *options; /* the command's own, ended by CLI_END */
    sp_setup *setup;           /* NULL: takes no engine options */
    sp_params *params;         /* NULL: takes no detection parameters */
    cli_operands *operands;    /* filled in; NULL: takes none */

    /* Called for each of the command's own options without a member (value NULL without one). SP_OK to go on; on
     * failure err says what was wrong. */
    sp_status (*take)(void *context, const cli_option *option, const char *value, sp_error *err);
    /* Called when all have been taken, to judge them together; NULL: nothing to judge. */
    sp_status (*complete)(void *context, sp_error *err);
    void *context;
} cli;

enum { CLI_GO_ON = -1 };

/* Parse and judge; CLI_GO_ON, or the exit code with which to leave: 0 after --help, 2 after a message. */
int cli_parse(const cli *c, int argc, char **argv);

/* Say on standard error what failed; the exit code that stands for it. */
int cli_fail(const cli *c, const sp_error *err);

#endif
