/* What every program does first: find weights, make an engine. */
#ifndef SP_COMMON_SETUP_H
#define SP_COMMON_SETUP_H

#include <stdbool.h>
#include <stddef.h>

#include "superpoint.h"

typedef struct sp_setup {
    const char *weights; /* NULL: the default */
    sp_engine_options engine;
} sp_setup;

void sp_setup_default(sp_setup *setup);

/* Set by an option's name, one of sp_setup_options in cli.h. SP_ERR_ARGUMENT, with err filled in, when the value is
 * wrong. */
sp_status sp_setup_set(sp_setup *setup, const char *name, const char *value, sp_error *err);

/* Open the model, and make the engine unless `engine` is NULL. On failure nothing is left open. */
sp_status sp_setup_open(const sp_setup *setup, sp_model **model, sp_engine **engine, sp_error *err);

/*
 * A file that comes with the program: `in_tree` below the source tree that holds the build folder
 * (TREE/BUILD/bin/PROGRAM), or share/superpoint/`installed` beside the bin folder. False when absent.
 */
bool sp_find_data(const char *in_tree, const char *installed, char *path, size_t size);

/* The weights that programs use when none are named: SUPERPOINT_WEIGHTS, or those that come with it. */
bool sp_default_weights(char *path, size_t size);

/* The picture that commands work on when none is named. SP_ERR_NOT_FOUND where it is not beside the program. */
sp_status sp_sample_picture(char *path, size_t size, sp_error *err);

#endif
