/* Which pictures are matched with which. */
#ifndef SUPERPOINT_MATCH_PAIRS_H
#define SUPERPOINT_MATCH_PAIRS_H

#include "match/features.h"

typedef struct pair {
    size_t a, b;
} pair;

typedef struct pair_list {
    pair *items;
    size_t count, room;
} pair_list;

/*
 * `b` NULL: pairs within `a`, each once, a < b; else pairs of one of each. All in an order that
 * reuses pictures while they are in memory.
 */
sp_status pairs_exhaustive(const feature_file *a, const feature_file *b, pair_list *list, sp_error *err);

/* Each picture with the next `overlap` ones in the order of names. */
sp_status pairs_sequential(const feature_file *a, size_t overlap, pair_list *list, sp_error *err);

/* Lines of two names, as hloc has them. */
sp_status pairs_from_file(const feature_file *a, const feature_file *b, const char *path, pair_list *list,
                          sp_error *err);

/*
 * Each picture with the `most` that are most alike: by the mean of their descriptors, less the mean
 * over all pictures.
 */
sp_status pairs_retrieval(feature_file *a, feature_file *b, size_t most, pair_list *list, sp_error *err);

void pairs_free(pair_list *list);

#endif
