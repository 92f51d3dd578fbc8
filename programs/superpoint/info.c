#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "command.h"
#include "common/cli.h"
#include "common/fail.h"
#include "common/params.h"
#include "describe.h"
#include "superpoint.h"

static json_t *all_of_weights(const sp_model *model) {
    const sp_model_info *w = sp_model_get_info(model);
    return json_pack("{s:s, s:s, s:s, s:s, s:s, s:I}", "id", w->id, "revision", w->revision, "sha256", w->sha256,
                     "licence", w->licence, "path", w->path, "parameters", (json_int_t)w->parameters);
}

static json_t *all_of_engine(const sp_engine *engine) {
    const sp_engine_info *e = sp_engine_get_info(engine);
    return json_pack("{s:s, s:s, s:s, s:s, s:i, s:b, s:b, s:i, s:s}", "engine", e->engine, "device", e->device, "level",
                     e->level, "precision", sp_precision_text(e->precision), "threads", (int)e->threads, "traced",
                     e->traced, "device_nms", e->device_nms, "nms_radius_traced", (int)e->nms_radius, "fused_stages",
                     e->fused_stages);
}

/* Every engine of this build, with the reason where it cannot run here. */
static json_t *list_engines(void) {
    json_t *list = json_array();
    for (const char *const *name = sp_engine_names(); *name; name++) {
        sp_error err = {0};
        bool available = sp_engine_probe(*name, &err) == SP_OK;
        json_array_append_new(list, json_pack("{s:s, s:b, s:s}", "name", *name, "available", available, "reason",
                                              available ? "" : err.text));
    }
    return list;
}

/* Every parameter as the text that sets it. */
static json_t *describe_defaults(void) {
    sp_params params;
    sp_params_default(&params);
    size_t count;
    const param_spec *specs = params_specs(&count);
    json_t *object = json_object();
    for (size_t i = 0; i < count; i++) {
        char text[64];
        params_text(&params, &specs[i], text, sizeof text);
        json_object_set_new(object, specs[i].name, json_string(text));
    }
    return object;
}

/* A reason often begins with the engine's name, which the line has already. */
static const char *without_name(const char *reason, const char *name) {
    const size_t n = strlen(name);
    return strncmp(reason, name, n) == 0 && strncmp(reason + n, ": ", 2) == 0 ? reason + n + 2 : reason;
}

static void print_text(const json_t *doc) {
    const json_t *w = json_object_get(doc, "weights"), *e = json_object_get(doc, "serving_path"), *item;
    const json_t *machine = json_object_get(doc, "machine");
    size_t i;
#define TEXT(object, key) json_string_value(json_object_get(object, key))
    printf("superpoint %s\n\n", TEXT(doc, "version"));
    printf("weights    %s%s%s\n           %s\n           sha256 %s\n           licence: %s\n", TEXT(w, "id"),
           *TEXT(w, "revision") ? "@" : "", TEXT(w, "revision"), TEXT(w, "path"), TEXT(w, "sha256"),
           TEXT(w, "licence"));
    printf("engine     %s, %s, level %s, %s, %d thread%s\n", TEXT(e, "engine"), TEXT(e, "device"), TEXT(e, "level"),
           TEXT(e, "precision"), (int)json_integer_value(json_object_get(e, "threads")),
           json_integer_value(json_object_get(e, "threads")) == 1 ? "" : "s");
    printf("engines   ");
    json_array_foreach(json_object_get(doc, "engines"), i, item) {
        printf("%s%s", i ? "\n           " : " ", TEXT(item, "name"));
        if (json_is_false(json_object_get(item, "available")))
            printf(" (not here: %s)", without_name(TEXT(item, "reason"), TEXT(item, "name")));
    }
    printf("\nmachine    %s; levels", TEXT(machine, "cpu"));
    json_array_foreach(json_object_get(machine, "levels"), i, item)
        printf("%s %s", i ? "," : "", json_string_value(item));
    printf("\n");
#undef TEXT
}

static int report(const cli *c, bool json) {
    sp_error err;
    sp_model *model;
    sp_engine *engine;
    if (sp_setup_open(c->setup, &model, &engine, &err) != SP_OK)
        return cli_fail(c, &err);
    json_t *doc = json_pack("{s:s, s:o, s:o, s:o, s:o, s:o}", "version", sp_version(), "weights", all_of_weights(model),
                            "serving_path", all_of_engine(engine), "engines", list_engines(), "machine",
                            describe_machine(), "defaults", describe_defaults());
    if (doc && json) {
        json_dumpf(doc, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(9));
        printf("\n");
    } else if (doc)
        print_text(doc);
    else
        fprintf(stderr, "%s: out of memory\n", c->program);
    json_decref(doc);
    sp_engine_free(engine);
    sp_model_free(model);
    return doc ? EXIT_OK : EXIT_FAILED;
}

typedef struct options {
    sp_setup setup;
    bool json;
} options;

static const cli_option own[] = {{"json", NULL, "one JSON document on standard output", CLI_FLAG(options, json)},
                                 CLI_END};

int sp_command_info(int argc, char **argv) {
    options o = {0};
    sp_setup_default(&o.setup);
    const cli c = {.program = "superpoint info",
                   .usage = "superpoint info [OPTION...]",
                   .about = "Says what weights, engines and machine are at hand.\n",
                   .epilogue = "Examples:\n  superpoint info\n  superpoint info --engine cpu --json\n",
                   .options = own,
                   .setup = &o.setup,
                   .context = &o};
    const int code = cli_parse(&c, argc, argv);
    return code == CLI_GO_ON ? report(&c, o.json) : code;
}
