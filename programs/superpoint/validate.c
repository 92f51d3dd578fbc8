/* Hold an engine against the plain fp32 reference, on pictures. */
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "accuracy.h"
#include "command.h"
#include "common/cli.h"
#include "common/fail.h"
#include "common/input.h"
#include "describe.h"
#include "superpoint.h"

typedef struct options {
    sp_setup setup;
    cli_operands images;
    bool json;
    sp_params params;
} options;

static json_t *figures(const accuracy *a) {
    return json_pack("{s:f, s:f, s:{s:f, s:f, s:f}, s:I, s:f, s:f, s:f}", "score_pcc", a->score_pcc, "descriptor_pcc",
                     a->descriptor_pcc, "top500_2px", "recall", a->recall, "precision", a->precision, "f1", a->f1,
                     "nms_mismatches", (json_int_t)a->nms_mismatches, "norm_deviation", a->norm_deviation,
                     "score_max_abs", a->score_max_abs, "descriptor_max_abs", a->descriptor_max_abs);
}

typedef struct engines {
    sp_model *model;
    sp_engine *tested, *reference;
    sp_maps tested_maps, reference_maps;
} engines;

/* FNV-1a over both maps: equal digests mean equal bytes, whatever the tiles, threads and paths that made them. */
static uint64_t digest(const sp_maps *maps) {
    const size_t pixels = (size_t)maps->width * maps->height;
    const struct {
        const void *bytes;
        size_t size;
    } part[] = {{maps->scores, pixels * sizeof(float)},
                {maps->descriptors, pixels / (SP_CELL * SP_CELL) * SP_DESCRIPTOR_DIM * sizeof(float)}};
    uint64_t hash = 0xCBF29CE484222325u;
    for (size_t i = 0; i < sizeof part / sizeof part[0]; i++)
        for (size_t k = 0; k < part[i].size; k++)
            hash = (hash ^ ((const unsigned char *)part[i].bytes)[k]) * 0x100000001B3u;
    return hash;
}

static sp_status open_engines(const options *o, engines *e, sp_error *err) {
    sp_status status = sp_setup_open(&o->setup, &e->model, &e->tested, err);
    if (status != SP_OK)
        return status;
    sp_engine_options plain;
    sp_engine_options_default(&plain);
    plain.engine = "reference";
    return sp_engine_create(e->model, &plain, &e->reference, err);
}

static void close_engines(engines *e) {
    sp_maps_free(&e->tested_maps);
    sp_maps_free(&e->reference_maps);
    sp_engine_free(e->tested);
    sp_engine_free(e->reference);
    sp_model_free(e->model);
}

static sp_status measure(const options *o, engines *e, const char *path, accuracy *out, sp_error *err) {
    void *bytes = NULL;
    size_t size = 0;
    sp_frame frame = {0};
    sp_status status = sp_input_read(path, SP_MAX_INPUT_BYTES, &bytes, &size, err);
    if (status == SP_OK)
        status = fail_in(path, sp_frame_decode(bytes, size, &o->params, &frame, NULL, err), err);
    const sp_frame *one = &frame;
    if (status == SP_OK)
        status = sp_engine_run(e->tested, &one, 1, &e->tested_maps, err);
    if (status == SP_OK)
        status = sp_engine_run(e->reference, &one, 1, &e->reference_maps, err);
    if (status == SP_OK)
        status = accuracy_measure(&e->tested_maps, &e->reference_maps, &frame, out, err);
    sp_frame_free(&frame);
    free(bytes);
    return status;
}

static void print_text(const char *name, const accuracy *a) {
    printf("%s\n  score_pcc      %.6f\n  descriptor_pcc %.6f\n  top500_2px     recall %.4f, precision %.4f, f1 %.4f\n"
           "  nms_mismatches %llu\n  norm_deviation %.2e\n  max abs        scores %.2e, descriptors %.2e\n",
           name, a->score_pcc, a->descriptor_pcc, a->recall, a->precision, a->f1, (unsigned long long)a->nms_mismatches,
           a->norm_deviation, a->score_max_abs, a->descriptor_max_abs);
}

static int report(const options *o, const engines *e, const accuracy *worst, json_t *images) {
    const bool passed = accuracy_passes(worst);
    if (!o->json) {
        print_text(o->images.count > 1 ? "worst of all" : o->images.names[0], worst);
        printf(passed ? "PASSED: " : "NOT PASSED: ");
        describe_print(e->tested, e->model);
        putchar('\n');
        json_decref(images);
        return passed ? EXIT_OK : EXIT_FAILED;
    }
    json_t *doc = figures(worst);
    json_object_set_new(doc, "verdict", json_string(passed ? "pass" : "fail"));
    json_object_set_new(doc, "gates",
                        json_pack("{s:f, s:f, s:f}", "score_pcc", GATE_SCORE_PCC, "descriptor_pcc", GATE_DESCRIPTOR_PCC,
                                  "f1", GATE_F1));
    json_object_set_new(doc, "engine", describe_engine(e->tested));
    json_object_set_new(doc, "weights", describe_weights(e->model));
    json_object_set_new(doc, "images", images);
    json_dumpf(doc, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(9));
    printf("\n");
    json_decref(doc);
    return passed ? EXIT_OK : EXIT_FAILED;
}

static int run(const cli *c, const options *o) {
    sp_error err;
    engines e = {0};
    accuracy worst = {0};
    json_t *images = json_array();
    sp_status status = open_engines(o, &e, &err);
    for (size_t i = 0; status == SP_OK && i < o->images.count; i++) {
        accuracy a;
        status = measure(o, &e, o->images.names[i], &a, &err);
        if (status != SP_OK)
            break;
        if (i == 0)
            worst = a;
        accuracy_worst(&worst, &a);
        if (!o->json && o->images.count > 1)
            print_text(o->images.names[i], &a);
        json_t *entry = figures(&a);
        json_object_set_new(entry, "image", json_string(o->images.names[i]));
        char hex[17];
        snprintf(hex, sizeof hex, "%016" PRIx64, digest(&e.tested_maps));
        json_object_set_new(entry, "digest", json_string(hex));
        json_object_set_new(entry, "forward_ms", json_real(e.tested_maps.forward_ms));
        json_array_append_new(images, entry);
    }
    int code;
    if (status == SP_OK)
        code = report(o, &e, &worst, images);
    else {
        code = cli_fail(c, &err);
        json_decref(images);
    }
    close_engines(&e);
    return code;
}

/* An option, since a tool that writes command lines may find it easier; an operand says the same. */
static sp_status take_image(void *context, const cli_option *option, const char *value, sp_error *err) {
    options *o = context;
    (void)option;
    (void)err;
    o->images.names[o->images.count++] = value;
    return SP_OK;
}

static const cli_option own[] = {{"image", "FILE", "a picture; may be given again (the sample picture)", CLI_TAKE},
                                 {"json", NULL, "one JSON document on standard output", CLI_FLAG(options, json)},
                                 CLI_END};

static const char about[] =
    "Runs pictures through an engine and through the plain fp32 reference, and compares: Pearson\n"
    "correlation of score and descriptor maps, the 500 strongest points at 2 pixels, suppression.\n"
    "Passes with score_pcc >= 0.9971, descriptor_pcc >= 0.9991, f1 >= 0.9880, the published package's\n"
    "figures. With several pictures, each figure is the worst of all. A picture takes some seconds.\n";

static const char epilogue[] =
    "Exit status: 0 passed, 1 not passed or failed, 2 wrong usage.\n\n"
    "Examples:\n"
    "  superpoint validate\n"
    "  superpoint validate --engine cpu --precision bf16 --image a.jpg --image b.png --json\n";

int sp_command_validate(int argc, char **argv) {
    char sample[4096];
    const char *one[] = {sample};
    options o = {0};
    sp_setup_default(&o.setup);
    sp_params_default(&o.params);
    const cli c = {.program = "superpoint validate",
                   .usage = "superpoint validate [OPTION...] [IMAGE...]",
                   .about = about,
                   .epilogue = epilogue,
                   .options = own,
                   .setup = &o.setup,
                   .params = &o.params,
                   .operands = &o.images,
                   .take = take_image,
                   .context = &o};
    const int code = cli_parse(&c, argc, argv);
    if (code != CLI_GO_ON)
        return code;
    if (o.images.count == 0) {
        sp_error err;
        if (sp_sample_picture(sample, sizeof sample, &err) != SP_OK)
            return cli_fail(&c, &err);
        o.images = (cli_operands){one, 1};
    }
    return run(&c, &o);
}
