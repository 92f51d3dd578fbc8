/*
 * Feature files: one interface, one file a format.
 *
 * A writer takes records in the order of the list of pictures and gives the same bytes for the same
 * records. It writes to a path of its own; the caller moves the whole to its place.
 */
#ifndef SUPERPOINT_OUTPUT_OUTPUT_H
#define SUPERPOINT_OUTPUT_OUTPUT_H

#include "output/record.h"

/* Cameras for COLMAP: which pictures share one, and what is known of it. */
typedef enum camera_sharing {
    CAMERA_FOLDER, /* pictures of one folder and size */
    CAMERA_SINGLE, /* all pictures, which have to be of one size */
    CAMERA_IMAGE   /* none */
} camera_sharing;

enum { CAMERA_MAX_PARAMS = 8 };

typedef struct camera_options {
    camera_sharing sharing;
    int model; /* COLMAP's number: 0 SIMPLE_PINHOLE ... 4 OPENCV */
    double params[CAMERA_MAX_PARAMS];
    unsigned given; /* how many of them the user gave; 0: a guess is written */
} camera_options;

/* Parse "PINHOLE" or "PINHOLE,525,525,320,240". */
sp_status camera_parse(camera_options *camera, const char *text, sp_error *err);

typedef struct writer writer;

typedef struct output_format {
    const char *name;           /* for --format */
    const char *suffixes;       /* file names that mean it, separated by blanks; "" when none does */
    bool folder;                /* writes a folder, not a file */
    sp_coordinates coordinates; /* what its readers expect */
    sp_dtype dtype;             /* of descriptors unless the user says otherwise */
    bool fixed_dtype;           /* and it holds no other */
    const char *about;          /* one line of help */

    /* `identity` is JSON that says what made the features; kept in the file. */
    sp_status (*create)(const char *path, const char *identity, const camera_options *camera, writer **w,
                        sp_error *err);
    sp_status (*add)(writer *w, const record *r, sp_error *err);
    /* Finish the file. Frees `w` in any case. */
    sp_status (*close)(writer *w, sp_error *err);
    void (*abandon)(writer *w);

    /* The identity that a finished file holds; the caller frees it. SP_ERR_NOT_FOUND: not one of ours. */
    sp_status (*identity)(const char *path, char **identity, sp_error *err);
} output_format;

extern const output_format output_hdf5, output_npz, output_colmap, output_colmap_text, output_jsonl, output_csv;

/* All of them, ended by NULL. */
extern const output_format *const output_formats[];

/* By --format's name (NULL: by the path's suffix). */
sp_status output_find(const char *name, const char *path, const output_format **format, sp_error *err);

/* Bytes of one descriptor. */
static inline size_t record_descriptor_size(const record *r) {
    return SP_DESCRIPTOR_DIM * sp_dtype_size(r->dtype);
}

#endif
