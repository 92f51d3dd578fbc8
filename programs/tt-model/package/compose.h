/* compose.h - the manifest of a package, from its author's description and what was built. */
#ifndef TM_COMPOSE_H
#define TM_COMPOSE_H

#include "authored.h"
#include "base/error.h"
#include "base/json.h"

typedef struct tm_built {
    const char *image_tag, *image_digest, *created_at, *code_sha256;
    json_t *source;   /* of tm_provenance */
    json_t *tt_metal; /* the same for the tt-metal checkout, or null */
    json_t *card;     /* with its values filled in */
} tm_built;

/* Every field, in the order of the schema, nulls and empty ones included. A new reference. */
json_t *tm_compose_manifest(const tm_authored *a, const tm_built *b);

/* The labels that the image carries. */
json_t *tm_compose_labels(const tm_authored *a, const json_t *source);

#endif
