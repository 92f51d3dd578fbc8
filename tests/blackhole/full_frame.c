/*
 * blackhole_full_frame IMAGE WIDTHxHEIGHT GRID[:legacy]...: run one picture on the chip on each grid of tiles, and
 * print the SHA-256 of scores, suppressed scores and descriptors, and the processor time. Equal digests mean equal
 * bytes.
 *
 * A tool for by-hand checks: a frame of 640x480 takes the simulator minutes, too long for the test-suite.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/error.h"
#include "base/file.h"
#include "features/features.h"
#include "superpoint.h"

#define FILE_LIMIT ((size_t)64 << 20)
enum { NMS_RADIUS = 4 };

static double cpu_seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Name and SHA-256 of the first `count` numbers at `values`. */
static sp_status print_digest(const char *name, const float *values, size_t count, sp_error *err) {
    char hex[65];
    sp_status status = sp_sha256_hex(values, count * sizeof *values, hex, err);
    if (status == SP_OK)
        printf("  %-11s %s\n", name, hex);
    return status;
}

/* The suppressed scores are the chip's, or, where it leaves that to the host, the host's of the chip's scores. */
static sp_status print_maps(const sp_maps *maps, sp_error *err) {
    const size_t pixels = (size_t)maps->width * maps->height;
    float *own = maps->suppressed ? NULL : malloc(pixels * sizeof *own);
    sp_status status = SP_OK;
    if (!maps->suppressed)
        status = own ? sp_nms_single(maps->scores, maps->width, maps->height, NMS_RADIUS, own, err)
                     : sp_fail_memory(err, "suppressed scores", pixels * sizeof *own);
    if (status == SP_OK)
        status = print_digest("scores", maps->scores, pixels, err);
    if (status == SP_OK)
        status = print_digest("suppressed", own ? own : maps->suppressed, pixels, err);
    if (status == SP_OK)
        status = print_digest("descriptors", maps->descriptors, pixels / 64 * SP_DESCRIPTOR_DIM, err);
    free(own);
    return status;
}

static sp_status run_grid(const sp_model *model, const sp_frame *frame, const char *grid, sp_error *err) {
    sp_engine_options options;
    sp_engine_options_default(&options);
    options.engine = "blackhole";
    options.width = frame->width;
    options.height = frame->height;
    char name[32];
    snprintf(name, sizeof name, "%s", grid);
    char *colon = strchr(name, ':');
    if (colon)
        *colon = 0, options.legacy = true;
    setenv("SUPERPOINT_BLACKHOLE_GRID", strcmp(name, "auto") ? name : "", 1);
    sp_engine *engine = NULL;
    sp_maps maps = {0};
    const double cpu = cpu_seconds();
    sp_status status = sp_engine_create(model, &options, &engine, err);
    if (status == SP_OK)
        status = sp_engine_run(engine, &frame, 1, &maps, err);
    if (status == SP_OK) {
        printf("%s: %u tiles, %s, %.0f s of processor time\n", grid, sp_engine_get_info(engine)->threads,
               options.legacy ? "layer by layer, the host suppresses" : "one start, the chip suppresses",
               cpu_seconds() - cpu);
        status = print_maps(&maps, err);
        fflush(stdout);
    }
    sp_maps_free(&maps);
    sp_engine_free(engine);
    return status;
}

int main(int argc, char **argv) {
    sp_params params;
    sp_params_default(&params);
    if (argc < 4 || sscanf(argv[2], "%ux%u", &params.width, &params.height) != 2) {
        fprintf(stderr, "usage: blackhole_full_frame IMAGE WIDTHxHEIGHT GRID[:legacy]...\n");
        return 2;
    }
    void *bytes = NULL;
    size_t size = 0;
    sp_frame frame = {0};
    sp_model *model = NULL;
    sp_error err;
    sp_status status = sp_file_read(argv[1], FILE_LIMIT, &bytes, &size, &err);
    if (status == SP_OK)
        status = sp_frame_decode(bytes, size, &params, &frame, NULL, &err);
    if (status == SP_OK)
        status = sp_model_open("weights/superpoint.safetensors", NULL, &model, &err);
    for (int i = 3; i < argc && status == SP_OK; i++)
        status = run_grid(model, &frame, argv[i], &err);
    if (status != SP_OK)
        fprintf(stderr, "blackhole_full_frame: %s\n", err.text);
    free(bytes);
    sp_frame_free(&frame);
    sp_model_free(model);
    return status != SP_OK;
}
