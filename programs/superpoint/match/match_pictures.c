/* Two pictures: the points that are the same in both. */
#include <stdio.h>
#include <stdlib.h>

#include "command.h"
#include "common/buffer.h"
#include "common/fail.h"
#include "common/input.h"
#include "common/jsonout.h"
#include "match/draw_pair.h"
#include "match/match.h"

typedef struct side {
    sp_image image;
    sp_features found;
    float *pixels; /* [count][2]: in the picture's pixels, centres at integers, for drawing */
} side;

static sp_status look(const match_options *o, sp_engine *engine, const char *path, side *s, sp_error *err) {
    void *bytes = NULL;
    size_t size;
    sp_frame frame = {0};
    sp_maps maps = {0};
    sp_status status = sp_input_read(path, SP_MAX_INPUT_BYTES, &bytes, &size, err);
    if (status == SP_OK)
        status = fail_in(path, sp_image_decode(bytes, size, &o->params, &s->image, NULL, err), err);
    if (status == SP_OK)
        status = fail_in(path, sp_frame_from_image(&s->image, &o->params, &frame, err), err);
    if (status == SP_OK)
        status = sp_engine_run(engine, &(const sp_frame *){&frame}, 1, &maps, err);
    if (status == SP_OK)
        status = sp_features_extract(&maps, &frame, &o->params, &s->found, err);
    if (status == SP_OK) {
        s->pixels = malloc((s->found.count + 1) * 2 * sizeof *s->pixels);
        if (!s->pixels)
            status = fail(err, SP_ERR_MEMORY, "%.300s: out of memory", path);
        for (size_t i = 0; status == SP_OK && i < s->found.count; i++) {
            s->pixels[2 * i] = (float)((s->found.pixels[2 * i] + 0.5) * frame.scale_x - 0.5);
            s->pixels[2 * i + 1] = (float)((s->found.pixels[2 * i + 1] + 0.5) * frame.scale_y - 0.5);
        }
    }
    sp_maps_free(&maps);
    sp_frame_free(&frame);
    free(bytes);
    return status;
}

static void print_text(const side sides[2], const sp_matches *m) {
    for (size_t i = 0; i < m->count; i++) {
        const float *a = sides[0].found.keypoints + 2 * m->pairs[2 * i];
        const float *b = sides[1].found.keypoints + 2 * m->pairs[2 * i + 1];
        printf("%.9g %.9g %.9g %.9g %.6f\n", (double)a[0], (double)a[1], (double)b[0], (double)b[1],
               (double)m->similarities[i]);
    }
}

static sp_status print_json(const match_options *o, const side sides[2], const sp_matches *m, sp_error *err) {
    buffer out = {0};
    buffer_text(&out, "{\"images\": [");
    for (int s = 0; s < 2; s++) {
        buffer_text(&out, s ? ", {\"image\": " : "{\"image\": ");
        json_put_string(&out, o->operands.names[s]);
        buffer_text(&out, ", ");
        json_put_points(&out, &sides[s].found);
        buffer_char(&out, '}');
    }
    buffer_format(&out, "], \"num_matches\": %zu, \"matches\": [", m->count);
    for (size_t i = 0; i < m->count; i++)
        buffer_format(&out, "%s[%u, %u]", i ? ", " : "", m->pairs[2 * i], m->pairs[2 * i + 1]);
    buffer_text(&out, "], \"similarities\": [");
    for (size_t i = 0; i < m->count; i++) {
        if (i)
            buffer_text(&out, ", ");
        json_put_float(&out, m->similarities[i]);
    }
    buffer_text(&out, "]}\n");
    sp_status status = out.failed ? fail(err, SP_ERR_MEMORY, "out of memory") : SP_OK;
    if (status == SP_OK)
        fwrite(out.data, 1, out.size, stdout);
    buffer_free(&out);
    return status;
}

static sp_status compare(const match_options *o, const side sides[2], sp_error *err) {
    sp_matcher *matcher = NULL;
    sp_matches found = {0};
    sp_descriptors sets[2];
    for (int s = 0; s < 2; s++)
        sets[s] = (sp_descriptors){sides[s].found.descriptors, sides[s].found.count, sides[s].found.descriptor_dtype};
    sp_status status = sp_matcher_create(&o->match, &matcher, err);
    if (status == SP_OK)
        status = sp_match(matcher, &sets[0], &sets[1], &found, err);
    if (status == SP_OK && o->draw) {
        const sp_image images[2] = {sides[0].image, sides[1].image};
        status = draw_pair(images, (const float *const[2]){sides[0].pixels, sides[1].pixels}, &found, o->draw, err);
    }
    if (status == SP_OK && o->json)
        status = print_json(o, sides, &found, err);
    else if (status == SP_OK)
        print_text(sides, &found);
    sp_matches_free(&found);
    sp_matcher_free(matcher);
    return status;
}

sp_status match_pictures(const match_options *o, sp_error *err) {
    sp_model *model = NULL;
    sp_engine *engine = NULL;
    side sides[2] = {0};
    sp_status status = sp_setup_open(&o->setup, &model, &engine, err);
    for (int s = 0; s < 2 && status == SP_OK; s++)
        status = look(o, engine, o->operands.names[s], &sides[s], err);
    if (status == SP_OK)
        status = compare(o, sides, err);
    for (int s = 0; s < 2; s++) {
        free(sides[s].pixels);
        sp_features_free(&sides[s].found);
        sp_image_free(&sides[s].image);
    }
    sp_engine_free(engine);
    sp_model_free(model);
    return status;
}
