/*
 * What made a set of features, as JSON: weights, engine, precision and every parameter. Features of
 * two identities are not to be mixed.
 */
#ifndef SUPERPOINT_EXTRACT_IDENTITY_H
#define SUPERPOINT_EXTRACT_IDENTITY_H

#include "extract/inputs.h"
#include "superpoint.h"

/* One line of JSON with sorted keys; the caller frees it. NULL when memory runs out. */
char *identity_text(const sp_model *model, const sp_engine *engine, const sp_params *params);

/* The same with the pictures: how many, how many failed, and the SHA-256 of their names. This is what
 * a finished output holds. */
char *identity_with_pictures(const char *identity, const input_list *list, size_t failed);

/* SP_OK when the two are the same but for the pictures; else an error that says what differs. */
sp_status identity_compare(const char *where, const char *there, const char *here, sp_error *err);

/* What a finished output says of its pictures. False when it is not ours. */
bool identity_pictures(const char *text, const input_list *list, bool *same, size_t *failed);

/* The SHA-256 of the weights, to be freed; NULL when it is not there. */
char *identity_weights(const char *text);

#endif
