/* What made a result, in the words of every command: machine, engine, weights. */
#ifndef SUPERPOINT_DESCRIBE_H
#define SUPERPOINT_DESCRIBE_H

#include <jansson.h>

#include "superpoint.h"

/* {"cpu": name, "levels": [those that this machine has]} */
json_t *describe_machine(void);

/* {"name": "cpu", "device", "level", "precision", "threads"} */
json_t *describe_engine(const sp_engine *engine);

/* {"id", "sha256"} */
json_t *describe_weights(const sp_model *model);

/* "engine cpu, level amx, bf16, weights NAME" on standard output, without a line's end. */
void describe_print(const sp_engine *engine, const sp_model *model);

#endif
