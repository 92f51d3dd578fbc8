/*
 * JSON lines: the first line says what made the file, each further line is a picture, with the fields
 * of the service's reply.
 */
#include <stdlib.h>
#include <string.h>

#include "common/base64.h"
#include "common/fail.h"
#include "common/jsonout.h"
#include "common/npz.h"
#include "output/text.h"

static const char prefix[] = "{\"superpoint\":";

static sp_status create(const char *path, const char *identity, const camera_options *camera, writer **out,
                        sp_error *err) {
    (void)camera;
    return text_create_headed(path, prefix, identity, "}\n", out, err);
}

static sp_status put_descriptors(buffer *out, const record *r, sp_error *err) {
    const npz_array array = {
        "descriptors", npz_dtype(r->dtype), sp_dtype_size(r->dtype), 2, {r->count, SP_DESCRIPTOR_DIM}, r->descriptors};
    buffer archive = {0};
    sp_status status = npz_write(&archive, &array, 1, err);
    if (status == SP_OK) {
        buffer_format(out,
                      ", \"descriptors\": {\"format\": \"npz\", \"key\": \"descriptors\", \"dtype\": \"%s\", "
                      "\"shape\": [%zu, %d], \"data\": \"",
                      npz_dtype_name(r->dtype), r->count, SP_DESCRIPTOR_DIM);
        base64_encode(out, archive.data, archive.size);
        buffer_text(out, "\"}");
    }
    buffer_free(&archive);
    return status;
}

static sp_status add(writer *w, const record *r, sp_error *err) {
    buffer *out = &w->scratch;
    buffer_text(out, "{\"image\": ");
    json_put_string(out, r->name);
    buffer_text(out, ", ");
    const sp_features features = {.count = r->count, .keypoints = (float *)r->keypoints, .scores = (float *)r->scores};
    json_put_points(out, &features);
    buffer_format(out,
                  ", \"original_size\": {\"height\": %u, \"width\": %u}, \"image_size\": {\"height\": %u, \"width\": "
                  "%u}, \"scale\": {\"x\": %.9g, \"y\": %.9g}",
                  r->height, r->width, r->frame_height, r->frame_width, r->scale_x, r->scale_y);
    sp_status status = r->described ? put_descriptors(out, r, err) : SP_OK;
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
