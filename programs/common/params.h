/*
 * The parameters of a detection by name: the one table behind command-line flags (--max-keypoints),
 * query strings and multipart fields (max_keypoints=5), JSON fields and the text of --help, /info
 * and /openapi.json.
 */
#ifndef SP_COMMON_PARAMS_H
#define SP_COMMON_PARAMS_H

#include "superpoint.h"

typedef enum param_kind {
    PARAM_INTEGER,
    PARAM_NUMBER,
    PARAM_BOOLEAN,
    PARAM_CHOICE, /* one of `choices` */
    PARAM_SIZE,   /* native, max:N or WxH */
    PARAM_RECT    /* x,y,w,h */
} param_kind;

typedef struct param_spec {
    const char *name; /* with underscores, as in JSON; flags write '-' for '_' */
    param_kind kind;
    const char *value; /* what a value looks like, for help: "N", "red|luma" */
    const char *help;  /* one line */
    double minimum, maximum;
    const char *const *choices; /* NULL-terminated, by rising enum value; NULL when kind is not PARAM_CHOICE */
} param_spec;

/* All of them in the order in which help shows them. */
const param_spec *params_specs(size_t *count);

/* The one of that name ('-' and '_' are the same), or NULL. */
const param_spec *params_find(const char *name);

/* Whether `text` is one of the words for true and false: true/false, yes/no, on/off, 1/0 in any case. */
bool params_boolean(const char *text, bool *value);

/*
 * Set one field from text. Integers may be written 5, 5.0 or 5e2. Every value is checked against its range. Fails with
 * SP_ERR_ARGUMENT
 * ("nms_radius: 99 is not within 0...64"), or SP_ERR_NOT_FOUND when there is no such parameter;
 * `params` is then as it was.
 */
sp_status params_set(sp_params *params, const char *name, const char *value, sp_error *err);

/* The current value as text that params_set reads back; cut to fit `size`. */
void params_text(const sp_params *params, const param_spec *spec, char *text, size_t size);

#endif
