/*
 * CSV with the fields of OpenCV's KeyPoint: image,x,y,size,angle,response,octave,class_id and d0...d255.
 * The first line is a comment that says what made the file.
 */
#include <stdlib.h>
#include <string.h>

#include "common/fail.h"
#include "output/text.h"

static const char prefix[] = "# superpoint ";

static sp_status create(const char *path, const char *identity, const camera_options *camera, writer **out,
                        sp_error *err) {
    (void)camera;
    return text_create_headed(path, prefix, identity, "\n", out, err);
}

/* RFC 4180: in quotes when it holds a comma, a quote or a line's end. */
static void put_name(buffer *out, const char *name) {
    if (!name[strcspn(name, ",\"\r\n#")]) {
        buffer_text(out, name);
        return;
    }
    buffer_char(out, '"');
    for (; *name; name++) {
        if (*name == '"')
            buffer_char(out, '"');
        buffer_char(out, *name);
    }
    buffer_char(out, '"');
}

static void put_columns(buffer *out, bool descriptors) {
    buffer_text(out, "image,x,y,size,angle,response,octave,class_id");
    for (int k = 0; descriptors && k < SP_DESCRIPTOR_DIM; k++)
        buffer_format(out, ",d%d", k);
    buffer_char(out, '\n');
}

static sp_status add(writer *w, const record *r, sp_error *err) {
    buffer *out = &w->scratch;
    if (!w->headed)
        put_columns(out, r->described);
    w->headed = true;
    const float *descriptors = r->described ? r->descriptors : NULL;
    for (size_t i = 0; i < r->count; i++) {
        put_name(out, r->name);
        for (int c = 0; c < 2; c++) {
            buffer_char(out, ',');
            text_put_float(out, r->keypoints[2 * i + (size_t)c]);
        }
        buffer_text(out, ",8,-1,"); /* a cell across; no angle */
        text_put_float(out, r->scores[i]);
        buffer_text(out, ",0,-1");
        for (size_t k = 0; descriptors && k < SP_DESCRIPTOR_DIM; k++) {
            buffer_char(out, ',');
            text_put_float(out, descriptors[i * SP_DESCRIPTOR_DIM + k]);
        }
        buffer_char(out, '\n');
    }
    return text_flush(w, err);
}

static sp_status identity(const char *path, char **text, sp_error *err) {
    char *line = text_first_line(path);
    *text = line && strncmp(line, prefix, sizeof prefix - 1) == 0 ? strdup(line + sizeof prefix - 1) : NULL;
    free(line);
    return *text ? SP_OK : fail(err, SP_ERR_NOT_FOUND, "%.300s: is not a CSV file of this program", path);
}

const output_format output_csv = {.name = "csv",
                                  .suffixes = ".csv",
                                  .coordinates = SP_COORDINATES_CENTRE,
                                  .dtype = SP_DTYPE_FLOAT32,
                                  .fixed_dtype = true,
                                  .about = "a line for each keypoint, with the fields of OpenCV's KeyPoint (.csv)",
                                  .create = create,
                                  .add = add,
                                  .close = text_close,
                                  .abandon = text_abandon,
                                  .identity = identity};
