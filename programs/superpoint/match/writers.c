#include "match/writers.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/fail.h"
#include "extract/place.h"
#include "output/colmap.h"
#include "output/hdf5.h"

/* HDF5 and text are written beside their place and moved there; a database is changed in one
 * transaction. */
struct match_writer {
    char *path, part[PATH_MAX];
    hid_t file, data_list, half; /* HDF5 */
    FILE *text;
    sqlite3 *db;
    sqlite3_stmt *find, *insert, *insert_geometry;
};

static sp_status begin(const char *path, match_writer **out, sp_error *err) {
    match_writer *w = calloc(1, sizeof *w);
    *out = NULL;
    if (!w || !(w->path = strdup(path))) {
        free(w);
        return fail(err, SP_ERR_MEMORY, "%.300s: out of memory", path);
    }
    w->file = w->data_list = w->half = H5I_INVALID_HID;
    if ((size_t)snprintf(w->part, sizeof w->part, "%s.%ld.part", path, (long)getpid()) >= sizeof w->part) {
        free(w->path);
        free(w);
        return fail(err, SP_ERR_ARGUMENT, "%.300s: the path is too long", path);
    }
    *out = w;
    return SP_OK;
}

static void release(match_writer *w) {
    free(w->path);
    free(w);
}

/* ------------------------------------------------------------------ hloc's HDF5 --------------- */

static sp_status hdf5_create(const char *path, const char *identity, bool geometries, match_writer **out,
                             sp_error *err) {
    match_writer *w;
    (void)geometries;
    sp_status status = begin(path, &w, err);
    if (status != SP_OK)
        return status;
    hdf5_quiet();
    w->data_list = hdf5_data_list();
    w->half = hdf5_half_type();
    w->file = hdf5_create_file(w->part);
    if (w->file < 0 || hdf5_put_text(w->file, "superpoint", identity) != SP_OK) {
        status = hdf5_fail(path, "cannot be made", err);
        match_hdf5.abandon(w);
        return status;
    }
    *out = w;
    return SP_OK;
}

/* hloc: a group for each pair, NAME0/NAME1 with "/" in the names turned to "-". */
static sp_status pair_group(match_writer *w, const pair_matches *p, hid_t *group, sp_error *err) {
    const size_t length = strlen(p->names[0]) + strlen(p->names[1]) + 2;
    char *name = malloc(length);
    if (!name)
        return fail(err, SP_ERR_MEMORY, "%.300s: out of memory", w->path);
    snprintf(name, length, "%s|%s", p->names[0], p->names[1]);
    for (char *c = name; (c = strchr(c, '/')) != NULL;)
        *c = '-';
    name[strlen(p->names[0])] = '/';
    *group = hdf5_create_group(w->file, name);
    sp_status status = *group < 0 ? hdf5_fail(w->path, name, err) : SP_OK;
    free(name);
    return status;
}

static bool put_vector(match_writer *w, hid_t group, const char *name, hid_t stored, hid_t memory, size_t count,
                       const void *data) {
    const hsize_t shape = count;
    hid_t space = H5Screate_simple(1, &shape, NULL);
    hid_t set = H5Dcreate2(group, name, stored, space, H5P_DEFAULT, w->data_list, H5P_DEFAULT);
    bool ok = set >= 0 && (count == 0 || H5Dwrite(set, memory, H5S_ALL, H5S_ALL, H5P_DEFAULT, data) >= 0);
    ok = (set < 0 || H5Dclose(set) >= 0) && ok;
    H5Sclose(space);
    return ok;
}

/* matches0: for each keypoint of the first its partner, or -1. hloc writes int16; where that does
 * not reach, int32. matching_scores0: (1 + similarity) / 2, as hloc's nearest-neighbour matcher has it. */
static sp_status hdf5_add(match_writer *w, const pair_matches *p, sp_error *err) {
    hid_t group = H5I_INVALID_HID;
    int32_t *partners = malloc((p->counts[0] + 1) * sizeof *partners);
    float *scores = calloc(p->counts[0] + 1, sizeof *scores);
    sp_status status =
        partners && scores ? pair_group(w, p, &group, err) : fail(err, SP_ERR_MEMORY, "%.300s: out of memory", w->path);
    if (status == SP_OK) {
        for (size_t i = 0; i < p->counts[0]; i++)
            partners[i] = -1;
        for (size_t i = 0; i < p->matches->count; i++) {
            partners[p->matches->pairs[2 * i]] = (int32_t)p->matches->pairs[2 * i + 1];
            scores[p->matches->pairs[2 * i]] = (1 + p->matches->similarities[i]) / 2;
        }
        const hid_t stored = p->counts[1] > INT16_MAX ? H5T_STD_I32LE : H5T_STD_I16LE;
        bool ok = put_vector(w, group, "matches0", stored, H5T_NATIVE_INT32, p->counts[0], partners);
        ok = ok && put_vector(w, group, "matching_scores0", w->half, H5T_NATIVE_FLOAT, p->counts[0], scores);
        ok = H5Gclose(group) >= 0 && ok;
        status = ok ? SP_OK : hdf5_fail(w->path, p->names[0], err);
    }
    free(partners);
    free(scores);
    return status;
}

static sp_status hdf5_end(match_writer *w) {
    if (w->half >= 0)
        H5Tclose(w->half);
    if (w->data_list >= 0)
        H5Pclose(w->data_list);
    return w->file >= 0 && H5Fclose(w->file) < 0 ? SP_ERR_IO : SP_OK;
}

static sp_status hdf5_close(match_writer *w, sp_error *err) {
    sp_status status =
        hdf5_end(w) == SP_OK ? place_move(w->part, w->path, err) : hdf5_fail(w->path, "cannot be written", err);
    if (status != SP_OK)
        place_remove(w->part);
    release(w);
    return status;
}

static void hdf5_abandon(match_writer *w) {
    hdf5_end(w);
    place_remove(w->part);
    release(w);
}

const match_format match_hdf5 = {"hdf5", ".h5 .hdf5", hdf5_create, hdf5_add, hdf5_close, hdf5_abandon};

/* ------------------------------------------------------------------ COLMAP's text ------------- */

static sp_status text_create(const char *path, const char *identity, bool geometries, match_writer **out,
                             sp_error *err) {
    match_writer *w;
    (void)identity; /* the format has no comments */
    (void)geometries;
    sp_status status = begin(path, &w, err);
    if (status != SP_OK)
        return status;
    w->text = fopen(w->part, "we");
    if (!w->text) {
        status = fail(err, SP_ERR_IO, "%.300s: %s", path, strerror(errno));
        release(w);
        return status;
    }
    *out = w;
    return SP_OK;
}

static sp_status text_add(match_writer *w, const pair_matches *p, sp_error *err) {
    fprintf(w->text, "%s %s\n", p->names[0], p->names[1]);
    for (size_t i = 0; i < p->matches->count; i++)
        fprintf(w->text, "%u %u\n", p->matches->pairs[2 * i], p->matches->pairs[2 * i + 1]);
    fputc('\n', w->text);
    return ferror(w->text) ? fail(err, SP_ERR_IO, "%.300s: %s", w->path, strerror(errno)) : SP_OK;
}

static sp_status text_close(match_writer *w, sp_error *err) {
    sp_status status = fclose(w->text) == 0 ? place_move(w->part, w->path, err)
                                            : fail(err, SP_ERR_IO, "%.300s: %s", w->path, strerror(errno));
    if (status != SP_OK)
        place_remove(w->part);
    release(w);
    return status;
}

static void text_abandon(match_writer *w) {
    fclose(w->text);
    place_remove(w->part);
    release(w);
}

const match_format match_text = {"colmap-text", ".txt", text_create, text_add, text_close, text_abandon};

/* ------------------------------------------------------------------ COLMAP's database --------- */

static void colmap_abandon(match_writer *w) {
    sqlite3_finalize(w->find);
    sqlite3_finalize(w->insert);
    sqlite3_finalize(w->insert_geometry);
    sqlite3_close(w->db); /* rolls back */
    release(w);
}

static sp_status colmap_prepare(match_writer *w, const char *identity, bool geometries, sp_error *err) {
    sqlite3_stmt *note = NULL;
    if (sqlite3_open_v2(w->path, &w->db, SQLITE_OPEN_READWRITE, NULL) != SQLITE_OK)
        return fail(err, SP_ERR_NOT_FOUND, "%.250s: %.150s; make it with superpoint extract --format colmap", w->path,
                    sqlite3_errmsg(w->db));
    sp_status status = colmap_run(w->db, w->path,
                                  "BEGIN IMMEDIATE; CREATE TABLE IF NOT EXISTS superpoint (key TEXT PRIMARY KEY NOT "
                                  "NULL, value TEXT NOT NULL);",
                                  err);
    if (status != SP_OK)
        return status;
    if (sqlite3_prepare_v2(w->db, "SELECT image_id, rows FROM images NATURAL JOIN keypoints WHERE name = ?1", -1,
                           &w->find, NULL) != SQLITE_OK ||
        sqlite3_prepare_v2(w->db, "INSERT OR REPLACE INTO matches (pair_id, rows, cols, data) VALUES (?1, ?2, 2, ?3)",
                           -1, &w->insert, NULL) != SQLITE_OK ||
        (geometries && sqlite3_prepare_v2(w->db,
                                          "INSERT OR REPLACE INTO two_view_geometries (pair_id, rows, cols, data, "
                                          "config) VALUES (?1, ?2, 2, ?3, 2)",
                                          -1, &w->insert_geometry, NULL) != SQLITE_OK) ||
        sqlite3_prepare_v2(w->db, "INSERT OR REPLACE INTO superpoint VALUES ('matching', ?1)", -1, &note, NULL) !=
            SQLITE_OK)
        return colmap_fail(w->db, w->path, err);
    sqlite3_bind_text(note, 1, identity, -1, SQLITE_STATIC);
    if (sqlite3_step(note) != SQLITE_DONE)
        status = colmap_fail(w->db, w->path, err);
    sqlite3_finalize(note);
    return status;
}

static sp_status colmap_create(const char *path, const char *identity, bool geometries, match_writer **out,
                               sp_error *err) {
    match_writer *w;
    sp_status status = begin(path, &w, err);
    if (status != SP_OK)
        return status;
    status = colmap_prepare(w, identity, geometries, err);
    if (status == SP_OK)
        *out = w;
    else
        colmap_abandon(w);
    return status;
}

static sp_status image_id(match_writer *w, const char *name, size_t keypoints, int64_t *id, sp_error *err) {
    sqlite3_reset(w->find);
    sqlite3_bind_text(w->find, 1, name, -1, SQLITE_STATIC);
    if (sqlite3_step(w->find) != SQLITE_ROW)
        return fail(err, SP_ERR_NOT_FOUND, "%.200s: has no picture %.200s", w->path, name);
    *id = sqlite3_column_int64(w->find, 0);
    const int64_t rows = sqlite3_column_int64(w->find, 1);
    if (*id < 1 || *id >= COLMAP_MAX_IMAGE)
        return fail(err, SP_ERR_IO, "%.200s: %.200s: its number is not one of COLMAP's", w->path, name);
    return rows == (int64_t)keypoints
               ? SP_OK
               : fail(err, SP_ERR_ARGUMENT, "%.150s: %.150s: has %lld keypoints there and %zu in the features", w->path,
                      name, (long long)rows, keypoints);
}

static sp_status insert(match_writer *w, sqlite3_stmt *s, int64_t id, const pair_matches *p, const uint32_t *pairs,
                        sp_error *err) {
    sqlite3_reset(s);
    sqlite3_bind_int64(s, 1, id);
    sqlite3_bind_int64(s, 2, (int64_t)p->matches->count);
    sqlite3_bind_blob(s, 3, pairs, (int)(p->matches->count * 8), SQLITE_STATIC);
    return sqlite3_step(s) == SQLITE_DONE ? SP_OK : colmap_fail(w->db, w->path, err);
}

static sp_status colmap_add(match_writer *w, const pair_matches *p, sp_error *err) {
    int64_t ids[2];
    if (strcmp(p->names[0], p->names[1]) == 0)
        return fail(err, SP_ERR_ARGUMENT, "%.300s: a picture cannot be paired with itself", p->names[0]);
    for (int i = 0; i < 2; i++) {
        sp_status status = image_id(w, p->names[i], p->counts[i], &ids[i], err);
        if (status != SP_OK)
            return status;
    }
    const bool swap = ids[0] > ids[1];
    uint32_t *pairs = malloc((p->matches->count + 1) * 2 * sizeof *pairs);
    if (!pairs)
        return fail(err, SP_ERR_MEMORY, "%.300s: out of memory", w->path);
    for (size_t i = 0; i < 2 * p->matches->count; i++)
        pairs[i] = p->matches->pairs[swap ? i ^ 1 : i];
    const int64_t id = swap ? ids[1] * COLMAP_MAX_IMAGE + ids[0] : ids[0] * COLMAP_MAX_IMAGE + ids[1];
    sp_status status = insert(w, w->insert, id, p, pairs, err);
    if (status == SP_OK && w->insert_geometry)
        status = insert(w, w->insert_geometry, id, p, pairs, err);
    free(pairs);
    return status;
}

static sp_status colmap_close(match_writer *w, sp_error *err) {
    sqlite3_reset(w->find);
    sqlite3_reset(w->insert);
    sqlite3_reset(w->insert_geometry);
    sp_status status = colmap_run(w->db, w->path, "COMMIT", err);
    colmap_abandon(w);
    return status;
}

const match_format match_colmap = {"colmap", ".db", colmap_create, colmap_add, colmap_close, colmap_abandon};

/* ------------------------------------------------------------------ by name ------------------- */

sp_status match_format_find(const char *name, const char *path, const match_format **format, sp_error *err) {
    static const match_format *const all[] = {&match_hdf5, &match_colmap, &match_text};
    const char *dot = strrchr(path, '.');
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        const char *found = dot ? strstr(all[i]->suffixes, dot) : NULL;
        const bool suffix = found && (found[strlen(dot)] == ' ' || found[strlen(dot)] == '\0');
        if (name ? strcmp(name, all[i]->name) == 0 : suffix) {
            *format = all[i];
            return SP_OK;
        }
    }
    return fail(err, SP_ERR_ARGUMENT, "%.200s: %s; there are hdf5 (.h5), colmap (.db) and colmap-text (.txt)",
                name ? name : path, name ? "is no format" : "its name does not say what format it is to have");
}
