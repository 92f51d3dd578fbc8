/*
 * JSON lines: the first line says what made the file, each further line is a picture, with the fields
 * of the service's reply.
 */
#include <stdlib.h>
#include <string.h>

#include "common/fail.h"
#include "common/jsonfeatures.h"
#include "common/jsonout.h"
#include "output/text.h"

static const char prefix[] = "{\"superpoint\":";

static sp_status create(const char *path, const char *identity, const camera_options *camera, writer **out,
                        sp_error *err) {
    (void)camera;
    return text_create_headed(path, prefix, identity, "}\n", out, err);
}

static sp_status add(writer *w, const record *r, sp_error *err) {
    buffer *out = &w->scratch;
    buffer_text(out, "{\"image\": ");
    json_put_string(out, r->name);
    buffer_text(out, ", ");
    const sp_features features = {.count = r->count, .keypoints = (float *)r->keypoints, .scores = (float *)r->scores};
    json_put_points(out, &features);
    const json_sizes sizes = {r->width, r->height, r->frame_width, r->frame_height, r->scale_x, r->scale_y};
    buffer_text(out, ", ");
    json_put_sizes(out, &sizes);
    sp_status status = SP_OK;
    if (r->described) {
        buffer_text(out, ", ");
        status = json_put_descriptors(out, r->dtype, r->count, r->descriptors, err);
    }
    buffer_text(out, "}\n");
    return status == SP_OK ? text_flush(w, err) : status;
}

static sp_status identity(const char *path, char **text, sp_error *err) {
    char *line = text_first_line(path);
    const size_t length = line ? strlen(line) : 0;
    *text = NULL;
    if (length > sizeof prefix && strncmp(line, prefix, sizeof prefix - 1) == 0 && line[length - 1] == '}')
        *text = strndup(line + sizeof prefix - 1, length - sizeof prefix);
    free(line);
    return *text ? SP_OK : fail(err, SP_ERR_NOT_FOUND, "%.300s: is not a JSON lines file of this program", path);
}

const output_format output_jsonl = {.name = "jsonl",
                                    .suffixes = ".jsonl .ndjson",
                                    .coordinates = SP_COORDINATES_CORNER,
                                    .about =
                                        "JSON lines, a picture a line with the fields of the service's reply (.jsonl)",
                                    .create = create,
                                    .add = add,
                                    .close = text_close,
                                    .abandon = text_abandon,
                                    .identity = identity};
