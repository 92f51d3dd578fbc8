#include "common/params.h"

#include <ctype.h>
#include <float.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/fail.h"
#include "common/number.h"

static const char *const channels[] = {"red", "luma", NULL};
static const char *const exifs[] = {"ignore", "apply", NULL};
static const char *const rules[] = {"single", "hf", NULL};
static const char *const origins[] = {"corner", "centre", "colmap", NULL};
static const char *const dtypes[] = {"float16", "float32", "uint8", NULL};

enum {
    MAX_KEYPOINTS,
    KEYPOINT_THRESHOLD,
    NMS_RADIUS,
    RETURN_DESCRIPTORS,
    DESCRIPTOR_DTYPE,
    RESIZE,
    CHANNEL,
    EXIF,
    NMS,
    BORDER,
    ROI,
    COORDINATES,
    SUBPIXEL
};

static const param_spec specs[] = {
    [MAX_KEYPOINTS] = {"max_keypoints", PARAM_INTEGER, "N", "the best N points; -1 for all above the threshold", -1,
                       INT_MAX, NULL},
    [KEYPOINT_THRESHOLD] = {"keypoint_threshold", PARAM_NUMBER, "T", "keep points whose score is above T", -HUGE_VAL,
                            HUGE_VAL, NULL},
    [NMS_RADIUS] = {"nms_radius", PARAM_INTEGER, "R", "no other point within R pixels of the frame; 0 for none", 0,
                    SP_MAX_NMS_RADIUS, NULL},
    [RETURN_DESCRIPTORS] = {"return_descriptors", PARAM_BOOLEAN, "[true|false]", "compute descriptors", 0, 1, NULL},
    [DESCRIPTOR_DTYPE] = {"descriptor_dtype", PARAM_CHOICE, "float16|float32|uint8", "type of descriptor values", 0, 2,
                          dtypes},
    [RESIZE] = {"resize", PARAM_SIZE, "native|max:N|WxH",
                "size of the network's frame: the picture's own, longer side N, or W x H (multiples of 8)", 0, 0, NULL},
    [CHANNEL] = {"channel", PARAM_CHOICE, "red|luma", "what the network sees of a colour picture", 0, 1, channels},
    [EXIF] = {"exif", PARAM_CHOICE, "ignore|apply", "turn the picture as its EXIF orientation says", 0, 1, exifs},
    [NMS] = {"nms", PARAM_CHOICE, "single|hf", "suppression in one pass, or by the rule of transformers", 0, 1, rules},
    [BORDER] = {"border", PARAM_INTEGER, "N", "drop points within N pixels of a side of the frame", 0, SP_MAX_BORDER,
                NULL},
    [ROI] = {"roi", PARAM_RECT, "X,Y,W,H", "points only inside this rectangle of the original picture", 0, INT_MAX,
             NULL},
    [COORDINATES] = {"coordinates", PARAM_CHOICE, "corner|centre|colmap",
                     "origin: as the published package, pixel centres at integers, or at halves", 0, 2, origins},
    [SUBPIXEL] = {"subpixel", PARAM_BOOLEAN, "[true|false]", "points between the pixels, where the scores peak", 0, 1,
                  NULL},
};
#define COUNT (sizeof specs / sizeof specs[0])

const param_spec *params_specs(size_t *count) {
    *count = COUNT;
    return specs;
}

static bool same_name(const char *name, const char *given) {
    for (; *name && *given; name++, given++)
        if (*name != (*given == '-' ? '_' : *given))
            return false;
    return *name == *given;
}

const param_spec *params_find(const char *name) {
    for (size_t i = 0; i < COUNT; i++)
        if (same_name(specs[i].name, name))
            return &specs[i];
    return NULL;
}

bool params_boolean(const char *text, bool *value) {
    static const char *const words[] = {"false", "true", "no", "yes", "off", "on", "0", "1"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (strcasecmp(text, words[i]) == 0) {
            *value = i & 1;
            return true;
        }
    return false;
}

/* Decimal digits from *text on, at most INT_MAX; *text is moved behind them. */
static bool parse_digits(const char **text, int32_t *value) {
    int64_t n = 0;
    const char *p = *text;
    for (; isdigit((unsigned char)*p); p++) {
        n = n * 10 + (*p - '0');
        if (n > INT_MAX)
            return false;
    }
    if (p == *text)
        return false;
    *text = p;
    *value = (int32_t)n;
    return true;
}

static bool parse_size(const char *text, sp_params *params) {
    int32_t width = 0, height = 0;
    if (strcmp(text, "native") == 0) {
        params->resize = SP_RESIZE_NATIVE;
        return true;
    }
    bool longer = strncmp(text, "max:", 4) == 0;
    if (longer)
        text += 4;
    if (!parse_digits(&text, &width))
        return false;
    if (!longer && (*text++ != 'x' || !parse_digits(&text, &height)))
        return false;
    if (*text)
        return false;
    params->resize = longer ? SP_RESIZE_MAX : SP_RESIZE_FIXED;
    params->width = (uint32_t)width;
    params->height = (uint32_t)height;
    return true;
}

static bool parse_rect(const char *text, sp_rect *rect) {
    int32_t values[4];
    for (int i = 0; i < 4; i++) {
        bool negative = *text == '-';
        text += negative;
        if (!parse_digits(&text, &values[i]) || *text != (i < 3 ? ',' : '\0'))
            return false;
        text += i < 3;
        if (negative)
            values[i] = -values[i];
    }
    *rect = (sp_rect){values[0], values[1], values[2], values[3]};
    return true;
}

static sp_status set_integer(const param_spec *spec, const char *text, int32_t *field, sp_error *err) {
    int64_t value;
    sp_status status = number_whole(spec->name, text, (int64_t)spec->minimum, (int64_t)spec->maximum, &value, err);
    if (status == SP_OK)
        *field = (int32_t)value;
    return status;
}

static sp_status set_threshold(const param_spec *spec, const char *text, float *field, sp_error *err) {
    double value;
    if (!number_parse(text, &value) || fabs(value) > FLT_MAX)
        return fail(err, SP_ERR_ARGUMENT, "%s: \"%.40s\" is not a finite number", spec->name, text);
    *field = (float)value;
    return SP_OK;
}

static sp_status set_boolean(const param_spec *spec, const char *text, bool *field, sp_error *err) {
    if (!params_boolean(text, field))
        return fail(err, SP_ERR_ARGUMENT, "%s: \"%.40s\" is not true or false", spec->name, text);
    return SP_OK;
}

static sp_status set_choice(sp_params *p, const param_spec *spec, const char *text, sp_error *err) {
    unsigned i = 0;
    while (spec->choices[i] && strcmp(text, spec->choices[i]) != 0)
        i++;
    if (!spec->choices[i])
        return fail(err, SP_ERR_ARGUMENT, "%s: \"%.40s\" is not one of %s", spec->name, text, spec->value);
    switch (spec - specs) {
    case DESCRIPTOR_DTYPE:
        p->descriptor_dtype = (sp_dtype)i;
        break;
    case CHANNEL:
        p->channel = (sp_channel)i;
        break;
    case EXIF:
        p->exif = (sp_exif)i;
        break;
    case NMS:
        p->nms = (sp_nms)i;
        break;
    default:
        p->coordinates = (sp_coordinates)i;
    }
    return SP_OK;
}

static sp_status set_field(sp_params *p, const param_spec *spec, const char *text, sp_error *err) {
    switch (spec - specs) {
    case MAX_KEYPOINTS:
        return set_integer(spec, text, &p->max_keypoints, err);
    case KEYPOINT_THRESHOLD:
        return set_threshold(spec, text, &p->keypoint_threshold, err);
    case NMS_RADIUS:
        return set_integer(spec, text, &p->nms_radius, err);
    case BORDER:
        return set_integer(spec, text, &p->border, err);
    case RETURN_DESCRIPTORS:
        return set_boolean(spec, text, &p->descriptors, err);
    case SUBPIXEL:
        return set_boolean(spec, text, &p->subpixel, err);
    case RESIZE:
        if (!parse_size(text, p))
            return fail(err, SP_ERR_ARGUMENT, "%s: \"%.40s\" is not native, max:N or WxH", spec->name, text);
        return SP_OK;
    case ROI:
        if (!parse_rect(text, &p->roi))
            return fail(err, SP_ERR_ARGUMENT, "%s: \"%.60s\" is not x,y,w,h", spec->name, text);
        return SP_OK;
    default:
        return set_choice(p, spec, text, err);
    }
}

sp_status params_set(sp_params *params, const char *name, const char *value, sp_error *err) {
    const param_spec *spec = params_find(name);
    if (!spec)
        return fail(err, SP_ERR_NOT_FOUND, "%.60s: there is no such parameter", name);
    sp_params changed = *params;
    sp_status status = set_field(&changed, spec, value, err);
    if (status == SP_OK)
        status = sp_params_check(&changed, err);
    if (status == SP_OK)
        *params = changed;
    return status;
}

/* The fewest digits that read back as the same float. */
static void float_text(float value, char *text, size_t size) {
    for (int digits = 1; digits <= 9; digits++) {
        snprintf(text, size, "%.*g", digits, (double)value);
        if (strtof(text, NULL) == value)
            return;
    }
}

static void size_text(const sp_params *p, char *text, size_t size) {
    if (p->resize == SP_RESIZE_NATIVE)
        snprintf(text, size, "native");
    else if (p->resize == SP_RESIZE_MAX)
        snprintf(text, size, "max:%u", p->width);
    else
        snprintf(text, size, "%ux%u", p->width, p->height);
}

static unsigned choice_of(const sp_params *p, const param_spec *spec) {
    switch (spec - specs) {
    case DESCRIPTOR_DTYPE:
        return p->descriptor_dtype;
    case CHANNEL:
        return p->channel;
    case EXIF:
        return p->exif;
    case NMS:
        return p->nms;
    default:
        return p->coordinates;
    }
}

void params_text(const sp_params *p, const param_spec *spec, char *text, size_t size) {
    switch (spec - specs) {
    case MAX_KEYPOINTS:
        snprintf(text, size, "%d", p->max_keypoints);
        break;
    case NMS_RADIUS:
        snprintf(text, size, "%d", p->nms_radius);
        break;
    case BORDER:
        snprintf(text, size, "%d", p->border);
        break;
    case KEYPOINT_THRESHOLD:
        float_text(p->keypoint_threshold, text, size);
        break;
    case RETURN_DESCRIPTORS:
        snprintf(text, size, "%s", p->descriptors ? "true" : "false");
        break;
    case SUBPIXEL:
        snprintf(text, size, "%s", p->subpixel ? "true" : "false");
        break;
    case RESIZE:
        size_text(p, text, size);
        break;
    case ROI:
        snprintf(text, size, "%d,%d,%d,%d", p->roi.x, p->roi.y, p->roi.width, p->roi.height);
        break;
    default:
        snprintf(text, size, "%s", spec->choices[choice_of(p, spec)]);
    }
}
