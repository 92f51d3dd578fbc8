/* What the readers and writers of COLMAP's database share. */
#ifndef SUPERPOINT_OUTPUT_COLMAP_H
#define SUPERPOINT_OUTPUT_COLMAP_H

#include <sqlite3.h>

#include "superpoint.h"

/* COLMAP numbers a pair of images, the smaller id first, as id1 * 2147483647 + id2. */
#define COLMAP_MAX_IMAGE 2147483647ll

/* Fill in err with SQLite's own reason. */
sp_status colmap_fail(sqlite3 *db, const char *path, sp_error *err);

/* Run statements without results. */
sp_status colmap_run(sqlite3 *db, const char *path, const char *sql, sp_error *err);

/* The value of `key` in the table `superpoint`, to be freed; NULL when there is none. */
char *colmap_get_text(sqlite3 *db, const char *key);

#endif
