/*
 * entrypoint.c - what a container of this package starts with.
 *
 * Model managers of every version start a package of the kind `tt-dit-server` as
 *
 *     python -m uvicorn --host 0.0.0.0 --port N --lifespan on [ARGUMENTS] module:attribute
 *
 * This program takes that command line, and starts `superpoint serve` with what it means. Arguments that
 * uvicorn would not know go to the server as they are. The environment that managers set is understood:
 *
 *     HF_MODEL                    the weights: a file, a snapshot's directory, or owner/name
 *     TT_MODEL_WEIGHTS_REVISION   (or TT_WEIGHTS_REVISION) the revision of owner/name
 *     SUPERPOINT_ENGINE           auto, cpu or blackhole
 *     SUPERPOINT_MODEL_NAME       the id that /v1/models gives
 *
 * It replaces itself by the server, which is process 1 then and gets the signals.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SERVER "/usr/bin/superpoint"
#define OWN_WEIGHTS "/usr/share/superpoint/superpoint.safetensors"

enum { MAX_ARGS = 256 };

static const char *env(const char *name) {
    const char *v = getenv(name);
    return v && *v ? v : NULL;
}

/* Options of uvicorn that take a value and mean nothing here. */
static bool is_uvicorn_only(const char *arg) {
    static const char *const names[] = {"--lifespan", "--workers", "--log-level", "--loop", "--http", "--app-dir"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strcmp(arg, names[i]))
            return true;
    return false;
}

/* module.path:attribute, which names a Python application. */
static bool is_application(const char *arg) {
    const char *colon = strchr(arg, ':');
    return *arg != '-' && colon && colon != arg && !strchr(arg, '/') && !strchr(colon + 1, ':');
}

/* What follows --weights. The text lives as long as the process. */
static const char *weights(void) {
    static char text[4352];
    const char *model = env("HF_MODEL"), *revision = env("TT_MODEL_WEIGHTS_REVISION");
    struct stat st;
    if (!revision)
        revision = env("TT_WEIGHTS_REVISION");
    if (!model)
        return OWN_WEIGHTS;
    if (*model != '/') {
        snprintf(text, sizeof text, revision && !strchr(model, '@') ? "%s@%s" : "%s", model, revision);
        return text;
    }
    bool dir = stat(model, &st) == 0 && S_ISDIR(st.st_mode);
    snprintf(text, sizeof text, dir ? "%s/model.safetensors" : "%s", model);
    return text;
}

int main(int argc, char **argv) {
    static char program[] = SERVER;
    char *out[MAX_ARGS + 8];
    int n = 0, i = 1;
    bool uvicorn = false, has_weights = false, has_engine = false, has_host = false, has_name = false;
    if (argc > MAX_ARGS) {
        fprintf(stderr, "superpoint-entrypoint: too many arguments\n");
        return 2;
    }
    if (argc > 3 && !strncmp(argv[1], "python", 6) && !strcmp(argv[2], "-m") && !strcmp(argv[3], "uvicorn")) {
        uvicorn = true;
        i = 4;
    } else if (argc > 1 && !strcmp(argv[1], "serve")) {
        i = 2;
    }
    out[n++] = program;
    out[n++] = (char *)"serve";
    for (; i < argc; i++) {
        if (uvicorn && is_uvicorn_only(argv[i])) {
            i++;
            continue;
        }
        if (uvicorn && is_application(argv[i]))
            continue;
        has_weights = has_weights || !strcmp(argv[i], "--weights");
        has_engine = has_engine || !strcmp(argv[i], "--engine");
        has_name = has_name || !strcmp(argv[i], "--model-name");
        has_host = has_host || !strcmp(argv[i], "--host");
        out[n++] = argv[i];
    }
    if (!has_host) {
        out[n++] = (char *)"--host";
        out[n++] = (char *)"0.0.0.0";
    }
    if (!has_weights) {
        out[n++] = (char *)"--weights";
        out[n++] = (char *)weights();
    }
    if (!has_engine && env("SUPERPOINT_ENGINE")) {
        out[n++] = (char *)"--engine";
        out[n++] = (char *)env("SUPERPOINT_ENGINE");
    }
    /* /v1/models answers with the repository of the weights, as managers and clients expect. */
    if (!has_name && env("SUPERPOINT_MODEL_NAME")) {
        out[n++] = (char *)"--model-name";
        out[n++] = (char *)env("SUPERPOINT_MODEL_NAME");
    }
    out[n] = NULL;
    printf("Started server process [%ld]\nLoading weights: %s\n", (long)getpid(), has_weights ? "as given" : weights());
    fflush(stdout);
    execv(program, out);
    perror(program);
    return 127;
}
