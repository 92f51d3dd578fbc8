/* The list of pictures that the user named. */
#ifndef SUPERPOINT_EXTRACT_INPUTS_H
#define SUPERPOINT_EXTRACT_INPUTS_H

#include "common/cli.h"
#include "superpoint.h"

typedef struct input {
    char *name; /* under which the features are stored */
    char *path;
} input;

typedef struct input_list {
    input *items;
    size_t count, room;
    size_t repeated; /* names that came twice, of which the first stays */
} input_list;

typedef struct input_options {
    cli_operands operands;
    const char *list; /* file of paths, "-" for standard input; NULL: none */
    bool nulls;       /* its paths end in zeros instead of line ends */
    const char *root; /* folder that paths are relative to, and names too; NULL: none */
} input_options;

/*
 * A folder gives all pictures below it, in order of their bytes, by their suffixes; a pattern with
 * *, ? or [ that is no file gives what it matches, in order; anything else is a picture. Names are
 * the paths as given, but of a single folder, and with `root`, those below it; never with "./" or
 * "/" in front. The caller frees the list.
 */
sp_status inputs_collect(const input_options *options, input_list *list, sp_error *err);
void inputs_free(input_list *list);

#endif
