/* NumPy's NPZ: a ZIP of NPY arrays, stored without compression, as numpy.savez writes it. */
#ifndef SP_COMMON_NPZ_H
#define SP_COMMON_NPZ_H

#include "common/buffer.h"
#include "superpoint.h"

#define NPZ_MAX_DIMENSIONS 4

typedef struct npz_array {
    const char *name;  /* the key, at most 64 characters */
    const char *dtype; /* "<f4", "<f2", "|u1" */
    size_t item_size;
    unsigned dimensions;
    size_t shape[NPZ_MAX_DIMENSIONS];
    const void *data; /* in rows, little-endian; may be NULL when there are no items */
} npz_array;

/*
 * Append an archive of `count` arrays. Fails with SP_ERR_LIMIT where a ZIP without extensions would
 * not hold it (4 GiB), or SP_ERR_MEMORY.
 */
sp_status npz_write(buffer *out, const npz_array *arrays, size_t count, sp_error *err);

/* NumPy's name of a dtype ("<f2") and ours ("float16"). */
const char *npz_dtype(sp_dtype dtype);
const char *npz_dtype_name(sp_dtype dtype);

/* The features as arrays keypoints [N,2], scores [N] and, where there are any, descriptors [N,256];
 * returns how many. `names` are the keys, three of them. N = 0 keeps its shape: [0,256]. */
size_t npz_features(const sp_features *features, bool descriptors, const char *const names[3], npz_array arrays[3]);

#endif
