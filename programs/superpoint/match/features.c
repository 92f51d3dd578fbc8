#include "match/features.h"

#include <hdf5.h>
#include <stdlib.h>
#include <string.h>

#include "common/fail.h"
#include "output/colmap.h"
#include "output/hdf5.h"

/* Most keypoints of one picture: sizes from the file are checked before they are multiplied. */
#define MAX_KEYPOINTS ((size_t)SP_MAX_MATCH_DESCRIPTORS)

typedef struct picture {
    char *name;
    int64_t id; /* in a database */
    features *loaded;
    uint64_t used; /* when last, by a counter */
} picture;

struct feature_file {
    char *path;
    char *identity;
    hid_t file;  /* HDF5, or invalid */
    sqlite3 *db; /* database, or NULL */
    picture *pictures;
    size_t count, room;
    size_t memory, held;
    uint64_t clock;
};

static sp_status no_memory(const feature_file *f, sp_error *err) {
    return fail(err, SP_ERR_MEMORY, "%.300s: out of memory", f->path);
}

static sp_status add_picture(feature_file *f, const char *name, int64_t id, sp_error *err) {
    if (f->count == f->room) {
        const size_t room = f->room ? 2 * f->room : 256;
        picture *more = realloc(f->pictures, room * sizeof *more);
        if (!more)
            return no_memory(f, err);
        f->pictures = more;
        f->room = room;
    }
    picture *p = &f->pictures[f->count];
    *p = (picture){.name = strdup(name), .id = id};
    if (!p->name)
        return no_memory(f, err);
    f->count++;
    return SP_OK;
}

static int by_name(const void *a, const void *b) {
    return strcmp(((const picture *)a)->name, ((const picture *)b)->name);
}

/* ------------------------------------------------------------------ HDF5 --------------------- */

typedef struct visit {
    feature_file *f;
    sp_status status;
    sp_error *err;
} visit;

/* A group with `keypoints` in it is a picture. */
static herr_t visit_link(hid_t root, const char *name, const H5L_info_t *info, void *context) {
    visit *v = context;
    (void)root;
    (void)info;
    const size_t length = strlen(name), suffix = sizeof "/keypoints" - 1;
    if (length <= suffix || strcmp(name + length - suffix, "/keypoints") != 0)
        return 0;
    char *group = strndup(name, length - suffix);
    v->status = group ? add_picture(v->f, group, 0, v->err) : no_memory(v->f, v->err);
    free(group);
    return v->status == SP_OK ? 0 : -1;
}

static sp_status open_hdf5(feature_file *f, sp_error *err) {
    hdf5_quiet();
    f->file = H5Fopen(f->path, H5F_ACC_RDONLY, H5P_DEFAULT);
    if (f->file < 0)
        return hdf5_fail(f->path, "cannot be read", err);
    f->identity = hdf5_get_text(f->file, "superpoint");
    visit v = {f, SP_OK, err};
    if (H5Lvisit(f->file, H5_INDEX_NAME, H5_ITER_INC, visit_link, &v) < 0 && v.status == SP_OK)
        return hdf5_fail(f->path, "cannot be listed", err);
    return v.status;
}

/* Open `name` in `group` as a matrix; false when it is none. */
static bool open_matrix(hid_t group, const char *name, hid_t *set, hsize_t shape[2]) {
    *set = H5Dopen2(group, name, H5P_DEFAULT);
    if (*set < 0)
        return false;
    hid_t space = H5Dget_space(*set);
    const bool ok = H5Sget_simple_extent_ndims(space) == 2 && H5Sget_simple_extent_dims(space, shape, NULL) == 2;
    H5Sclose(space);
    return ok;
}

static bool read_keypoints(hid_t group, features *out) {
    hid_t set;
    hsize_t shape[2] = {0};
    bool ok = open_matrix(group, "keypoints", &set, shape) && shape[1] == 2 && shape[0] <= MAX_KEYPOINTS;
    if (ok) {
        out->count = (size_t)shape[0];
        out->keypoints = malloc((out->count + 1) * 2 * sizeof(float));
        ok = out->keypoints &&
             (out->count == 0 || H5Dread(set, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, out->keypoints) >= 0);
    }
    if (set >= 0)
        H5Dclose(set);
    return ok;
}

/* [256][count] in the file; [count][256] here. */
static void transpose(const uint8_t *in, size_t count, size_t size, uint8_t *out) {
    enum { BLOCK = 32 };
    for (size_t i0 = 0; i0 < count; i0 += BLOCK)
        for (size_t k = 0; k < SP_DESCRIPTOR_DIM; k++)
            for (size_t i = i0; i < i0 + BLOCK && i < count; i++)
                memcpy(out + (i * SP_DESCRIPTOR_DIM + k) * size, in + (k * count + i) * size, size);
}

static bool read_descriptors(hid_t group, features *out) {
    hid_t set;
    hsize_t shape[2] = {0};
    bool ok = open_matrix(group, "descriptors", &set, shape) && shape[0] == SP_DESCRIPTOR_DIM && shape[1] == out->count;
    if (ok) {
        hid_t type = H5Dget_type(set), half = hdf5_half_type();
        const H5T_class_t class = H5Tget_class(type);
        const size_t stored = H5Tget_size(type);
        out->descriptors.dtype = class == H5T_INTEGER && stored == 1 ? SP_DTYPE_UINT8
                                 : class == H5T_FLOAT && stored == 2 ? SP_DTYPE_FLOAT16
                                                                     : SP_DTYPE_FLOAT32;
        const hid_t memory = out->descriptors.dtype == SP_DTYPE_UINT8     ? H5T_NATIVE_UCHAR
                             : out->descriptors.dtype == SP_DTYPE_FLOAT16 ? half
                                                                          : H5T_NATIVE_FLOAT;
        const size_t size = sp_dtype_size(out->descriptors.dtype), bytes = out->count * SP_DESCRIPTOR_DIM * size;
        uint8_t *columns = malloc(bytes + 1), *rows = malloc(bytes + 1);
        ok = columns && rows && (class == H5T_FLOAT || class == H5T_INTEGER) &&
             (out->count == 0 || H5Dread(set, memory, H5S_ALL, H5S_ALL, H5P_DEFAULT, columns) >= 0);
        if (ok)
            transpose(columns, out->count, size, rows);
        free(columns);
        out->descriptors.data = rows;
        out->descriptors.count = out->count;
        H5Tclose(half);
        H5Tclose(type);
    }
    if (set >= 0)
        H5Dclose(set);
    return ok;
}

static bool load_hdf5(feature_file *f, const picture *p, features *out) {
    hid_t group = H5Gopen2(f->file, p->name, H5P_DEFAULT);
    const bool ok = group >= 0 && read_keypoints(group, out) && read_descriptors(group, out);
    if (group >= 0)
        H5Gclose(group);
    return ok;
}

/* ------------------------------------------------------------------ COLMAP's database ---------- */

static sp_status open_colmap(feature_file *f, sp_error *err) {
    sqlite3_stmt *s = NULL;
    if (sqlite3_open_v2(f->path, &f->db, SQLITE_OPEN_READONLY, NULL) != SQLITE_OK ||
        sqlite3_prepare_v2(f->db, "SELECT image_id, name FROM images", -1, &s, NULL) != SQLITE_OK)
        return colmap_fail(f->db, f->path, err);
    f->identity = colmap_get_text(f->db, "identity");
    sp_status status = SP_OK;
    int code = SQLITE_DONE;
    while (status == SP_OK && (code = sqlite3_step(s)) == SQLITE_ROW)
        status = add_picture(f, (const char *)sqlite3_column_text(s, 1), sqlite3_column_int64(s, 0), err);
    if (status == SP_OK && code != SQLITE_DONE)
        status = colmap_fail(f->db, f->path, err);
    sqlite3_finalize(s);
    return status;
}

/* A row of rows, cols and data; the caller frees the copy. */
static bool read_blob(sqlite3 *db, const char *sql, int64_t id, int64_t *rows, int64_t *cols, size_t item,
                      void **data) {
    sqlite3_stmt *s = NULL;
    bool ok = sqlite3_prepare_v2(db, sql, -1, &s, NULL) == SQLITE_OK;
    if (ok) {
        sqlite3_bind_int64(s, 1, id);
        ok = sqlite3_step(s) == SQLITE_ROW;
    }
    if (ok) {
        *rows = sqlite3_column_int64(s, 0);
        *cols = sqlite3_column_int64(s, 1);
        const size_t bytes = (size_t)sqlite3_column_bytes(s, 2);
        ok = *rows >= 0 && *rows <= (int64_t)MAX_KEYPOINTS && *cols > 0 && *cols <= SP_DESCRIPTOR_DIM &&
             bytes == (size_t)*rows * (size_t)*cols * item && (*data = malloc(bytes + 1)) != NULL;
        if (ok && bytes)
            memcpy(*data, sqlite3_column_blob(s, 2), bytes);
    }
    sqlite3_finalize(s);
    return ok;
}

static bool load_colmap(feature_file *f, const picture *p, features *out) {
    int64_t rows, cols, described;
    void *data = NULL;
    if (!read_blob(f->db, "SELECT rows, cols, data FROM keypoints WHERE image_id = ?1", p->id, &rows, &cols, 4, &data))
        return false;
    out->keypoints = data;
    out->count = (size_t)rows;
    for (size_t i = 0; i < out->count; i++) /* further columns are scale and orientation, or a shape */
        memmove(out->keypoints + 2 * i, out->keypoints + (size_t)cols * i, 2 * sizeof(float));
    data = NULL;
    if (!read_blob(f->db, "SELECT rows, cols, data FROM descriptors WHERE image_id = ?1", p->id, &described, &cols, 1,
                   &data))
        return false;
    out->descriptors = (sp_descriptors){data, out->count, SP_DTYPE_UINT8};
    return described == rows && cols == SP_DESCRIPTOR_DIM;
}

/* ------------------------------------------------------------------ both ---------------------- */

static void unload(feature_file *f, picture *p) {
    if (!p->loaded)
        return;
    f->held -= p->loaded->count * (8 + SP_DESCRIPTOR_DIM * sp_dtype_size(p->loaded->descriptors.dtype));
    free(p->loaded->keypoints);
    free((void *)p->loaded->descriptors.data);
    free(p->loaded);
    p->loaded = NULL;
}

/* Let the longest unused go until the rest fits; the last two asked for stay. */
static void evict(feature_file *f) {
    while (f->held > f->memory) {
        picture *oldest = NULL;
        for (size_t i = 0; i < f->count; i++)
            if (f->pictures[i].loaded && (!oldest || f->pictures[i].used < oldest->used))
                oldest = &f->pictures[i];
        if (!oldest || oldest->used + 2 > f->clock)
            return;
        unload(f, oldest);
    }
}

sp_status features_get(feature_file *f, size_t index, const features **out, sp_error *err) {
    picture *p = &f->pictures[index];
    p->used = ++f->clock;
    if (!p->loaded) {
        p->loaded = calloc(1, sizeof *p->loaded);
        if (!p->loaded)
            return no_memory(f, err);
        const bool ok = f->db ? load_colmap(f, p, p->loaded) : load_hdf5(f, p, p->loaded);
        f->held += p->loaded->count * (8 + SP_DESCRIPTOR_DIM * sp_dtype_size(p->loaded->descriptors.dtype));
        if (!ok) {
            unload(f, p);
            return fail(err, SP_ERR_IO, "%.200s: %.200s: has no keypoints [N,2] with descriptors [256,N]", f->path,
                        p->name);
        }
        evict(f);
    }
    *out = p->loaded;
    return SP_OK;
}

static bool is_database(const char *path) {
    char magic[16] = {0};
    FILE *file = fopen(path, "rbe");
    if (!file)
        return false;
    const bool ok = fread(magic, 1, sizeof magic, file) == sizeof magic && memcmp(magic, "SQLite format 3", 16) == 0;
    fclose(file);
    return ok;
}

sp_status features_open(const char *path, size_t memory, feature_file **out, sp_error *err) {
    feature_file *f = calloc(1, sizeof *f);
    *out = NULL;
    if (!f || !(f->path = strdup(path))) {
        free(f);
        return fail(err, SP_ERR_MEMORY, "%.300s: out of memory", path);
    }
    f->file = H5I_INVALID_HID;
    f->memory = memory;
    sp_status status = is_database(path) ? open_colmap(f, err) : open_hdf5(f, err);
    if (status == SP_OK && f->count == 0)
        status = fail(err, SP_ERR_NOT_FOUND, "%.300s: holds no pictures", path);
    if (status != SP_OK) {
        features_close(f);
        return status;
    }
    qsort(f->pictures, f->count, sizeof *f->pictures, by_name);
    *out = f;
    return SP_OK;
}

void features_close(feature_file *f) {
    if (!f)
        return;
    for (size_t i = 0; i < f->count; i++) {
        unload(f, &f->pictures[i]);
        free(f->pictures[i].name);
    }
    free(f->pictures);
    if (f->file >= 0)
        H5Fclose(f->file);
    sqlite3_close(f->db);
    free(f->identity);
    free(f->path);
    free(f);
}

size_t features_count(const feature_file *f) {
    return f->count;
}

const char *features_name(const feature_file *f, size_t index) {
    return f->pictures[index].name;
}

bool features_find(const feature_file *f, const char *name, size_t *index) {
    while (*name == '/')
        name++;
    const picture key = {.name = (char *)name};
    const picture *p = bsearch(&key, f->pictures, f->count, sizeof key, by_name);
    if (p)
        *index = (size_t)(p - f->pictures);
    return p != NULL;
}

const char *features_identity(const feature_file *f) {
    return f->identity ? f->identity : "";
}
