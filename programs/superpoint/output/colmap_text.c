/*
 * COLMAP's text: NAME.txt for each picture, for its feature_importer. That reads descriptors of 128
 * numbers only, so the file holds the points with zeros for descriptors, and the matches have to come
 * from a list (`superpoint match --format colmap-text`), not from COLMAP's own matcher.
 */
#include <string.h>

#include "output/text.h"

enum { COLMAP_DIMENSIONS = 128 };

static sp_status create(const char *path, const char *identity, const camera_options *camera, writer **w,
                        sp_error *err) {
    (void)camera;
    return folder_create(path, identity, w, err);
}

static sp_status add(writer *w, const record *r, sp_error *err) {
    char zeros[2 * COLMAP_DIMENSIONS];
    for (int i = 0; i < COLMAP_DIMENSIONS; i++)
        memcpy(zeros + 2 * i, " 0", 2);
    buffer_format(&w->scratch, "%zu %d\n", r->count, COLMAP_DIMENSIONS);
    for (size_t i = 0; i < r->count; i++) {
        text_put_float(&w->scratch, r->keypoints[2 * i]);
        buffer_char(&w->scratch, ' ');
        text_put_float(&w->scratch, r->keypoints[2 * i + 1]);
        buffer_text(&w->scratch, " 1 0"); /* scale and orientation, which the network does not give */
        buffer_put(&w->scratch, zeros, sizeof zeros);
        buffer_char(&w->scratch, '\n');
    }
    return folder_put(w, r->name, ".txt", err);
}

const output_format output_colmap_text = {.name = "colmap-text",
                                          .suffixes = "",
                                          .folder = true,
                                          .coordinates = SP_COORDINATES_COLMAP,
                                          .about = "a folder with a NAME.txt for each picture, for COLMAP's import",
                                          .create = create,
                                          .add = add,
                                          .close = text_close,
                                          .abandon = text_abandon,
                                          .identity = folder_identity};
