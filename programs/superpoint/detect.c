/* Keypoints of pictures, as text, JSON, NPZ or a drawing. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "common/cli.h"
#include "common/fail.h"
#include "common/input.h"
#include "draw.h"
#include "superpoint.h"

typedef struct options {
    sp_setup setup;
    sp_params params;
    const char **images; /* into argv */
    int count;
    const char *draw;
    bool draw_frame;
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
    if (status == SP_OK) {
        status = sp_frame_decode(j->bytes, j->size, &o->params, &j->frame, &j->info, err);
        if (status != SP_OK) { /* say which picture it was */
            const sp_error inner = *err;
            return fail(err, inner.status, "%.200s: %.300s", j->path, inner.text);
        }
    }
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

static void print_text(const options *o, const job *j) {
    if (o->count > 1)
        printf("# %s\n", j->path);
    for (size_t i = 0; i < j->found.count; i++)
        printf("%.9g %.9g %.9g\n", (double)j->found.keypoints[2 * i], (double)j->found.keypoints[2 * i + 1],
               (double)j->found.scores[i]);
}

static int run(const cli *c, const options *o) {
    sp_error err;
    sp_model *model;
    sp_engine *engine;
    sp_maps maps = {0};
    if (sp_setup_open(&o->setup, &model, &engine, &err) != SP_OK)
        return cli_fail(c, &err);
    int code = EXIT_OK;
    for (int i = 0; i < o->count; i++) {
        job j = {.path = o->images[i]};
        sp_status status = detect(o, engine, &maps, &j, &err);
        if (status == SP_OK && o->draw)
            status = draw(o, &j, &err);
        if (status == SP_OK)
            print_text(o, &j);
        else
            code = cli_fail(c, &err);
        job_free(&j);
    }
    sp_maps_free(&maps);
    sp_engine_free(engine);
    sp_model_free(model);
    return code;
}

enum { OPT_DRAW, OPT_DRAW_FRAME, OPT_END };
static const cli_option own[] = {
    [OPT_DRAW] = {"draw", "FILE.png", "write the picture with its points on it (one picture only)"},
    [OPT_DRAW_FRAME] = {"draw-frame", NULL, "draw on the network's frame instead of the picture's own size"},
    [OPT_END] = {NULL, NULL, NULL}};

static sp_status take(void *context, const cli_option *option, const char *value, sp_error *err) {
    options *o = context;
    (void)err;
    if (!option)
        o->images[o->count++] = value;
    else if (option == &own[OPT_DRAW])
        o->draw = value;
    else
        o->draw_frame = true;
    return SP_OK;
}

static const char epilogue[] = "Examples:\n"
                               "  superpoint detect photo.jpg\n"
                               "  superpoint detect photo.jpg --max-keypoints 500 --draw points.png\n"
                               "  superpoint detect *.png --resize native --channel luma --json\n"
                               "  curl -s https://example.org/a.jpg | superpoint detect -\n";

int sp_command_detect(int argc, char **argv) {
    options o = {.images = calloc((size_t)argc + 1, sizeof *o.images)};
    if (!o.images)
        return EXIT_FAILED;
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
                   .take = take,
                   .context = &o};
    int code = cli_parse(&c, argc, argv);
    if (code == CLI_GO_ON && (o.count == 0 || (o.draw && o.count != 1))) {
        fprintf(stderr, "%s: %s\n", c.program, o.count ? "--draw: takes one picture" : "no picture was named");
        code = EXIT_USAGE;
    }
    if (code == CLI_GO_ON)
        code = run(&c, &o);
    free(o.images);
    return code;
}
