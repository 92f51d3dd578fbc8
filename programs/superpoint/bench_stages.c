/* What lies around the forward pass, on one thread: from a file's bytes to a frame, from maps to points, from points
 * to an answer's bytes. */
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "common/base64.h"
#include "common/clock.h"
#include "common/jsonout.h"
#include "common/npz.h"

typedef enum stage { DECODE, RESIZE, FRAME, POSTPROCESS, ENCODE, STAGES } stage;

/* "frame" is decode and resize in one, as the programs do it: only what the frame needs is decoded. */
static const char *const names[STAGES] = {"decode", "resize", "frame", "postprocess", "encode"};

typedef struct inputs {
    const void *bytes;
    size_t size;
    const sp_params *params;
    sp_image image;
    sp_frame frame;
    sp_maps maps;
    sp_features features;
    buffer npz, out;
} inputs;

/* The descriptors as the service puts them into its JSON: an NPZ in base64, and the points as text. */
static sp_status encode(inputs *in, sp_error *err) {
    static const char *const keys[3] = {"keypoints", "scores", "descriptors"};
    npz_array arrays[3];
    buffer_clear(&in->npz);
    buffer_clear(&in->out);
    const size_t count = npz_features(&in->features, true, keys, arrays);
    sp_status status = npz_write(&in->npz, arrays, count, err);
    json_put_points(&in->out, &in->features);
    base64_encode(&in->out, in->npz.data, in->npz.size);
    return status;
}

static sp_status run_stage(stage s, inputs *in, sp_error *err) {
    sp_image image = {0};
    sp_frame frame = {0};
    sp_features features = {0};
    sp_status status = SP_ERR_INTERNAL;
    switch (s) {
    case DECODE:
        status = sp_image_decode(in->bytes, in->size, in->params, &image, NULL, err);
        break;
    case RESIZE:
        status = sp_frame_from_image(&in->image, in->params, &frame, err);
        break;
    case FRAME:
        status = sp_frame_decode(in->bytes, in->size, in->params, &frame, NULL, err);
        break;
    case POSTPROCESS:
        status = sp_features_extract(&in->maps, &in->frame, in->params, &features, err);
        break;
    case ENCODE:
        status = encode(in, err);
        break;
    default:
        break;
    }
    sp_features_free(&features);
    sp_frame_free(&frame);
    sp_image_free(&image);
    return status;
}

static sp_status prepare(const bench_options *o, const sp_model *model, inputs *in, sp_error *err) {
    sp_engine *engine = NULL;
    sp_engine_options options = o->setup.engine;
    options.width = o->params.width;
    options.height = o->params.height;
    const sp_frame *frame = &in->frame;
    sp_status status = sp_image_decode(in->bytes, in->size, in->params, &in->image, NULL, err);
    if (status == SP_OK)
        status = sp_frame_from_image(&in->image, in->params, &in->frame, err);
    if (status == SP_OK)
        status = sp_engine_create(model, &options, &engine, err);
    if (status == SP_OK)
        status = sp_engine_run(engine, &frame, 1, &in->maps, err);
    if (status == SP_OK)
        status = sp_features_extract(&in->maps, &in->frame, in->params, &in->features, err);
    sp_engine_free(engine);
    return status;
}

static json_t *row(const bench_options *o, const inputs *in, stage s, const bench_times *times) {
    json_t *object = json_pack("{s:s, s:i, s:[i, i], s:f, s:f, s:i}", "name", names[s], "threads", 1, "size",
                               (int)o->params.height, (int)o->params.width, "min_ms", bench_least(times), "median_ms",
                               bench_median(times), "rounds", times->count);
    if (s == DECODE || s == RESIZE || s == FRAME)
        json_object_set_new(object, "picture", json_pack("[i, i]", (int)in->image.height, (int)in->image.width));
    else
        json_object_set_new(object, "keypoints", json_integer((json_int_t)in->features.count));
    return object;
}

sp_status bench_stages(const bench_options *o, const sp_model *model, const void *bytes, size_t size, json_t *results,
                       sp_error *err) {
    inputs in = {.bytes = bytes, .size = size, .params = &o->params};
    bench_times *times = calloc(STAGES, sizeof *times);
    sp_status status = times ? prepare(o, model, &in, err) : SP_ERR_MEMORY;
    const double end = now_ms() + 1e3 * o->seconds / 4;
    for (int round = 0; status == SP_OK && (round < 5 || now_ms() < end) && round < BENCH_MAX_ROUNDS; round++)
        for (int s = 0; status == SP_OK && s < STAGES; s++) {
            const double start = now_ms();
            status = run_stage((stage)s, &in, err);
            bench_record(&times[s], now_ms() - start);
        }
    for (int s = 0; status == SP_OK && s < STAGES; s++)
        json_array_append_new(results, row(o, &in, (stage)s, &times[s]));
    buffer_free(&in.npz);
    buffer_free(&in.out);
    sp_features_free(&in.features);
    sp_maps_free(&in.maps);
    sp_frame_free(&in.frame);
    sp_image_free(&in.image);
    free(times);
    return status;
}
