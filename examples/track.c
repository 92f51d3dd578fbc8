/*
 * Follow points through a video: frames come as PPM pictures, one behind the other, on standard input.
 *
 *     ffmpeg -i video.mp4 -f image2pipe -c:v ppm - | ./track WEIGHTS
 *     ffmpeg -f v4l2 -i /dev/video0 -f image2pipe -c:v ppm - | ./track WEIGHTS
 *
 * Each frame's descriptors are matched with those of the frame before. A point that is matched keeps
 * its number; the others get new ones. Prints a line for each frame: how many points were found, how
 * many go on from before, the median shift in pixels, and the age of the oldest.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <superpoint.h>

enum { MAX_SIDE = 8192 };

/* Everything that lives from frame to frame. Memory is made once, and reused. */
typedef struct tracker {
    sp_engine *engine;
    sp_matcher *matcher;
    sp_params params;
    sp_maps maps;
    sp_features before; /* the last frame's */
    unsigned *ages;     /* [before.count]: frames that each point has been seen in */
    float *shifts;
} tracker;

/* The next frame's pixels; 1: there is one, 0: the end, -1: not a PPM, or it cannot be read. */
static int read_frame(FILE *in, sp_image *image, size_t *room) {
    unsigned width, height, maximum;
    int n = fscanf(in, "P6 %u %u %u", &width, &height, &maximum);
    if (n == EOF)
        return ferror(in) ? -1 : 0;
    if (n != 3 || fgetc(in) == EOF || maximum != 255 || width < 1 || height < 1 || width > MAX_SIDE ||
        height > MAX_SIDE)
        return -1;
    const size_t size = (size_t)width * height * 3;
    if (size > *room) {
        free(image->pixels);
        image->pixels = malloc(size);
        *room = image->pixels ? size : 0;
    }
    image->width = width;
    image->height = height;
    image->channels = 3;
    image->stride = (size_t)width * 3;
    return image->pixels && fread(image->pixels, 1, size, in) == size ? 1 : -1;
}

static int ascending(const void *a, const void *b) {
    const float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

/* Give the matched points their ages, and say how it went. */
static sp_status follow(tracker *t, unsigned number, sp_features *now, sp_error *err) {
    const sp_descriptors a = {t->before.descriptors, t->before.count, t->before.descriptor_dtype};
    const sp_descriptors b = {now->descriptors, now->count, now->descriptor_dtype};
    sp_matches m;
    sp_status status = sp_match(t->matcher, &a, &b, &m, err);
    if (status != SP_OK)
        return status;
    unsigned *ages = calloc(now->count + 1, sizeof *ages), oldest = 0;
    float *shifts = realloc(t->shifts, (m.count + 1) * sizeof *shifts);
    if (ages && shifts) {
        for (size_t i = 0; i < m.count; i++) {
            const float *p = t->before.keypoints + 2 * m.pairs[2 * i], *q = now->keypoints + 2 * m.pairs[2 * i + 1];
            shifts[i] = hypotf(q[0] - p[0], q[1] - p[1]);
            ages[m.pairs[2 * i + 1]] = t->ages[m.pairs[2 * i]] + 1;
            if (ages[m.pairs[2 * i + 1]] > oldest)
                oldest = ages[m.pairs[2 * i + 1]];
        }
        qsort(shifts, m.count, sizeof *shifts, ascending);
        printf("frame %u: %zu points, %zu from before, median shift %.2f, oldest %u\n", number, now->count, m.count,
               m.count ? (double)shifts[m.count / 2] : 0.0, oldest);
    }
    sp_matches_free(&m);
    free(t->ages);
    t->ages = ages;
    t->shifts = shifts ? shifts : t->shifts;
    sp_features_free(&t->before);
    t->before = *now;
    memset(now, 0, sizeof *now);
    if (ages && shifts)
        return SP_OK;
    snprintf(err->text, sizeof err->text, "out of memory");
    return err->status = SP_ERR_MEMORY;
}

static sp_status step(tracker *t, unsigned number, const sp_image *image, sp_error *err) {
    sp_frame frame = {0};
    sp_features now = {0};
    const sp_frame *frames[] = {&frame};
    sp_status status = sp_frame_from_image(image, &t->params, &frame, err);
    if (status == SP_OK)
        status = sp_engine_run(t->engine, frames, 1, &t->maps, err);
    if (status == SP_OK)
        status = sp_features_extract(&t->maps, &frame, &t->params, &now, err);
    if (status == SP_OK)
        status = follow(t, number, &now, err);
    sp_features_free(&now);
    sp_frame_free(&frame);
    return status;
}

static sp_status run(tracker *t, sp_error *err) {
    sp_image image = {0};
    size_t room = 0;
    sp_status status = SP_OK;
    int more;
    for (unsigned number = 1; status == SP_OK && (more = read_frame(stdin, &image, &room)) != 0; number++) {
        if (more < 0) {
            snprintf(err->text, sizeof err->text, "frame %u: not a whole PPM picture of 8 bits a channel", number);
            status = err->status = SP_ERR_IMAGE_DATA;
            break;
        }
        status = step(t, number, &image, err);
        if (status == SP_OK && fflush(stdout) != 0) {
            snprintf(err->text, sizeof err->text, "standard output cannot be written");
            status = err->status = SP_ERR_IO;
        }
    }
    free(image.pixels);
    return status;
}

int main(int argc, char **argv) {
    if (argc != 2) {
        fprintf(stderr, "usage: track WEIGHTS < FRAMES\n");
        return 2;
    }
    tracker t = {0};
    sp_error err = {0};
    sp_model *model = NULL;
    sp_match_options options;
    sp_match_options_default(&options);
    options.max_ratio = 0.9f;
    sp_params_default(&t.params);
    t.params.resize = SP_RESIZE_MAX;
    t.params.width = 640;
    t.params.max_keypoints = 500;
    sp_status status = sp_model_open(argv[1], NULL, &model, &err);
    if (status == SP_OK)
        status = sp_engine_create(model, NULL, &t.engine, &err);
    if (status == SP_OK)
        status = sp_matcher_create(&options, &t.matcher, &err);
    if (status == SP_OK)
        status = run(&t, &err);
    if (status != SP_OK)
        fprintf(stderr, "%s\n", err.text);
    sp_features_free(&t.before);
    sp_maps_free(&t.maps);
    free(t.ages);
    free(t.shifts);
    sp_matcher_free(t.matcher);
    sp_engine_free(t.engine);
    sp_model_free(model);
    return status == SP_OK ? 0 : 1;
}
