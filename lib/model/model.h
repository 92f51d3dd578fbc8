/* Weights that have been read and checked. */
#ifndef SP_MODEL_MODEL_H
#define SP_MODEL_MODEL_H

#include "model/network.h"
#include "superpoint.h"

/* Largest weights file that is read: ours have 5.2 MB. */
#define SP_MAX_WEIGHTS_BYTES ((size_t)64 << 20)

/* Lives as long as the model. */
const sp_weights *sp_model_weights(const sp_model *model);

#endif
