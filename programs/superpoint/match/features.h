/* Feature files as sets of pictures: HDF5 in hloc's layout, ours or others', and COLMAP's database. */
#ifndef SUPERPOINT_MATCH_FEATURES_H
#define SUPERPOINT_MATCH_FEATURES_H

#include "superpoint.h"

/* One picture's features in memory. */
typedef struct features {
    size_t count;
    float *keypoints; /* [count][2], as they are in the file */
    sp_descriptors descriptors;
} features;

typedef struct feature_file feature_file;

/* Open and list the pictures, in the order of their names' bytes. Caches up to `memory` bytes. */
sp_status features_open(const char *path, size_t memory, feature_file **f, sp_error *err);
void features_close(feature_file *f);

size_t features_count(const feature_file *f);
const char *features_name(const feature_file *f, size_t index);

/* The picture of that name; false when there is none. */
bool features_find(const feature_file *f, const char *name, size_t *index);

/* What made the file, "" when it does not say. */
const char *features_identity(const feature_file *f);

/* Read one, or find it in the cache. It stays valid until two others have been asked for. */
sp_status features_get(feature_file *f, size_t index, const features **out, sp_error *err);

#endif
