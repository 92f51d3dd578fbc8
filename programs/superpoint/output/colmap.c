/*
 * COLMAP's database: cameras, images, keypoints and descriptors, and the empty tables for matches.
 *
 * The tables are those of COLMAP 3.x, which later versions extend when they open the file. Keypoints
 * have two columns; descriptors are uint8 of 256 columns, as sp_dtype has them, whatever the user
 * asked for, since COLMAP holds no other. The table `superpoint` says what made the file.
 */
#include "output/colmap.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/fail.h"
#include "output/output.h"

static const char schema[] =
    "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA user_version = 3800;"
    "CREATE TABLE cameras (camera_id INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL, model INTEGER NOT NULL,"
    " width INTEGER NOT NULL, height INTEGER NOT NULL, params BLOB, prior_focal_length INTEGER NOT NULL);"
    "CREATE TABLE images (image_id INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL, name TEXT NOT NULL UNIQUE,"
    " camera_id INTEGER NOT NULL, prior_qw REAL, prior_qx REAL, prior_qy REAL, prior_qz REAL,"
    " prior_tx REAL, prior_ty REAL, prior_tz REAL,"
    " CONSTRAINT image_id_check CHECK(image_id >= 0 and image_id < 2147483647),"
    " FOREIGN KEY(camera_id) REFERENCES cameras(camera_id));"
    "CREATE UNIQUE INDEX index_name ON images(name);"
    "CREATE TABLE keypoints (image_id INTEGER PRIMARY KEY NOT NULL, rows INTEGER NOT NULL, cols INTEGER NOT NULL,"
    " data BLOB, FOREIGN KEY(image_id) REFERENCES images(image_id) ON DELETE CASCADE);"
    "CREATE TABLE descriptors (image_id INTEGER PRIMARY KEY NOT NULL, rows INTEGER NOT NULL,"
    " cols INTEGER NOT NULL, data BLOB, FOREIGN KEY(image_id) REFERENCES images(image_id) ON DELETE CASCADE);"
    "CREATE TABLE matches (pair_id INTEGER PRIMARY KEY NOT NULL, rows INTEGER NOT NULL, cols INTEGER NOT NULL,"
    " data BLOB);"
    "CREATE TABLE two_view_geometries (pair_id INTEGER PRIMARY KEY NOT NULL, rows INTEGER NOT NULL,"
    " cols INTEGER NOT NULL, data BLOB, config INTEGER NOT NULL, F BLOB, E BLOB, H BLOB, qvec BLOB, tvec BLOB);"
    "CREATE TABLE superpoint (key TEXT PRIMARY KEY NOT NULL, value TEXT NOT NULL);"
    "BEGIN;";

enum { INSERT_CAMERA, INSERT_IMAGE, INSERT_KEYPOINTS, INSERT_DESCRIPTORS, INSERT_TEXT, STATEMENTS };

static const char *const inserts[STATEMENTS] = {
    [INSERT_CAMERA] = "INSERT INTO cameras VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
    [INSERT_IMAGE] = "INSERT INTO images (image_id, name, camera_id) VALUES (?1, ?2, ?3)",
    [INSERT_KEYPOINTS] = "INSERT INTO keypoints VALUES (?1, ?2, 2, ?3)",
    [INSERT_DESCRIPTORS] = "INSERT INTO descriptors VALUES (?1, ?2, 256, ?3)",
    [INSERT_TEXT] = "INSERT INTO superpoint VALUES (?1, ?2)",
};

typedef struct shared_camera {
    char *folder;
    uint32_t width, height;
} shared_camera;

struct writer {
    char *path;
    sqlite3 *db;
    sqlite3_stmt *statements[STATEMENTS];
    camera_options camera;
    shared_camera *cameras; /* number i has the camera_id i + 1 */
    size_t count, room;
    int64_t images;
};

sp_status colmap_fail(sqlite3 *db, const char *path, sp_error *err) {
    return fail(err, SP_ERR_IO, "%.250s: %.200s", path, db ? sqlite3_errmsg(db) : "out of memory");
}

sp_status colmap_run(sqlite3 *db, const char *path, const char *sql, sp_error *err) {
    return sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK ? SP_OK : colmap_fail(db, path, err);
}

char *colmap_get_text(sqlite3 *db, const char *key) {
    sqlite3_stmt *s = NULL;
    char *copy = NULL;
    if (sqlite3_prepare_v2(db, "SELECT value FROM superpoint WHERE key = ?1", -1, &s, NULL) == SQLITE_OK) {
        sqlite3_bind_text(s, 1, key, -1, SQLITE_STATIC);
        if (sqlite3_step(s) == SQLITE_ROW && sqlite3_column_type(s, 0) == SQLITE_TEXT)
            copy = strdup((const char *)sqlite3_column_text(s, 0));
    }
    sqlite3_finalize(s);
    return copy;
}

/* ------------------------------------------------------------------ cameras ------------------ */

static const struct {
    const char *name;
    unsigned params, focals; /* parameters in all; how many of the first are focal lengths */
} models[] = {{"SIMPLE_PINHOLE", 3, 1}, {"PINHOLE", 4, 2}, {"SIMPLE_RADIAL", 4, 1}, {"RADIAL", 5, 1}, {"OPENCV", 8, 2}};

enum { MODELS = sizeof models / sizeof models[0], SIMPLE_RADIAL = 2 };

sp_status camera_parse(camera_options *camera, const char *text, sp_error *err) {
    const size_t length = strcspn(text, ",");
    int model = 0;
    while (model < MODELS && (strlen(models[model].name) != length || strncmp(text, models[model].name, length) != 0))
        model++;
    if (model == MODELS)
        return fail(err, SP_ERR_ARGUMENT,
                    "camera: %.60s is not known; there are SIMPLE_PINHOLE, PINHOLE, SIMPLE_RADIAL, RADIAL and OPENCV",
                    text);
    camera->model = model;
    camera->given = 0;
    for (const char *p = text + length; *p;) {
        char *end;
        const double value = strtod(++p, &end);
        if (end == p || (*end && *end != ',') || !isfinite(value) || camera->given == models[model].params)
            return fail(err, SP_ERR_ARGUMENT, "camera: %.60s: %s takes %u numbers, separated by commas", text,
                        models[model].name, models[model].params);
        camera->params[camera->given++] = value;
        p = end;
    }
    if (camera->given != 0 && camera->given != models[model].params)
        return fail(err, SP_ERR_ARGUMENT, "camera: %.60s: %s takes %u numbers, separated by commas", text,
                    models[model].name, models[model].params);
    return SP_OK;
}

/* Without better knowledge, as COLMAP does: a focal length of 1.2 times the longer side, the centre in
 * the middle, no distortion. */
static void guess(const camera_options *camera, uint32_t width, uint32_t height, double *params) {
    const unsigned focals = models[camera->model].focals;
    memset(params, 0, CAMERA_MAX_PARAMS * sizeof *params);
    for (unsigned i = 0; i < focals; i++)
        params[i] = 1.2 * (width > height ? width : height);
    params[focals] = width / 2.0;
    params[focals + 1] = height / 2.0;
}

static sp_status step(writer *w, int statement, sp_error *err) {
    sqlite3_stmt *s = w->statements[statement];
    const bool ok = sqlite3_step(s) == SQLITE_DONE;
    sp_status status = ok ? SP_OK : colmap_fail(w->db, w->path, err);
    sqlite3_reset(s);
    sqlite3_clear_bindings(s);
    return status;
}

static sp_status put_camera(writer *w, const record *r, sp_error *err) {
    double params[CAMERA_MAX_PARAMS];
    if (w->camera.given)
        memcpy(params, w->camera.params, sizeof params);
    else
        guess(&w->camera, r->width, r->height, params);
    sqlite3_stmt *s = w->statements[INSERT_CAMERA];
    sqlite3_bind_int64(s, 1, (int64_t)w->count);
    sqlite3_bind_int(s, 2, w->camera.model);
    sqlite3_bind_int64(s, 3, r->width);
    sqlite3_bind_int64(s, 4, r->height);
    sqlite3_bind_blob(s, 5, params, (int)(models[w->camera.model].params * sizeof *params), SQLITE_STATIC);
    sqlite3_bind_int(s, 6, w->camera.given != 0);
    return step(w, INSERT_CAMERA, err);
}

static bool shares(const writer *w, const shared_camera *c, const record *r) {
    const char *slash = strrchr(r->name, '/');
    const size_t length = slash ? (size_t)(slash - r->name) : 0;
    return w->camera.sharing == CAMERA_SINGLE ||
           (w->camera.sharing == CAMERA_FOLDER && c->width == r->width && c->height == r->height &&
            strlen(c->folder) == length && strncmp(c->folder, r->name, length) == 0);
}

static sp_status camera_of(writer *w, const record *r, size_t *id, sp_error *err) {
    for (size_t i = w->count; i-- > 0;)
        if (shares(w, &w->cameras[i], r)) {
            if (w->cameras[i].width != r->width || w->cameras[i].height != r->height)
                return fail(err, SP_ERR_ARGUMENT,
                            "%.200s: is of %ux%u, but a single camera was asked for and others are of %ux%u", r->name,
                            r->width, r->height, w->cameras[i].width, w->cameras[i].height);
            *id = i + 1;
            return SP_OK;
        }
    if (w->count == w->room) {
        const size_t room = w->room ? 2 * w->room : 16;
        shared_camera *more = realloc(w->cameras, room * sizeof *more);
        if (!more)
            return fail(err, SP_ERR_MEMORY, "%.200s: out of memory", w->path);
        w->cameras = more;
        w->room = room;
    }
    const char *slash = strrchr(r->name, '/');
    shared_camera *c = &w->cameras[w->count];
    *c = (shared_camera){strndup(r->name, slash ? (size_t)(slash - r->name) : 0), r->width, r->height};
    if (!c->folder)
        return fail(err, SP_ERR_MEMORY, "%.200s: out of memory", w->path);
    *id = ++w->count;
    return put_camera(w, r, err);
}

/* ------------------------------------------------------------------ the writer --------------- */

static void release(writer *w) {
    for (int i = 0; i < STATEMENTS; i++)
        sqlite3_finalize(w->statements[i]);
    sqlite3_close(w->db);
    for (size_t i = 0; i < w->count; i++)
        free(w->cameras[i].folder);
    free(w->cameras);
    free(w->path);
    free(w);
}

static sp_status prepare(writer *w, const char *identity, sp_error *err) {
    if (sqlite3_open_v2(w->path, &w->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, NULL) != SQLITE_OK)
        return colmap_fail(w->db, w->path, err);
    sp_status status = colmap_run(w->db, w->path, schema, err);
    for (int i = 0; status == SP_OK && i < STATEMENTS; i++)
        if (sqlite3_prepare_v2(w->db, inserts[i], -1, &w->statements[i], NULL) != SQLITE_OK)
            status = colmap_fail(w->db, w->path, err);
    if (status != SP_OK)
        return status;
    sqlite3_bind_text(w->statements[INSERT_TEXT], 1, "identity", -1, SQLITE_STATIC);
    sqlite3_bind_text(w->statements[INSERT_TEXT], 2, identity, -1, SQLITE_STATIC);
    return step(w, INSERT_TEXT, err);
}

static sp_status create(const char *path, const char *identity, const camera_options *camera, writer **out,
                        sp_error *err) {
    writer *w = calloc(1, sizeof *w);
    if (!w || !(w->path = strdup(path))) {
        free(w);
        return fail(err, SP_ERR_MEMORY, "%.300s: out of memory", path);
    }
    w->camera = *camera;
    remove(path);
    sp_status status = prepare(w, identity, err);
    if (status == SP_OK)
        *out = w;
    else
        release(w);
    return status;
}

static sp_status add(writer *w, const record *r, sp_error *err) {
    size_t camera = 0;
    if (r->count > INT32_MAX / SP_DESCRIPTOR_DIM)
        return fail(err, SP_ERR_LIMIT, "%.200s: too many keypoints for a database", r->name);
    sp_status status = camera_of(w, r, &camera, err);
    if (status != SP_OK)
        return status;
    const int64_t id = ++w->images;
    sqlite3_stmt *s = w->statements[INSERT_IMAGE];
    sqlite3_bind_int64(s, 1, id);
    sqlite3_bind_text(s, 2, r->name, -1, SQLITE_STATIC);
    sqlite3_bind_int64(s, 3, (int64_t)camera);
    status = step(w, INSERT_IMAGE, err);
    if (status == SP_OK) {
        s = w->statements[INSERT_KEYPOINTS];
        sqlite3_bind_int64(s, 1, id);
        sqlite3_bind_int64(s, 2, (int64_t)r->count);
        sqlite3_bind_blob(s, 3, r->count ? (const void *)r->keypoints : "", (int)(r->count * 8), SQLITE_STATIC);
        status = step(w, INSERT_KEYPOINTS, err);
    }
    if (status == SP_OK && r->described) {
        s = w->statements[INSERT_DESCRIPTORS];
        sqlite3_bind_int64(s, 1, id);
        sqlite3_bind_int64(s, 2, (int64_t)r->count);
        sqlite3_bind_blob(s, 3, r->count ? r->descriptors : "", (int)(r->count * SP_DESCRIPTOR_DIM), SQLITE_STATIC);
        status = step(w, INSERT_DESCRIPTORS, err);
    }
    return status;
}

static sp_status close_file(writer *w, sp_error *err) {
    sp_status status = colmap_run(w->db, w->path, "COMMIT", err);
    release(w);
    return status;
}

static sp_status identity(const char *path, char **text, sp_error *err) {
    sqlite3 *db = NULL;
    *text = NULL;
    if (sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL) == SQLITE_OK)
        *text = colmap_get_text(db, "identity");
    sqlite3_close(db);
    return *text ? SP_OK : fail(err, SP_ERR_NOT_FOUND, "%.300s: is not a database of this program", path);
}

const output_format output_colmap = {.name = "colmap",
                                     .suffixes = ".db",
                                     .coordinates = SP_COORDINATES_COLMAP,
                                     .dtype = SP_DTYPE_UINT8,
                                     .fixed_dtype = true,
                                     .about = "COLMAP's database (.db); descriptors as uint8",
                                     .create = create,
                                     .add = add,
                                     .close = close_file,
                                     .abandon = release,
                                     .identity = identity};
