/*
 * parts.h - a download under way, on disk. `<blob>.incomplete` holds the first bytes of the file, which other
 * Hugging Face tools continue too; `<blob>.incomplete.<offset>` holds a range further on, that begins at a
 * multiple of the segment size. Whatever a kill leaves behind is used or removed, and never in the way.
 */
#ifndef TM_PARTS_H
#define TM_PARTS_H

#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct tm_parts {
    const char *incomplete; /* the path of the first bytes */
    int64_t size;           /* of the whole file */
    int64_t segment;
} tm_parts;

char *tm_part_path(const tm_parts *p, int64_t begin); /* fresh */

/* Move what parts hold behind the first bytes to them, as far as they join on. */
int tm_parts_absorb(const tm_parts *p, tm_error *e);

/* Remove the parts, also those of a run with another segment size; `all`: the first bytes too. */
void tm_parts_remove(const tm_parts *p, bool all);

#endif
