#include <string.h>

#include "common/fail.h"
#include "output/output.h"

const output_format *const output_formats[] = {
    &output_hdf5, &output_npz, &output_colmap, &output_colmap_text, &output_jsonl, &output_csv, NULL};

static bool has_suffix(const char *path, const char *suffixes) {
    const char *dot = strrchr(path, '.');
    if (!dot || strchr(dot, '/'))
        return false;
    const size_t length = strlen(dot);
    for (const char *s = suffixes; *s; s += strspn(s, " ")) {
        const size_t n = strcspn(s, " ");
        if (n == length && strncmp(s, dot, n) == 0)
            return true;
        s += n;
    }
    return false;
}

sp_status output_find(const char *name, const char *path, const output_format **format, sp_error *err) {
    for (size_t i = 0; output_formats[i]; i++)
        if (name ? strcmp(name, output_formats[i]->name) == 0 : has_suffix(path, output_formats[i]->suffixes)) {
            *format = output_formats[i];
            return SP_OK;
        }
    if (name)
        return fail(err, SP_ERR_ARGUMENT,
                    "format: %.80s is not known; there are hdf5, npz, colmap, colmap-text, jsonl "
                    "and csv",
                    name);
    return fail(err, SP_ERR_ARGUMENT, "%.300s: its name does not say what format it is to have; say it with --format",
                path);
}
