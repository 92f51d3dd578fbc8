/* Measure every stage on this machine. */
#include "bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "command.h"
#include "common/cli.h"
#include "common/fail.h"
#include "common/input.h"
#include "describe.h"

enum { SECONDS = 30, QUICK_SECONDS = 6 };

void bench_record(bench_times *times, double ms) {
    if (times->count < BENCH_MAX_ROUNDS)
        times->ms[times->count++] = ms;
}

static int by_size(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double bench_least(const bench_times *times) {
    double least = times->count ? times->ms[0] : 0;
    for (int i = 1; i < times->count; i++)
        least = times->ms[i] < least ? times->ms[i] : least;
    return least;
}

double bench_median(const bench_times *times) {
    double sorted[BENCH_MAX_ROUNDS];
    if (times->count == 0)
        return 0;
    memcpy(sorted, times->ms, (size_t)times->count * sizeof *sorted);
    qsort(sorted, (size_t)times->count, sizeof *sorted, by_size);
    return sorted[times->count / 2];
}

/* The machine, and how busy it is before anything is measured. */
static json_t *describe_state(void) {
    struct utsname system;
    double load = 0;
    if (uname(&system) != 0)
        memset(&system, 0, sizeof system);
    if (getloadavg(&load, 1) < 1)
        load = 0;
    json_t *machine = describe_machine();
    json_object_set_new(machine, "threads", json_integer((json_int_t)sp_cpu_count()));
    json_object_set_new(machine, "system", json_string(system.sysname));
    json_object_set_new(machine, "release", json_string(system.release));
    json_object_set_new(machine, "load_before", json_real(load));
    return machine;
}

static const char *text_of(const json_t *object, const char *key) {
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "-";
}

static void print_text(const json_t *doc) {
    const json_t *machine = json_object_get(doc, "machine"), *r;
    size_t i;
    printf("%s, %d threads, load %.1f before\n\n", text_of(machine, "cpu"),
           (int)json_integer_value(json_object_get(machine, "threads")),
           json_real_value(json_object_get(machine, "load_before")));
    printf("%-12s %-10s %-11s %-6s %7s %10s %10s %6s\n", "stage", "engine", "level", "type", "threads", "min ms",
           "median ms", "peak");
    json_array_foreach(json_object_get(doc, "results"), i, r) {
        const json_t *share = json_object_get(r, "peak_share");
        printf("%-12s %-10s %-11s %-6s %7d %10.3f %10.3f", text_of(r, "name"), text_of(r, "engine"),
               text_of(r, "level"), text_of(r, "precision"), (int)json_integer_value(json_object_get(r, "threads")),
               json_real_value(json_object_get(r, "min_ms")), json_real_value(json_object_get(r, "median_ms")));
        if (json_is_real(share))
            printf(" %4.0f %%", 100 * json_real_value(share));
        printf("\n");
    }
}

static sp_status measure(const bench_options *o, const char *image, json_t *results, sp_error *err) {
    void *bytes = NULL;
    size_t size = 0;
    sp_model *model = NULL;
    sp_frame frame = {0};
    sp_status status = sp_input_read(image, SP_MAX_INPUT_BYTES, &bytes, &size, err);
    if (status == SP_OK)
        status = sp_setup_open(&o->setup, &model, NULL, err);
    if (status == SP_OK)
        status = fail_in(image, sp_frame_decode(bytes, size, &o->params, &frame, NULL, err), err);
    if (status == SP_OK)
        status = bench_stages(o, model, bytes, size, results, err);
    if (status == SP_OK)
        status = bench_http(o, bytes, size, results, err);
    if (status == SP_OK)
        status = bench_forward(o, model, &frame, results, err);
    sp_frame_free(&frame);
    sp_model_free(model);
    free(bytes);
    return status;
}

static const cli_option own[] = {
    {"image", "FILE", "the picture to work on (the sample picture)", CLI_TEXT(bench_options, image)},
    {"quick", NULL, "end within 30 seconds; figures are rougher", CLI_FLAG(bench_options, quick)},
    {"json", NULL, "one JSON document on standard output", CLI_FLAG(bench_options, json)},
    {"model", NULL, "predict by counting instead (--engine blackhole)", CLI_FLAG(bench_options, model)},
    CLI_END};

static const char about[] =
    "Measures decoding, resizing, post-processing and encoding on one thread, a request over HTTP to a\n"
    "service started for it, and the forward pass with every engine, instruction set level, precision\n"
    "and with one thread and all; options narrow that down. Variants run in turn, round after round.\n"
    "`peak` is the share of what the processor's multipliers do at that level and precision, measured in\n"
    "the same rounds; Winograd's algorithm needs fewer multiplications than are counted, and may pass\n"
    "100 %.\n";

static const char epilogue[] = "Examples:\n"
                               "  superpoint bench --quick\n"
                               "  superpoint bench --engine cpu --level amx --precision bf16 --threads 1 --json\n"
                               "  superpoint bench --resize 1280x960 --json\n"
                               "  superpoint bench --engine blackhole --model\n";

static int run(const cli *c, bench_options *o) {
    char sample[4096];
    sp_error err = {0};
    if (o->model)
        return bench_model(o, &err) == SP_OK ? EXIT_OK : cli_fail(c, &err);
    const char *image = o->image;
    if (!image) {
        if (sp_sample_picture(sample, sizeof sample, &err) != SP_OK)
            return cli_fail(c, &err);
        image = sample;
    }
    o->seconds = o->quick ? QUICK_SECONDS : SECONDS;
    json_t *machine = describe_state(), *results = json_array();
    const sp_status status = measure(o, image, results, &err);
    json_t *doc = json_pack("{s:s, s:o, s:o}", "version", sp_version(), "machine", machine, "results", results);
    if (status == SP_OK && doc && o->json) {
        json_dumpf(doc, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(6));
        printf("\n");
    } else if (status == SP_OK && doc)
        print_text(doc);
    json_decref(doc);
    return status == SP_OK ? EXIT_OK : cli_fail(c, &err);
}

int sp_command_bench(int argc, char **argv) {
    bench_options o = {0};
    sp_setup_default(&o.setup);
    sp_params_default(&o.params);
    o.params.keypoint_threshold = 0; /* as many points as are asked for */
    const cli c = {.program = "superpoint bench",
                   .usage = "superpoint bench [OPTION...]",
                   .about = about,
                   .epilogue = epilogue,
                   .options = own,
                   .setup = &o.setup,
                   .params = &o.params,
                   .context = &o};
    const int code = cli_parse(&c, argc, argv);
    return code == CLI_GO_ON ? run(&c, &o) : code;
}
