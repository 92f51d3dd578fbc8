#include "common/setup.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "common/cli.h"
#include "common/fail.h"
#include "common/number.h"

const cli_option sp_setup_options[] = {
    {"weights", "FILE|ID", "a safetensors file, or owner/name[@revision] in the Hugging Face cache", CLI_TAKE},
    {"engine", "NAME", "auto, cpu, blackhole or reference (auto)", CLI_TAKE},
    {"precision", "NAME", "auto, fp32, bf16 or int8 (auto: the fastest that is accurate enough)", CLI_TAKE},
    {"level", "NAME", "CPU level to force: c, avx2, avx512, avx512vnni, amx, neon", CLI_TAKE},
    {"threads", "N", "threads to compute with (0: one for each CPU)", CLI_TAKE},
    CLI_END};

void sp_setup_default(sp_setup *setup) {
    setup->weights = NULL;
    sp_engine_options_default(&setup->engine);
    const char *fused = getenv("TT_FUSED");
    static const char *const no[] = {"0", "false", "no", "off"};
    for (size_t i = 0; fused && i < sizeof no / sizeof no[0]; i++)
        if (strcasecmp(fused, no[i]) == 0)
            setup->engine.legacy = true;
}

static sp_status set_precision(sp_engine_options *options, const char *value, sp_error *err) {
    for (int p = SP_PRECISION_AUTO; p <= SP_PRECISION_FP16; p++)
        if (strcmp(value, sp_precision_text((sp_precision)p)) == 0) {
            options->precision = (sp_precision)p;
            return SP_OK;
        }
    return fail(err, SP_ERR_ARGUMENT, "precision: %s is not known; there are auto, fp32, bf16, int8 and fp16", value);
}

static sp_status set_threads(sp_engine_options *options, const char *value, sp_error *err) {
    enum { MOST = 1024 };
    int64_t threads;
    sp_status status = number_whole("threads", value, 0, MOST, &threads, err);
    if (status == SP_OK)
        options->threads = (uint32_t)threads;
    return status;
}

sp_status sp_setup_set(sp_setup *setup, const char *name, const char *value, sp_error *err) {
    if (strcmp(name, "weights") == 0)
        setup->weights = value;
    else if (strcmp(name, "engine") == 0)
        setup->engine.engine = value;
    else if (strcmp(name, "level") == 0)
        setup->engine.level = value;
    else if (strcmp(name, "precision") == 0)
        return set_precision(&setup->engine, value, err);
    else if (strcmp(name, "threads") == 0)
        return set_threads(&setup->engine, value, err);
    else
        return fail(err, SP_ERR_ARGUMENT, "%s: is not an option of the engine", name);
    return SP_OK;
}

bool sp_find_data(const char *in_tree, const char *installed, char *path, size_t size) {
    char self[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    if (n <= 0)
        return false;
    self[n] = '\0';
    for (int up = 0; up < 3; up++) {
        char *slash = strrchr(self, '/');
        if (!slash)
            break;
        *slash = '\0';
        if (((size_t)snprintf(path, size, "%s/%s", self, in_tree) < size && access(path, R_OK) == 0) ||
            ((size_t)snprintf(path, size, "%s/share/superpoint/%s", self, installed) < size && access(path, R_OK) == 0))
            return true;
    }
    return false;
}

bool sp_default_weights(char *path, size_t size) {
    const char *given = getenv("SUPERPOINT_WEIGHTS");
    if (given && *given)
        return (size_t)snprintf(path, size, "%s", given) < size;
    return sp_find_data("weights/superpoint.safetensors", "superpoint.safetensors", path, size);
}

sp_status sp_sample_picture(char *path, size_t size, sp_error *err) {
    return sp_find_data("sample_data/bridge.jpg", "bridge.jpg", path, size)
               ? SP_OK
               : fail(err, SP_ERR_NOT_FOUND, "the sample picture is not beside the program; name one with --image");
}

sp_status sp_setup_open(const sp_setup *setup, sp_model **model, sp_engine **engine, sp_error *err) {
    char path[PATH_MAX];
    const char *weights = setup->weights;
    *model = NULL;
    if (engine)
        *engine = NULL;
    if (!weights) {
        if (!sp_default_weights(path, sizeof path))
            return fail(err, SP_ERR_NOT_FOUND,
                        "weights: none were found beside the program; name them with --weights or SUPERPOINT_WEIGHTS");
        weights = path;
    }
    sp_status status = sp_model_open(weights, NULL, model, err);
    if (status == SP_OK && engine)
        status = sp_engine_create(*model, &setup->engine, engine, err);
    if (status != SP_OK) {
        sp_model_free(*model);
        *model = NULL;
    }
    return status;
}
