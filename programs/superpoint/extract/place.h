/* Moving finished files and folders to their place. */
#ifndef SUPERPOINT_EXTRACT_PLACE_H
#define SUPERPOINT_EXTRACT_PLACE_H

#include "superpoint.h"

/* Sync `from` to the disk and rename it to `to`, replacing what is there. */
sp_status place_move(const char *from, const char *to, sp_error *err);

/* Remove a file or a folder with all that is in it, if it is there. */
void place_remove(const char *path);

#endif
