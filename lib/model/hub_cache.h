/*
 * Weights that another program has put into the Hugging Face hub cache:
 * models--OWNER--NAME/refs/BRANCH holds a commit, snapshots/COMMIT/ its files.
 * https://huggingface.co/docs/huggingface_hub/guides/manage-cache
 */
#ifndef SP_MODEL_HUB_CACHE_H
#define SP_MODEL_HUB_CACHE_H

#include "superpoint.h"

enum { SP_HUB_MAX_PATH = 4096, SP_HUB_MAX_ID = 200, SP_HUB_MAX_REVISION = 128 };

typedef struct sp_hub_entry {
    char path[SP_HUB_MAX_PATH];         /* the weights file */
    char id[SP_HUB_MAX_ID];             /* "owner/name", empty for a plain file */
    char revision[SP_HUB_MAX_REVISION]; /* commit, empty for a plain file */
} sp_hub_entry;

/*
 * Find what `weights` names: an existing file as it is, else "owner/name[@revision]" in `cache`
 * (NULL: HF_HUB_CACHE, HUGGINGFACE_HUB_CACHE, HF_HOME/hub, XDG_CACHE_HOME/huggingface/hub, ~/.cache/huggingface/hub).
 */
sp_status sp_hub_find(const char *weights, const char *cache, sp_hub_entry *entry, sp_error *err);

#endif
