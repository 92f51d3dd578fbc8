/* What the writers of text and of folders share. */
#ifndef SUPERPOINT_OUTPUT_TEXT_H
#define SUPERPOINT_OUTPUT_TEXT_H

#include <stdio.h>

#include "common/buffer.h"
#include "output/output.h"

struct writer {
    char *path;
    FILE *file;     /* NULL for a folder */
    buffer scratch; /* one record's text */
    bool headed;    /* the heading that needs a record to be known has been written */
};

/* Begin a file, or a folder with the identity in its superpoint.json. */
sp_status text_create_file(const char *path, writer **w, sp_error *err);

/* The same with a first line already in it: `before`, the identity of what makes the file, `after`. */
sp_status text_create_headed(const char *path, const char *before, const char *identity, const char *after,
                             writer **out, sp_error *err);
sp_status folder_create(const char *path, const char *identity, writer **w, sp_error *err);

/* Write what is in `scratch` to the file, or to the new file `name` + `suffix` below the folder. */
sp_status text_flush(writer *w, sp_error *err);
sp_status folder_put(writer *w, const char *name, const char *suffix, sp_error *err);

sp_status text_close(writer *w, sp_error *err);
void text_abandon(writer *w);

/* A number in the fewest digits that read back the same, without a trailing ".0". */
void text_put_float(buffer *out, float value);

/* The first line of a text file, without its end; the caller frees it. NULL when there is none. */
char *text_first_line(const char *path);

/* The identity of a folder. */
sp_status folder_identity(const char *path, char **identity, sp_error *err);

#endif
