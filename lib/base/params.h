/* Reading the caller's parameters. */
#ifndef SP_BASE_PARAMS_H
#define SP_BASE_PARAMS_H

#include "superpoint.h"

/* The caller's parameters over the defaults: fields beyond the caller's struct_size keep theirs. */
sp_status sp_params_complete(const sp_params *given, sp_params *params, sp_error *err);

#endif
