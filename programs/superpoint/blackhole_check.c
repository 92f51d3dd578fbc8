/* Bring-up of a Blackhole card, step by step, with a report that can be sent in. */
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>

#include "command.h"
#include "common/cli.h"
#include "common/fail.h"

#define DEFAULT_REPORT "blackhole-check.json"

typedef struct options {
    sp_setup setup;
    const char *report;
    bool reset;
    json_t *steps;
} options;

/* Further lines of a step's text are set in under it. */
static void print_indented(const char *text) {
    for (; *text; text++) {
        putchar(*text);
        if (*text == '\n')
            fputs("    ", stdout);
    }
    putchar('\n');
}

static void take_step(void *context, const sp_check_step *step) {
    options *o = context;
    printf("%-20s %-4s %9.1f ms  ", step->name, step->status == SP_OK ? "ok" : "FAIL", step->ms);
    print_indented(step->text);
    fflush(stdout); /* the next one may hang the machine */
    json_array_append_new(o->steps,
                          json_pack("{s:s, s:b, s:s, s:f, s:s}", "step", step->name, "passed", step->status == SP_OK,
                                    "status", sp_status_text(step->status), "ms", step->ms, "seen", step->text));
}

static bool save(const options *o, const sp_model *model, sp_status status) {
    char now[32];
    const time_t t = time(NULL);
    struct tm utc;
    strftime(now, sizeof now, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&t, &utc));
    struct utsname host = {0};
    (void)uname(&host);
    json_t *doc =
        json_pack("{s:s, s:s, s:s, s:s, s:s, s:b, s:O}", "superpoint", sp_version(), "time", now, "kernel",
                  host.release, "machine", host.machine, "weights", model ? sp_model_get_info(model)->sha256 : "",
                  "passed", status == SP_OK, "steps", o->steps);
    const bool saved = doc && json_dump_file(doc, o->report, JSON_INDENT(2) | JSON_REAL_PRECISION(9)) == 0;
    json_decref(doc);
    return saved;
}

static int run(const cli *c, options *o) {
    sp_error err = {0};
    sp_model *model = NULL;
    o->steps = json_array();
    o->setup.engine.engine = "blackhole";
    sp_status status = sp_setup_open(&o->setup, &model, NULL, &err);
    if (status == SP_OK)
        status = sp_engine_check(model, &o->setup.engine, o->reset, take_step, o, &err);
    if (!save(o, model, status))
        fprintf(stderr, "%s: the report cannot be written to %s\n", c->program, o->report);
    else
        printf("\n%s. The report is in %s.\n",
               status == SP_OK ? "The chip works"
                               : "The chip does not pass: docs/blackhole.md, Troubleshooting, says where to look",
               o->report);
    json_decref(o->steps);
    sp_model_free(model);
    return status == SP_OK ? EXIT_OK : cli_fail(c, &err);
}

static const cli_option own[] = {
    {"report", "FILE", "where the report goes (" DEFAULT_REPORT ")", CLI_TEXT(options, report)},
    {"reset", NULL, "reset the card first; takes seconds", CLI_FLAG(options, reset)},
    CLI_END};

static const char about[] =
    "Brings up a Tenstorrent Blackhole card from the bottom: opening, memory of every tile and every\n"
    "DRAM bank, multicast, a frame on one tile and on four against the fp32 reference, whole frames\n"
    "again and again, with the chip's own cycle counts beside the estimate. The first step that fails\n"
    "says where to look. With TTSIM set, the simulator takes the place of a card.\n";

static const char epilogue[] = "Environment: SUPERPOINT_BLACKHOLE_DEVICE names the card (/dev/tenstorrent/0).\n\n"
                               "Examples:\n"
                               "  superpoint blackhole-check\n"
                               "  superpoint blackhole-check --reset --report my-card.json\n";

int sp_command_blackhole_check(int argc, char **argv) {
    options o = {.report = DEFAULT_REPORT};
    sp_setup_default(&o.setup);
    const cli c = {.program = "superpoint blackhole-check",
                   .usage = "superpoint blackhole-check [OPTION...]",
                   .about = about,
                   .epilogue = epilogue,
                   .options = own,
                   .setup = &o.setup,
                   .context = &o};
    const int code = cli_parse(&c, argc, argv);
    return code == CLI_GO_ON ? run(&c, &o) : code;
}
