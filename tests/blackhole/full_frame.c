/*
 * blackhole_full_frame IMAGE WIDTHxHEIGHT GRID[:legacy]...: run one picture on the chip on each grid of tiles, and
 * print a digest of scores and descriptors, of the suppressed scores, and the time. Equal digests mean equal bytes.
 *
 * A tool for by-hand checks: a frame of 640x480 takes the simulator some ten minutes, too long for the test-suite.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "superpoint.h"

#define FILE_LIMIT ((size_t)64 << 20)

static uint64_t fnv1a(uint64_t hash, const void *bytes, size_t size) {
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ ((const unsigned char *)bytes)[i]) * 0x100000001B3u;
    return hash;
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
    sp_status status = sp_engine_create(model, &options, &engine, err);
    if (status == SP_OK)
        status = sp_engine_run(engine, &frame, 1, &maps, err);
    if (status == SP_OK) {
        const size_t pixels = (size_t)maps.width * maps.height;
        uint64_t hash = fnv1a(0xCBF29CE484222325u, maps.scores, pixels * sizeof(float));
        hash = fnv1a(hash, maps.descriptors, pixels / 64 * SP_DESCRIPTOR_DIM * sizeof(float));
        printf("%-12s %3u tiles  maps %016" PRIx64, grid, sp_engine_get_info(engine)->threads, hash);
        if (maps.suppressed)
            printf("  suppressed %016" PRIx64, fnv1a(0xCBF29CE484222325u, maps.suppressed, pixels * sizeof(float)));
        printf("  %.0f s\n", maps.forward_ms / 1000);
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
