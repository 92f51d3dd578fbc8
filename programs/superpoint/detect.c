/* Keypoints of pictures, as text, JSON, NPZ or a drawing. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "common/buffer.h"
#include "common/cli.h"
#include "common/fail.h"
#include "common/input.h"
#include "common/jsonfeatures.h"
#include "common/jsonout.h"
#include "common/npz.h"
#include "common/output.h"
#include "draw.h"
#include "superpoint.h"

typedef struct options {
    sp_setup setup;
    sp_params params;
    cli_operands images;
    const char *draw, *npz;
    bool draw_frame, json;
} options;

/* One picture on its way. */
typedef struct job {
    const char *path;
    void *bytes;
    size_t size;
    sp_image_info info;
    sp_frame frame;
    sp_features found;
} job;

static void job_free(job *j) {
    sp_features_free(&j->found);
    sp_frame_free(&j->frame);
    free(j->bytes);
}

static sp_status detect(const options *o, sp_engine *engine, sp_maps *maps, job *j, sp_error *err) {
    sp_status status = sp_input_read(j->path, SP_MAX_INPUT_BYTES, &j->bytes, &j->size, err);
    if (status == SP_OK)
        status = fail_in(j->path, sp_frame_decode(j->bytes, j->size, &o->params, &j->frame, &j->info, err), err);
    const sp_frame *frame = &j->frame;
    if (status == SP_OK)
        status = sp_engine_run(engine, &frame, 1, maps, err);
    if (status == SP_OK)
        status = sp_features_extract(maps, &j->frame, &o->params, &j->found, err);
    return status;
}

/* The picture, or its part of the network's frame, with rings where the points are. */
static sp_status draw(const options *o, const job *j, sp_error *err) {
    sp_image image = {0}, small = {0};
    const sp_frame *f = &j->frame;
    float *points = malloc((j->found.count ? j->found.count : 1) * 2 * sizeof *points);
    sp_status status = points ? sp_image_decode(j->bytes, j->size, &o->params, &image, NULL, err)
                              : fail(err, SP_ERR_MEMORY, "%s: out of memory", j->path);
    if (status == SP_OK && o->draw_frame)
        status = sp_image_resize(&image, f->content_width, f->content_height, &small, err);
    if (status == SP_OK) {
        sp_image *canvas = o->draw_frame ? &small : &image;
        const double sx = o->draw_frame ? 1 : f->scale_x, sy = o->draw_frame ? 1 : f->scale_y;
        for (size_t i = 0; i < j->found.count; i++) {
            points[2 * i] = (float)((j->found.pixels[2 * i] + 0.5) * sx - 0.5);
            points[2 * i + 1] = (float)((j->found.pixels[2 * i + 1] + 0.5) * sy - 0.5);
        }
        draw_points(canvas, points, j->found.count, 2.2 * (canvas->height > 480 ? canvas->height / 480.0 : 1));
        status = draw_write_png(canvas, o->draw, err);
    }
    sp_image_free(&small);
    sp_image_free(&image);
    free(points);
    return status;
}

/* numpy.load(FILE): keypoints [N,2], scores [N], descriptors [N,256]. */
static sp_status write_npz(const options *o, const job *j, sp_error *err) {
    static const char *const names[] = {"keypoints", "scores", "descriptors"};
    npz_array arrays[3];
    buffer out = {0};
    const size_t count = npz_features(&j->found, o->params.descriptors, names, arrays);
    sp_status status = npz_write(&out, arrays, count, err);
    if (status == SP_OK)
        status = sp_output_write(o->npz, out.data, out.size, err);
    buffer_free(&out);
    return status;
}

static void print_text(const options *o, const job *j) {
    if (o->images.count > 1)
        printf("# %s\n", j->path);
    for (size_t i = 0; i < j->found.count; i++)
        printf("%.9g %.9g %.9g\n", (double)j->found.keypoints[2 * i], (double)j->found.keypoints[2 * i + 1],
               (double)j->found.scores[i]);
}

/* The fields of the service's answer, by the same names; descriptors go into the NPZ. */
static void put_picture(buffer *out, const job *j, const sp_error *err) {
    buffer_text(out, "{\"image\": ");
    json_put_string(out, j->path);
    if (err) {
        buffer_text(out, ", \"error\": ");
        json_put_string(out, err->text);
        buffer_char(out, '}');
        return;
    }
    const json_sizes sizes = json_sizes_of(&j->frame);
    buffer_text(out, ", ");
    json_put_sizes(out, &sizes);
    buffer_text(out, ", ");
    json_put_points(out, &j->found);
    buffer_char(out, '}');
}

/* One picture: its object. Several: {"images": [...]}. */
static sp_status print_json(const options *o, buffer *pictures, sp_error *err) {
    buffer out = {0};
    if (o->images.count > 1)
        buffer_text(&out, "{\"images\": [");
    buffer_put(&out, pictures->data, pictures->size);
    buffer_text(&out, o->images.count > 1 ? "]}\n" : "\n");
    sp_status status = pictures->failed || out.failed ? fail(err, SP_ERR_MEMORY, "out of memory")
                                                      : sp_output_write("-", out.data, out.size, err);
    buffer_free(&out);
    return status;
}

static int run(const cli *c, const options *o) {
    sp_error err;
    sp_model *model;
    sp_engine *engine;
    sp_maps maps = {0};
    if (sp_setup_open(&o->setup, &model, &engine, &err) != SP_OK)
        return cli_fail(c, &err);
    int code = EXIT_OK;
    buffer pictures = {0};
    for (size_t i = 0; i < o->images.count; i++) {
        job j = {.path = o->images.names[i]};
        sp_status status = detect(o, engine, &maps, &j, &err);
        if (status == SP_OK && o->draw)
            status = draw(o, &j, &err);
        if (status == SP_OK && o->npz)
            status = write_npz(o, &j, &err);
        if (status != SP_OK)
            code = cli_fail(c, &err);
        if (o->json) {
            if (i > 0)
                buffer_text(&pictures, ", ");
            put_picture(&pictures, &j, status == SP_OK ? NULL : &err);
        } else if (status == SP_OK && !(o->npz && strcmp(o->npz, "-") == 0))
            print_text(o, &j);
        job_free(&j);
    }
    if (o->json && print_json(o, &pictures, &err) != SP_OK)
        code = cli_fail(c, &err);
    buffer_free(&pictures);
    sp_maps_free(&maps);
    sp_engine_free(engine);
    sp_model_free(model);
    return code;
}

static const cli_option own[] = {
    {"json", NULL, "one JSON document on standard output, without descriptors", CLI_FLAG(options, json)},
    {"npz", "FILE.npz", "write keypoints, scores and descriptors for numpy (one picture only)", CLI_TEXT(options, npz)},
    {"draw", "FILE.png", "write the picture with its points on it (one picture only)", CLI_TEXT(options, draw)},
    {"draw-frame", NULL, "draw on the network's frame instead of the picture's own size",
     CLI_FLAG(options, draw_frame)},
    CLI_END};

static sp_status complete(void *context, sp_error *err) {
    options *o = context;
    if (o->images.count == 0)
        return fail(err, SP_ERR_ARGUMENT, "no picture was named");
    if (o->images.count > 1 && (o->draw || o->npz))
        return fail(err, SP_ERR_ARGUMENT, "--draw and --npz take one picture; see `superpoint extract`");
    if (o->npz && strcmp(o->npz, "-") == 0 && o->json)
        return fail(err, SP_ERR_ARGUMENT, "--npz - and --json would share standard output");
    if (!o->npz) /* nothing else shows them */
        o->params.descriptors = false;
    return SP_OK;
}

static const char epilogue[] = "Examples:\n"
                               "  superpoint detect photo.jpg\n"
                               "  superpoint detect photo.jpg --max-keypoints 500 --draw points.png\n"
                               "  superpoint detect *.png --resize native --channel luma --json\n"
                               "  curl -s https://example.org/a.jpg | superpoint detect -\n";

int sp_command_detect(int argc, char **argv) {
    options o = {0};
    sp_setup_default(&o.setup);
    sp_params_default(&o.params);
    const cli c = {.program = "superpoint detect",
                   .usage = "superpoint detect [OPTION...] IMAGE...",
                   .about =
                       "Finds the keypoints of pictures and prints a line of x, y and score for each, best first.\n"
                       "An IMAGE is a JPEG, PNG, PPM/PGM, BMP, WebP or GIF file, or - for standard input.\n",
                   .epilogue = epilogue,
                   .options = own,
                   .setup = &o.setup,
                   .params = &o.params,
                   .operands = &o.images,
                   .complete = complete,
                   .context = &o};
    const int code = cli_parse(&c, argc, argv);
    return code == CLI_GO_ON ? run(&c, &o) : code;
}
