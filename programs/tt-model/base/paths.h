/*
 * paths.h - where things are kept: the Hugging Face cache and the state of this program, both shared
 * with the Python tools on the same machine.
 */
#ifndef TM_PATHS_H
#define TM_PATHS_H

#include "error.h"

/* All return fresh text that the caller frees. */

char *tm_hf_home(void); /* HF_HOME, else $XDG_CACHE_HOME/huggingface, else ~/.cache/huggingface */
char *tm_hf_hub(void);  /* HF_HUB_CACHE (HUGGINGFACE_HUB_CACHE), else <HF_HOME>/hub */

/* <XDG_CACHE_HOME or ~/.cache>/tt-model; the older tt-kernel when only that is there. */
char *tm_root(void);
char *tm_root_file(const char *fmt, ...) __attribute__((format(printf, 1, 2))); /* below the root */

/* pulled/<owner>__<name>/tt_kernel_manifest.json */
char *tm_pulled_manifest(const char *repo_id);

/* The Hub's address without a trailing slash: HF_ENDPOINT, else https://huggingface.co. */
char *tm_hf_endpoint(void);
/* The user's token, or NULL: HF_TOKEN, HUGGING_FACE_HUB_TOKEN, the file HF_TOKEN_PATH, <HF_HOME>/token. */
char *tm_hf_token(void);
char *tm_hf_token_path(void);
/* Why the Hub must not be asked (HF_HUB_OFFLINE, TRANSFORMERS_OFFLINE), or NULL. */
const char *tm_offline(void);

/* An integer of the environment: `name`, or its TT_KERNEL_ spelling when `name` starts with TT_MODEL_.
 * TM_CONFIG when it is not a whole number of min...max. */
int tm_env_int(const char *name, long min, long max, long otherwise, long *out, tm_error *e);

#endif
