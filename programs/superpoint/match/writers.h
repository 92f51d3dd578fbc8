/* Files of matches: hloc's HDF5, COLMAP's database and its text. */
#ifndef SUPERPOINT_MATCH_WRITERS_H
#define SUPERPOINT_MATCH_WRITERS_H

#include "superpoint.h"

typedef struct match_writer match_writer;

/* The matches of one pair of pictures. */
typedef struct pair_matches {
    const char *names[2];
    size_t counts[2]; /* keypoints of each */
    const sp_matches *matches;
} pair_matches;

typedef struct match_format {
    const char *name, *suffixes;
    /* `identity` is JSON that says what made the matches. `geometries`: for a database, enter them as
     * geometrically checked too, though nobody has. */
    sp_status (*create)(const char *path, const char *identity, bool geometries, match_writer **w, sp_error *err);
    sp_status (*add)(match_writer *w, const pair_matches *p, sp_error *err);
    sp_status (*close)(match_writer *w, sp_error *err); /* frees `w` in any case */
    void (*abandon)(match_writer *w);                   /* leaves what was there before */
} match_format;

extern const match_format match_hdf5, match_colmap, match_text;

sp_status match_format_find(const char *name, const char *path, const match_format **format, sp_error *err);

#endif
