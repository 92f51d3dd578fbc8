/* Measure repeatability, localisation, matching and homographies on sets of picture pairs. */
#include <jansson.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "command.h"
#include "common/cli.h"
#include "common/fail.h"
#include "common/input.h"
#include "common/params.h"
#include "describe.h"
#include "eval_bootstrap.h"
#include "eval_homography.h"
#include "eval_metrics.h"
#include "eval_set.h"
#include "superpoint.h"

/* The two protocols: a detector's, and a matcher's. */
static const struct protocol {
    uint32_t width, height;
    int32_t points, radius;
    bool descriptors;
} protocols[2] = {{320, 240, 300, 4, false}, {640, 480, 1000, 8, true}};

enum { DETECTOR, MATCHER };

typedef struct options {
    sp_setup setup;
    cli_operands sets;
    sp_params params;      /* what both protocols share */
    const char *threshold; /* as given, or NULL */
    bool json;
} options;

/* One picture under one protocol. */
typedef struct view {
    sp_features features;
    eval_points points;
    double to_frame[9]; /* pixels of the picture -> of the frame */
} view;

enum { REPEATABILITY, ERROR, H1, H3, H5, SCORE, PRECISION, INLIERS, CORNER, POINTS, FIGURES };
static const char *const figure_names[FIGURES] = {"repeatability", "mle", "h1",      "h3",           "h5",
                                                  "mscore",        "map", "inliers", "corner_error", "points"};

typedef struct worker {
    const options *options;
    sp_model *model;
    sp_engine *engine;
    sp_maps maps;
    json_t *rows;
} worker;

static void view_free(view *v) {
    sp_features_free(&v->features);
    free(v->points.xy);
    *v = (view){0};
}

static sp_status detect(worker *w, const void *bytes, size_t size, const struct protocol *p, view *v, sp_error *err) {
    sp_params params = w->options->params;
    params.width = p->width;
    params.height = p->height;
    params.max_keypoints = p->points;
    params.nms_radius = p->radius;
    params.descriptors = p->descriptors;
    sp_frame frame = {0};
    const sp_frame *one = &frame;
    sp_status status = sp_frame_decode(bytes, size, &params, &frame, NULL, err);
    if (status == SP_OK)
        status = sp_engine_run(w->engine, &one, 1, &w->maps, err);
    if (status == SP_OK)
        status = sp_features_extract(&w->maps, &frame, &params, &v->features, err);
    if (status == SP_OK) {
        v->points.count = v->features.count;
        v->points.descriptors = v->features.descriptors;
        v->points.xy = malloc((2 * v->features.count + 1) * sizeof *v->points.xy);
        if (!v->points.xy)
            status = fail(err, SP_ERR_MEMORY, "eval: out of memory");
        const double to_picture[2] = {frame.scale_x, frame.scale_y};
        for (size_t i = 0; status == SP_OK && i < 2 * v->features.count; i++)
            v->points.xy[i] =
                params.subpixel ? v->features.keypoints[i] / to_picture[i % 2] : (double)v->features.pixels[i];
        const double scale[9] = {1 / frame.scale_x, 0, 0, 0, 1 / frame.scale_y, 0, 0, 0, 1};
        memcpy(v->to_frame, scale, sizeof scale);
    }
    sp_frame_free(&frame);
    return status;
}

/* A scene's picture k under both protocols. */
static sp_status look(worker *w, const eval_scene *scene, int k, view v[2], sp_error *err) {
    char path[PATH_MAX];
    void *bytes = NULL;
    size_t size = 0;
    sp_status status = eval_scene_picture(scene, k, path, sizeof path, err);
    if (status == SP_OK)
        status = sp_input_read(path, SP_MAX_INPUT_BYTES, &bytes, &size, err);
    for (int p = 0; status == SP_OK && p < 2; p++)
        status = fail_in(path, detect(w, bytes, size, &protocols[p], &v[p], err), err);
    free(bytes);
    return status;
}

static void product(const double a[9], const double b[9], double out[9]) {
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++)
            out[3 * i + j] = a[3 * i] * b[j] + a[3 * i + 1] * b[3 + j] + a[3 * i + 2] * b[6 + j];
}

/* The picture's homography, between the two frames. */
static bool between_frames(const view *a, const view *b, const double h[9], double out[9]) {
    double back[9], half[9];
    if (!eval_invert(a->to_frame, back))
        return false;
    product(h, back, half);
    product(b->to_frame, half, out);
    return true;
}

static bool matcher(const view *a, const view *b, const double h[9], double figures[FIGURES]) {
    const eval_size size = {protocols[MATCHER].width, protocols[MATCHER].height};
    const size_t most = a->points.count < b->points.count ? a->points.count : b->points.count;
    size_t(*mutual)[2] = malloc((most + 1) * sizeof *mutual), n = 0;
    double(*p)[2] = malloc((most + 1) * sizeof *p), (*q)[2] = malloc((most + 1) * sizeof *q);
    const bool ok = mutual && p && q &&
                    eval_matching(&a->points, &b->points, h, size, &figures[SCORE], &figures[PRECISION], mutual, &n);
    size_t right = 0;
    for (size_t i = 0; ok && i < n; i++) {
        double landed[2];
        memcpy(p[i], a->points.xy + 2 * mutual[i][0], sizeof p[i]);
        memcpy(q[i], b->points.xy + 2 * mutual[i][1], sizeof q[i]);
        eval_warp(h, p[i], landed);
        const double dx = landed[0] - q[i][0], dy = landed[1] - q[i][1];
        right += dx * dx + dy * dy <= EVAL_EPSILON * EVAL_EPSILON;
    }
    if (ok) {
        double estimate[9];
        figures[INLIERS] = n ? (double)right / (double)n : 0;
        figures[CORNER] = eval_estimate((const double(*)[2])p, (const double(*)[2])q, n, size, estimate)
                              ? eval_corner_error(estimate, h, size)
                              : INFINITY;
        figures[H1] = figures[CORNER] <= 1;
        figures[H3] = figures[CORNER] <= 3;
        figures[H5] = figures[CORNER] <= 5;
    }
    free(mutual);
    free(p);
    free(q);
    return ok;
}

static sp_status measure(const view a[2], const view b[2], const double h[9], double figures[FIGURES], sp_error *err) {
    double frame_h[2][9];
    const eval_size size = {protocols[DETECTOR].width, protocols[DETECTOR].height};
    for (int p = 0; p < 2; p++)
        if (!between_frames(&a[p], &b[p], h, frame_h[p]))
            return fail(err, SP_ERR_INTERNAL, "eval: a frame has no size");
    if (!eval_repeatability(&a[DETECTOR].points, &b[DETECTOR].points, frame_h[DETECTOR], size, &figures[REPEATABILITY],
                            &figures[ERROR]) ||
        !matcher(&a[MATCHER], &b[MATCHER], frame_h[MATCHER], figures))
        return fail(err, SP_ERR_ARGUMENT, "eval: a homography that has no inverse, or out of memory");
    figures[POINTS] = (double)(a[DETECTOR].points.count + b[DETECTOR].points.count) / 2;
    return SP_OK;
}

static sp_status record(worker *w, const char *set, const eval_scene *scene, int k, const double figures[FIGURES],
                        sp_error *err) {
    json_t *row = json_pack("{s:s, s:s, s:i}", "set", set, "scene", scene->name, "k", k);
    for (int f = 0; row && f < FIGURES; f++)
        json_object_set_new(row, figure_names[f], isfinite(figures[f]) ? json_real(figures[f]) : json_null());
    return row && json_array_append_new(w->rows, row) == 0 ? SP_OK : fail(err, SP_ERR_MEMORY, "eval: out of memory");
}

static sp_status run_scene(worker *w, const char *set, const eval_scene *scene, sp_error *err) {
    view first[2] = {0}, other[2] = {0};
    sp_status status = look(w, scene, 1, first, err);
    for (int k = 2; status == SP_OK && k <= EVAL_MAX_PICTURES; k++) {
        double h[9], figures[FIGURES];
        status = eval_scene_homography(scene, k, h, err);
        if (status == SP_ERR_NOT_FOUND) { /* the pictures are numbered without gaps */
            status = SP_OK;
            break;
        }
        if (status == SP_OK)
            status = look(w, scene, k, other, err);
        if (status == SP_OK)
            status = measure(first, other, h, figures, err);
        if (status == SP_OK)
            status = record(w, set, scene, k, figures, err);
        for (int p = 0; p < 2; p++)
            view_free(&other[p]);
    }
    for (int p = 0; p < 2; p++)
        view_free(&first[p]);
    return status;
}

static sp_status run_set(worker *w, const char *path, sp_error *err) {
    eval_set set;
    const char *slash = strrchr(path, '/');
    const char *name = slash && slash[1] ? slash + 1 : path;
    sp_status status = eval_set_open(path, &set, err);
    for (size_t i = 0; status == SP_OK && i < set.count; i++) {
        if (isatty(STDERR_FILENO))
            fprintf(stderr, "\r%s: scene %zu of %zu ", name, i + 1, set.count);
        status = run_scene(w, name, &set.scenes[i], err);
    }
    if (isatty(STDERR_FILENO))
        fprintf(stderr, "\r\033[K");
    eval_set_free(&set);
    return status;
}

/* "light" for i_*, "view" for v_*, else what stands before the first "_". */
static void group_of(const char *scene, char *group, size_t size) {
    if (strncmp(scene, "i_", 2) == 0)
        snprintf(group, size, "light");
    else if (strncmp(scene, "v_", 2) == 0)
        snprintf(group, size, "view");
    else
        snprintf(group, size, "%.*s", (int)strcspn(scene, "_"), scene);
}

/* The picture that a scene was made from: what stands between the first "_" and the next ".". */
static char *picture_of(const char *scene) {
    const char *underscore = strchr(scene, '_');
    const char *start = underscore ? underscore + 1 : scene;
    return strndup(start, strcspn(start, "."));
}

/* The pairs of one group: figures[f][i] and the name of picture i. */
typedef struct group {
    char name[256];
    size_t count;
    double *figures[FIGURES];
    char **pictures;
} group;

static void group_free(group *g) {
    for (int f = 0; f < FIGURES; f++)
        free(g->figures[f]);
    for (size_t i = 0; g->pictures && i < g->count; i++)
        free(g->pictures[i]);
    free(g->pictures);
}

/* Collects the rows of the group named g->name. False when out of memory. */
static bool group_collect(group *g, const json_t *rows) {
    const size_t most = json_array_size(rows);
    bool ok = (g->pictures = calloc(most + 1, sizeof *g->pictures)) != NULL;
    for (int f = 0; f < FIGURES; f++)
        ok = (g->figures[f] = calloc(most + 1, sizeof(double))) != NULL && ok;
    size_t i;
    json_t *row;
    json_array_foreach(rows, i, row) {
        char name[256];
        const char *scene = json_string_value(json_object_get(row, "scene"));
        group_of(scene, name, sizeof name);
        if (!ok || strcmp(name, g->name) != 0)
            continue;
        ok = (g->pictures[g->count] = picture_of(scene)) != NULL;
        for (int f = 0; f < FIGURES; f++) {
            const json_t *v = json_object_get(row, figure_names[f]);
            g->figures[f][g->count] = json_is_real(v) ? json_real_value(v) : NAN;
        }
        g->count++;
    }
    return ok;
}

static json_t *number(double v) {
    return isfinite(v) ? json_real(v) : json_null();
}

/* {"pairs": n, "repeatability": mean …, "intervals": {"repeatability": [low, high] …}}; NULL when out of memory. */
static json_t *group_summary(const group *g) {
    json_t *out = json_pack("{s:I}", "pairs", (json_int_t)g->count), *intervals = json_object();
    bool ok = out && intervals;
    for (int f = 0; ok && f < FIGURES; f++) {
        double sum = 0, low, high;
        size_t n = 0;
        for (size_t i = 0; i < g->count; i++)
            if (isfinite(g->figures[f][i])) {
                sum += g->figures[f][i];
                n++;
            }
        ok = eval_bootstrap(g->figures[f], (const char *const *)g->pictures, g->count, &low, &high) &&
             json_object_set_new(out, figure_names[f], number(n ? sum / (double)n : NAN)) == 0 &&
             json_object_set_new(intervals, figure_names[f], json_pack("[o, o]", number(low), number(high))) == 0;
    }
    if (ok && json_object_set(out, "intervals", intervals) == 0) {
        json_decref(intervals);
        return out;
    }
    json_decref(intervals);
    json_decref(out);
    return NULL;
}

/* Every group's summary, in the order in which the groups appear; NULL when out of memory. */
static json_t *summarise(const json_t *rows) {
    json_t *groups = json_object(), *row;
    size_t i;
    json_array_foreach(rows, i, row) {
        group g = {0};
        group_of(json_string_value(json_object_get(row, "scene")), g.name, sizeof g.name);
        if (!groups || json_object_get(groups, g.name))
            continue;
        if (!group_collect(&g, rows) || json_object_set_new(groups, g.name, group_summary(&g)) != 0) {
            json_decref(groups);
            groups = NULL;
        }
        group_free(&g);
    }
    return groups;
}

static void print_row(const char *label, const json_t *figures, int element) {
    static const int widths[] = {7, 6, 6, 6, 6, 8, 6, 8};
    printf("%-17s", label);
    for (int f = REPEATABILITY; f <= INLIERS; f++) {
        const json_t *v = json_object_get(figures, figure_names[f]);
        if (element >= 0)
            v = json_array_get(v, (size_t)element);
        if (json_is_real(v))
            printf(" %*.3f", widths[f], json_real_value(v));
        else
            printf(" %*s", widths[f], "-");
    }
    printf("\n");
}

static void print_text(const worker *w, const json_t *summary) {
    const char *name;
    json_t *g;
    printf("%-10s %6s %7s %6s %6s %6s %6s %8s %6s %8s\n", "group", "pairs", "repeat.", "MLE px", "H<=1", "H<=3", "H<=5",
           "m.score", "mAP", "inliers");
    json_object_foreach((json_t *)summary, name, g) {
        char label[32];
        snprintf(label, sizeof label, "%-10.10s %6d", name, (int)json_integer_value(json_object_get(g, "pairs")));
        print_row(label, g, -1);
        print_row("  95 % from", json_object_get(g, "intervals"), 0);
        print_row("         to", json_object_get(g, "intervals"), 1);
    }
    describe_print(w->engine, w->model);
    printf("%s\n", w->options->params.subpixel ? ", points between the pixels" : "");
}

static void print_json(const worker *w, json_t *summary) {
    const sp_params *params = &w->options->params;
    json_t *doc =
        json_pack("{s:o, s:o, s:{s:f, s:b}, s:O, s:O}", "engine", describe_engine(w->engine), "weights",
                  describe_weights(w->model), "parameters", "keypoint_threshold", (double)params->keypoint_threshold,
                  "subpixel", (int)params->subpixel, "summary", summary, "pairs", w->rows);
    json_dumpf(doc, stdout, JSON_INDENT(1) | JSON_REAL_PRECISION(9));
    printf("\n");
    json_decref(doc);
}

static int run(const cli *c, const options *o) {
    sp_error err;
    worker w = {.options = o, .rows = json_array()};
    sp_status status = sp_setup_open(&o->setup, &w.model, &w.engine, &err);
    for (size_t i = 0; status == SP_OK && i < o->sets.count; i++)
        status = run_set(&w, o->sets.names[i], &err);
    json_t *summary = status == SP_OK ? summarise(w.rows) : NULL;
    if (status == SP_OK && !summary)
        status = fail(&err, SP_ERR_MEMORY, "eval: out of memory");
    int code = EXIT_OK;
    if (status == SP_OK) {
        if (o->json)
            print_json(&w, summary);
        else
            print_text(&w, summary);
    } else
        code = cli_fail(c, &err);
    json_decref(summary);
    json_decref(w.rows);
    sp_maps_free(&w.maps);
    sp_engine_free(w.engine);
    sp_model_free(w.model);
    return code;
}

static const cli_option own[] = {
    {"keypoint-threshold", "T", "only points whose score is above T (0: as many as are asked for)",
     CLI_TEXT(options, threshold)},
    {"subpixel", NULL, "points between the pixels, where the scores peak", CLI_FLAG(options, params.subpixel)},
    {"json", NULL, "one JSON document on standard output, every pair in it", CLI_FLAG(options, json)},
    CLI_END};

static sp_status complete(void *context, sp_error *err) {
    options *o = context;
    if (o->sets.count == 0)
        return fail(err, SP_ERR_ARGUMENT, "no set was named");
    return o->threshold ? params_set(&o->params, "keypoint_threshold", o->threshold, err) : SP_OK;
}

static const char about[] =
    "Measures detection and matching on sets of picture pairs with known homographies. A SET is a\n"
    "folder in the layout of HPatches: scenes i_* (light) and v_* (viewpoint) with 1.png, 2.png ...\n"
    "and H_1_2 ...; other prefixes make groups of their own.\n\n"
    "Repeatability and localisation error (MLE): 320x240, 300 points, radius 4, 3 pixels. Homographies\n"
    "within 1, 3 and 5 pixels (mean of the corners), matching score and average precision: 640x480,\n"
    "1000 points, radius 8, mutual nearest neighbours, 3000 random samples at 3 pixels. Intervals:\n"
    "95 %, by bootstrap over pictures. The same figures as train/evaluate.py's, on the engine that is\n"
    "shipped.\n";

static const char epilogue[] = "Examples:\n"
                               "  superpoint eval hpatches-sequences-release\n"
                               "  superpoint eval --keypoint-threshold 0.005 hpatches-sequences-release\n"
                               "  superpoint eval --precision int8 --json sets/heldout > int8.json\n";

int sp_command_eval(int argc, char **argv) {
    options o = {0};
    sp_setup_default(&o.setup);
    sp_params_default(&o.params);
    o.params.channel = SP_CHANNEL_LUMA;
    o.params.descriptor_dtype = SP_DTYPE_FLOAT32;
    o.params.keypoint_threshold = 0;
    const cli c = {.program = "superpoint eval",
                   .usage = "superpoint eval [OPTION...] SET...",
                   .about = about,
                   .epilogue = epilogue,
                   .options = own,
                   .setup = &o.setup,
                   .operands = &o.sets,
                   .complete = complete,
                   .context = &o};
    const int code = cli_parse(&c, argc, argv);
    return code == CLI_GO_ON ? run(&c, &o) : code;
}
