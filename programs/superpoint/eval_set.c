#include "eval_set.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/fail.h"
#include "common/input.h"

enum { MAX_HOMOGRAPHY_BYTES = 4096 };

static int by_name(const void *p, const void *q) {
    return strcmp(((const eval_scene *)p)->name, ((const eval_scene *)q)->name);
}

static char *join(const char *folder, const char *name) {
    const size_t size = strlen(folder) + strlen(name) + 2;
    char *path = malloc(size);
    if (path)
        snprintf(path, size, "%s/%s", folder, name);
    return path;
}

static sp_status add(eval_set *set, const char *folder, const char *name, size_t *room, sp_error *err) {
    if (set->count == EVAL_MAX_SCENES)
        return fail(err, SP_ERR_LIMIT, "%s: more than %d scenes", folder, EVAL_MAX_SCENES);
    if (set->count == *room) {
        const size_t more = *room ? 2 * *room : 64;
        eval_scene *grown = realloc(set->scenes, more * sizeof *grown);
        if (!grown)
            return fail(err, SP_ERR_MEMORY, "%s: out of memory", folder);
        set->scenes = grown;
        *room = more;
    }
    eval_scene scene = {strdup(name), join(folder, name)};
    if (!scene.name || !scene.path) {
        free(scene.name);
        free(scene.path);
        return fail(err, SP_ERR_MEMORY, "%s: out of memory", folder);
    }
    char picture[PATH_MAX];
    if (eval_scene_picture(&scene, 1, picture, sizeof picture, NULL) == SP_OK)
        set->scenes[set->count++] = scene;
    else {
        free(scene.name);
        free(scene.path);
    }
    return SP_OK;
}

sp_status eval_set_open(const char *path, eval_set *set, sp_error *err) {
    *set = (eval_set){0};
    DIR *folder = opendir(path);
    if (!folder)
        return fail(err, SP_ERR_IO, "%s: %s", path, strerror(errno));
    size_t room = 0;
    sp_status status = SP_OK;
    const struct dirent *entry;
    while (status == SP_OK && (entry = readdir(folder)))
        if (entry->d_name[0] != '.')
            status = add(set, path, entry->d_name, &room, err);
    closedir(folder);
    if (status == SP_OK && set->count == 0)
        status = fail(err, SP_ERR_NOT_FOUND, "%s: holds no scene (a folder with 1.png, 2.png and H_1_2)", path);
    if (status != SP_OK)
        eval_set_free(set);
    else
        qsort(set->scenes, set->count, sizeof *set->scenes, by_name);
    return status;
}

void eval_set_free(eval_set *set) {
    for (size_t i = 0; i < set->count; i++) {
        free(set->scenes[i].name);
        free(set->scenes[i].path);
    }
    free(set->scenes);
    *set = (eval_set){0};
}

sp_status eval_scene_picture(const eval_scene *scene, int k, char *path, size_t size, sp_error *err) {
    static const char *const kinds[] = {"png", "ppm", "pgm", "jpg"};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if ((size_t)snprintf(path, size, "%s/%d.%s", scene->path, k, kinds[i]) < size && access(path, R_OK) == 0)
            return SP_OK;
    return fail(err, SP_ERR_NOT_FOUND, "%s: has no picture %d (png, ppm, pgm or jpg)", scene->path, k);
}

sp_status eval_scene_homography(const eval_scene *scene, int k, double h[9], sp_error *err) {
    char path[PATH_MAX], text[MAX_HOMOGRAPHY_BYTES + 1];
    void *bytes = NULL;
    size_t size = 0;
    if ((size_t)snprintf(path, sizeof path, "%s/H_1_%d", scene->path, k) >= sizeof path || access(path, R_OK) != 0)
        return fail(err, SP_ERR_NOT_FOUND, "%s: has no H_1_%d", scene->path, k);
    const sp_status status = sp_input_read(path, MAX_HOMOGRAPHY_BYTES, &bytes, &size, err);
    if (status != SP_OK)
        return status;
    memcpy(text, bytes, size);
    text[size] = '\0';
    free(bytes);
    const char *at = text;
    for (int i = 0; i < 9; i++) {
        char *end;
        h[i] = strtod(at, &end);
        if (end == at || !isfinite(h[i]))
            return fail(err, SP_ERR_IO, "%s: number %d of 9 is missing or not finite", path, i + 1);
        at = end;
    }
    return SP_OK;
}
