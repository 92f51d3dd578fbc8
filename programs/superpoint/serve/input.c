#include "input.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/base64.h"
#include "common/fail.h"
#include "common/json.h"
#include "common/params.h"

sp_status input_parameter(job *j, const char *name, const char *value, sp_error *err) {
    if (!params_find(name)) {
        job_warn(j, "%.60s: unknown parameter, ignored", name);
        return SP_OK;
    }
    return params_set(&j->params, name, value, err);
}

sp_status input_base64(const char *what, uint8_t *text, size_t size, uint8_t **bytes, size_t *decoded, sp_error *err) {
    static const char mark[] = ";base64,";
    size_t position, skipped = 0;
    if (size >= 5 && strncasecmp((char *)text, "data:", 5) == 0) {
        uint8_t *comma = memchr(text, ',', size);
        size_t length = comma ? (size_t)(comma - text) + 1 : 0;
        if (length < sizeof mark - 1 || strncasecmp((char *)comma + 2 - sizeof mark, mark, sizeof mark - 1) != 0)
            return fail(err, SP_ERR_ARGUMENT, "%s: a data: address must hold \";base64,\"", what);
        skipped = length;
        text += length;
        size -= length;
    }
    if (!base64_decode(text, size, decoded, &position)) {
        if (position < size)
            return fail(err, SP_ERR_ARGUMENT, "%s: not base64: byte 0x%02x at offset %zu has no place there", what,
                        text[position], skipped + position);
        return fail(err, SP_ERR_ARGUMENT, "%s: not base64: a single letter is left over at the end", what);
    }
    if (*decoded == 0)
        return fail(err, SP_ERR_ARGUMENT, "%s: is empty", what);
    *bytes = text;
    return SP_OK;
}

/* ---- JSON -------------------------------------------------------------------------------------- */

/* A member of a known name; the last of several wins. */
typedef struct field {
    json_value value;
    bool given;
} field;

/* A value as the text that params_set reads. */
static sp_status parameter_text(const char *name, const json_value *value, bool boolean, char *text, size_t size,
                                sp_error *err) {
    const char *from = value->text;
    const size_t length = value->size;
    if (value->type == JSON_BOOLEAN && !boolean)
        return fail(err, SP_ERR_ARGUMENT, "%s: a boolean is not a number or a string", name);
    if (value->type != JSON_STRING && value->type != JSON_NUMBER && value->type != JSON_BOOLEAN)
        return fail(err, SP_ERR_ARGUMENT, "%s: %s is not allowed here", name, json_type_text(value->type));
    if (length >= size || memchr(from, 0, length))
        return fail(err, SP_ERR_ARGUMENT, "%s: \"%.40s…\" is not a value", name, length < 40 ? "" : from);
    memcpy(text, from, length);
    text[length] = '\0';
    /* A boolean may be the number 1.0 as well. */
    if (boolean && value->type == JSON_NUMBER && (strcmp(text, "1.0") == 0 || strcmp(text, "0.0") == 0))
        text[1] = '\0';
    return SP_OK;
}

/* [x, y, w, h] as text; a string is taken as it is. */
static sp_status rect_text(const json_value *value, char *text, size_t size, sp_error *err) {
    json_walk walk = json_begin(value);
    json_value item;
    size_t length = 0, items = 0;
    while (json_next_item(&walk, &item)) {
        char number[32];
        if (item.type != JSON_NUMBER || items++ == 4 || item.size >= sizeof number)
            return fail(err, SP_ERR_ARGUMENT, "roi: is not [x, y, width, height]");
        memcpy(number, item.text, item.size);
        number[item.size] = '\0';
        double whole = strtod(number, NULL);
        if (whole != trunc(whole) || fabs(whole) > INT32_MAX)
            return fail(err, SP_ERR_ARGUMENT, "roi: %s is not a whole number", number);
        length += (size_t)snprintf(text + length, size - length, "%s%.0f", items > 1 ? "," : "", whole);
    }
    return items == 4 ? SP_OK : fail(err, SP_ERR_ARGUMENT, "roi: is not [x, y, width, height]");
}

static sp_status set_parameter(job *j, const param_spec *spec, const json_value *value, sp_error *err) {
    char text[128];
    sp_status status;
    if (value->type == JSON_NULL && spec->kind == PARAM_RECT)
        return SP_OK;
    if (spec->kind == PARAM_RECT && value->type == JSON_ARRAY)
        status = rect_text(value, text, sizeof text, err);
    else
        status = parameter_text(spec->name, value, spec->kind == PARAM_BOOLEAN, text, sizeof text, err);
    return status == SP_OK ? params_set(&j->params, spec->name, text, err) : status;
}

static sp_status base64_field(const char *what, const json_value *value, uint8_t **bytes, size_t *size, sp_error *err) {
    if (value->type != JSON_STRING)
        return fail(err, SP_ERR_ARGUMENT, "%s: must be a base64 string, not %s", what, json_type_text(value->type));
    return input_base64(what, (uint8_t *)value->text, value->size, bytes, size, err);
}

static sp_status one_image(job *j, const json_value *value, sp_error *err) {
    if (!job_pictures(j, 1))
        return fail(err, SP_ERR_MEMORY, "out of memory");
    return base64_field("image", value, &j->pictures[0].bytes, &j->pictures[0].size, err);
}

static sp_status many_images(job *j, const json_value *value, const config_limits *limits, sp_error *err) {
    if (value->type != JSON_ARRAY)
        return fail(err, SP_ERR_ARGUMENT, "images: must be an array of base64 strings, not %s",
                    json_type_text(value->type));
    size_t count = 0, i = 0;
    json_walk walk = json_begin(value);
    json_value item;
    while (json_next_item(&walk, &item))
        count++;
    if (count == 0)
        return fail(err, SP_ERR_ARGUMENT, "images: is empty");
    if ((double)count > limits->max_batch)
        return fail(err, SP_ERR_LIMIT, "images: %zu pictures, max_batch is %.0f", count, limits->max_batch);
    if (!job_pictures(j, count))
        return fail(err, SP_ERR_MEMORY, "out of memory");
    j->batch = true;
    for (walk = json_begin(value); json_next_item(&walk, &item); i++) {
        char what[32];
        snprintf(what, sizeof what, "images[%zu]", i);
        sp_status status = base64_field(what, &item, &j->pictures[i].bytes, &j->pictures[i].size, err);
        if (status != SP_OK)
            return status;
    }
    return SP_OK;
}

static sp_status mask_from_bytes(job *j, const uint8_t *bytes, size_t size, const config_limits *limits,
                                 sp_error *err) {
    sp_params params = j->params;
    sp_error inner;
    params.max_pixels = (uint64_t)limits->max_pixels;
    params.exif = SP_EXIF_IGNORE;
    sp_image_free(&j->mask);
    sp_status status = sp_image_decode(bytes, size, &params, &j->mask, NULL, &inner);
    if (status != SP_OK)
        return fail(err, status, "mask: %.480s", inner.text);
    j->mask_given = true;
    return SP_OK;
}

enum { FIELD_IMAGE, FIELD_IMAGES, FIELD_MASK, FIELD_PARAMETERS, FIELDS = FIELD_PARAMETERS + 32 };

/* Index among the fields of a member's name, or FIELDS. */
static size_t field_of(const char *name, size_t size) {
    static const char *const own[] = {"image", "images", "mask"};
    size_t count;
    const param_spec *specs = params_specs(&count);
    for (size_t i = 0; i < FIELD_PARAMETERS; i++)
        if (strlen(own[i]) == size && memcmp(own[i], name, size) == 0)
            return i;
    for (size_t i = 0; i < count && FIELD_PARAMETERS + i < FIELDS; i++)
        if (strlen(specs[i].name) == size && memcmp(specs[i].name, name, size) == 0)
            return FIELD_PARAMETERS + i;
    return FIELDS;
}

static void collect_fields(job *j, const json_value *root, field fields[FIELDS]) {
    json_walk walk = json_begin(root);
    json_value key, value;
    while (json_next_member(&walk, &key, &value)) {
        const char *name = key.text;
        const size_t size = key.size;
        size_t i = field_of(name, size);
        if (i == FIELDS) {
            job_warn(j, "%.*s: unknown field, ignored", size < 60 ? (int)size : 60, name);
            continue;
        }
        if (fields[i].given)
            job_warn(j, "%.*s: given twice, the last one is used", (int)size, name);
        fields[i] = (field){value, true};
    }
}

static sp_status take_fields(job *j, const json_value *root, const config_limits *limits, sp_error *err) {
    field fields[FIELDS] = {0};
    size_t count;
    const param_spec *specs = params_specs(&count);
    sp_status status = SP_OK;
    collect_fields(j, root, fields);
    for (size_t i = 0; i < count && status == SP_OK; i++)
        if (fields[FIELD_PARAMETERS + i].given)
            status = set_parameter(j, &specs[i], &fields[FIELD_PARAMETERS + i].value, err);
    if (status != SP_OK)
        return status;
    if (fields[FIELD_IMAGE].given && fields[FIELD_IMAGES].given)
        return fail(err, SP_ERR_ARGUMENT, "image, images: only one of them can be given");
    if (!fields[FIELD_IMAGE].given && !fields[FIELD_IMAGES].given)
        return fail(err, SP_ERR_ARGUMENT, "image: is missing");
    status = fields[FIELD_IMAGES].given ? many_images(j, &fields[FIELD_IMAGES].value, limits, err)
                                        : one_image(j, &fields[FIELD_IMAGE].value, err);
    if (status == SP_OK && fields[FIELD_MASK].given && fields[FIELD_MASK].value.type != JSON_NULL) {
        uint8_t *bytes;
        size_t size;
        status = base64_field("mask", &fields[FIELD_MASK].value, &bytes, &size, err);
        if (status == SP_OK)
            status = mask_from_bytes(j, bytes, size, limits, err);
    }
    return status;
}

sp_status input_object(job *j, size_t size, input_taker *take, const config_limits *limits, sp_error *err) {
    json_document document;
    const json_limits json = {(unsigned)limits->max_json_depth, (unsigned)limits->max_json_values};
    sp_status status = json_parse(&document, (char *)j->body.data, size, &json, err);
    if (status != SP_OK)
        return status;
    const json_value *root = document.values;
    if (root->type == JSON_OBJECT)
        status = take(j, root, limits, err);
    else
        status = fail(err, SP_ERR_ARGUMENT, "body: must be a JSON object, not %s", json_type_text(root->type));
    json_free(&document);
    return status;
}

sp_status input_json(job *j, const config_limits *limits, sp_error *err) {
    return input_object(j, j->body.size, take_fields, limits, err);
}

/* ---- other bodies ------------------------------------------------------------------------------ */

static sp_status input_raw(job *j, sp_error *err) {
    if (j->body.size == 0)
        return fail(err, SP_ERR_ARGUMENT, "body: is empty");
    if (!job_pictures(j, 1))
        return fail(err, SP_ERR_MEMORY, "out of memory");
    j->pictures[0].bytes = j->body.data;
    j->pictures[0].size = j->body.size;
    return SP_OK;
}

/* The first byte that is not white space, or 0. */
static uint8_t first_letter(const buffer *body) {
    for (size_t i = 0; i < body->size; i++)
        if (!strchr(" \t\r\n", body->data[i]) || !body->data[i])
            return body->data[i];
    return 0;
}

sp_status input_read(job *j, const config_limits *limits, sp_error *err) {
    sp_image_info info;
    if (j->kind != BODY_RAW && j->body.size == 0)
        return fail(err, SP_ERR_ARGUMENT, "body: is empty");
    switch (j->kind) {
    case BODY_RAW:
        return input_raw(j, err);
    case BODY_MULTIPART:
        return input_multipart(j, limits, err);
    case BODY_KSERVE:
        return input_kserve(j, limits, err);
    case BODY_GUESS:
        if (sp_image_probe(j->body.data, j->body.size, &info, NULL) == SP_OK)
            return input_raw(j, err);
        if (!memchr("{[\"", first_letter(&j->body), 3)) {
            j->status = 415;
            return fail(err, SP_ERR_ARGUMENT,
                        "body: neither JSON nor a picture (JPEG, PNG, WebP, GIF, BMP and PPM are read)");
        }
        return input_json(j, limits, err);
    default:
        return input_json(j, limits, err);
    }
}

/* Whether the frame that the parameters ask for is within the service's limit, before it is made. */
static sp_status check_frame(const char *what, const sp_params *p, uint32_t width, uint32_t height,
                             const config_limits *limits, sp_error *err) {
    double w = width, h = height;
    if (p->resize == SP_RESIZE_FIXED) {
        w = p->width;
        h = p->height;
    } else if (p->resize == SP_RESIZE_MAX) {
        double scale = (double)p->width / (w > h ? w : h);
        w *= scale;
        h *= scale;
    }
    if (w * h > limits->max_frame_pixels)
        return fail(err, SP_ERR_LIMIT,
                    "%sa frame of %.0f x %.0f pixels is over max_frame_pixels, %.0f; resize=max:N makes it smaller",
                    what, w, h, limits->max_frame_pixels);
    return SP_OK;
}

static void note_picture(job *j, const char *what, const sp_image_info *info) {
    if (info->multiple)
        job_warn(j, "%sthe %s holds several pictures, the first is used", what, info->format);
    if (info->orientation != 1 && j->params.exif == SP_EXIF_IGNORE)
        job_warn(j, "%sEXIF orientation %d is ignored; exif=apply turns the picture", what, info->orientation);
}

static sp_status decode_one(job *j, picture *p, const char *what, const config_limits *limits, sp_error *err) {
    sp_error inner = {0};
    sp_status status;
    if (p->raw.pixels) {
        p->info = (sp_image_info){.width = p->raw.width, .height = p->raw.height, .orientation = 1};
        status = check_frame(what, &j->params, p->raw.width, p->raw.height, limits, err);
        if (status != SP_OK)
            return status;
        status = sp_frame_from_image(&p->raw, &j->params, &p->frame, &inner);
    } else {
        status = sp_image_probe(p->bytes, p->size, &p->info, &inner);
        if (status == SP_OK && check_frame(what, &j->params, p->info.width, p->info.height, limits, err) != SP_OK)
            return err->status;
        if (status == SP_OK)
            status = sp_frame_decode(p->bytes, p->size, &j->params, &p->frame, &p->info, &inner);
    }
    if (status == SP_OK && j->mask_given)
        status = sp_frame_set_mask(&p->frame, &j->mask, &inner);
    if (status != SP_OK)
        return fail(err, status, "%s%.480s", what, inner.text);
    note_picture(j, what, &p->info);
    return SP_OK;
}

sp_status input_decode(job *j, const config_limits *limits, sp_error *err) {
    j->params.max_pixels = (uint64_t)limits->max_pixels;
    for (size_t i = 0; i < j->count; i++) {
        char what[32] = "image: ";
        if (j->batch)
            snprintf(what, sizeof what, "images[%zu]: ", i);
        sp_status status = decode_one(j, &j->pictures[i], what, limits, err);
        if (status != SP_OK)
            return status;
    }
    return SP_OK;
}
