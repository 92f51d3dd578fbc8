/* Sets of picture pairs on disk, in the layout of HPatches (train/pairs.py makes such sets too). */
#ifndef SUPERPOINT_EVAL_SET_H
#define SUPERPOINT_EVAL_SET_H

#include "superpoint.h"

enum {
    EVAL_MAX_SCENES = 100000, /* folders of one set */
    EVAL_MAX_PICTURES = 999   /* of one scene */
};

/* A folder with 1.png (or .ppm, .pgm, .jpg), 2.png ... and H_1_2 ..., which map picture 1 to picture k. */
typedef struct eval_scene {
    char *name; /* "v_graf" */
    char *path;
} eval_scene;

typedef struct eval_set {
    eval_scene *scenes; /* by name */
    size_t count;
} eval_set;

/* All folders below `path` that hold a picture 1. */
sp_status eval_set_open(const char *path, eval_set *set, sp_error *err);
void eval_set_free(eval_set *set);

/* Path of a scene's picture k; SP_ERR_NOT_FOUND when there is none. */
sp_status eval_scene_picture(const eval_scene *scene, int k, char *path, size_t size, sp_error *err);

/* The homography from picture 1 to picture k; SP_ERR_NOT_FOUND when there is none. */
sp_status eval_scene_homography(const eval_scene *scene, int k, double h[9], sp_error *err);

#endif
