/*
 * card.h - the model card (README.md) of a package, made from its manifest and its author's prose.
 *
 * Numbers are not typed into prose: {{file.json#key.path}} stands for a value of a measured report beside the
 * description, {{file.json#key.path|%.4f}} for one with so many digits. A value that is not there is an error.
 */
#ifndef TM_CARD_H
#define TM_CARD_H

#include "authored.h"
#include "base/error.h"
#include "base/text.h"
#include "manifest.h"

/* Fill in the values of `card`'s texts. A new reference in *card. */
int tm_card_resolve(const tm_authored *a, json_t **card, tm_error *e);

/* The whole README.md. */
int tm_card_write(const tm_manifest *m, const char *repo_id, tm_buf *out, tm_error *e);

/* The tags of the repository: sorted, each once. */
void tm_card_tags(const tm_manifest *m, bool listed, tm_list *tags);

/* A card with another set of tags: publish and unpublish change only that. */
int tm_card_set_listed(const char *readme, bool listed, tm_buf *out, tm_error *e);

#endif
