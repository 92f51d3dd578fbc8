#include "model/ranges.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"

static const char suffix[] = ".safetensors";

static bool ranges_path(const char *weights_path, char *out, size_t size) {
    const size_t length = strlen(weights_path), end = sizeof suffix - 1;
    if (length <= end || strcmp(weights_path + length - end, suffix) != 0)
        return false;
    const int n = snprintf(out, size, "%.*s.ranges", (int)(length - end), weights_path);
    return n > 0 && (size_t)n < size;
}

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

/* A positive decimal number: digits, perhaps a point and an exponent. Not strtof, which reads what the
 * caller's locale calls a number. NULL where there is none; else the text behind it. */
static char *read_number(char *at, float *out) {
    double value = 0;
    int exponent = 0, point = 0, digits = 0, power = 0, used = 0;
    while (*at == ' ' || *at == '\n')
        at++;
    for (; digits < 30 && (is_digit(*at) || (*at == '.' && !point)); at++) {
        if (*at == '.') {
            point = 1;
            continue;
        }
        value = value * 10 + (*at - '0');
        exponent -= point;
        digits++;
    }
    if (*at == 'e' && sscanf(at, "e%3d%n", &power, &used) == 1)
        at += used;
    *out = (float)(value * pow(10, exponent + power));
    return digits && isfinite(*out) && *out > 0 && (*at == ' ' || *at == '\n' || !*at) ? at : NULL;
}

/* "layer I COUNT" and its numbers; *at moves behind them. False where the text says something else. */
static bool read_layer(char **at, int layer, float *values) {
    const uint32_t count = sp_network[layer].out;
    int named = -1, told = -1, used = 0;
    if (sscanf(*at, " layer %d %d%n", &named, &told, &used) != 2 || named != layer || told != (int)count)
        return false;
    *at += used;
    for (uint32_t i = 0; i < count; i++) {
        *at = read_number(*at, &values[i]);
        if (!*at)
            return false;
    }
    return true;
}

static sp_status parse(char *text, const char *path, const char *sha256, float *values, sp_weights *weights,
                       sp_error *err) {
    char digest[65] = "";
    int used = 0;
    if (sscanf(text, "superpoint ranges 1 sha256 %64[0-9a-f]%n", digest, &used) != 1)
        return sp_fail(err, SP_ERR_WEIGHTS_DATA, "%s: does not begin with `superpoint ranges 1` and a digest", path);
    if (strcmp(digest, sha256) != 0)
        return SP_OK;
    char *at = text + used;
    float *next = values;
    for (int layer = 0; layer < SP_RANGED_LAYERS; layer++) {
        if (!read_layer(&at, layer, next))
            return sp_fail(err, SP_ERR_WEIGHTS_DATA, "%s: ranges of layer %d are broken", path, layer);
        next += sp_network[layer].out;
    }
    next = values;
    for (int layer = 0; layer < SP_RANGED_LAYERS; next += sp_network[layer++].out)
        weights->range[layer] = next;
    return SP_OK;
}

sp_status sp_ranges_load(const char *weights_path, const char *sha256, float values[SP_RANGES], sp_weights *weights,
                         sp_error *err) {
    char path[4096];
    void *bytes = NULL;
    size_t size = 0;
    if (!ranges_path(weights_path, path, sizeof path) || access(path, R_OK) != 0)
        return SP_OK;
    sp_status status = sp_file_read(path, SP_MAX_RANGES_BYTES, &bytes, &size, err);
    if (status != SP_OK)
        return status;
    char *text = malloc(size + 1);
    if (!text)
        status = sp_fail_memory(err, path, size + 1);
    else {
        memcpy(text, bytes, size);
        text[size] = '\0';
        status = parse(text, path, sha256, values, weights, err);
    }
    free(text);
    free(bytes);
    return status;
}
