#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "command.h"
#include "superpoint.h"

static const struct {
    const char *name;
    sp_command *run;
    const char *summary;
} commands[] = {
    {"detect", sp_command_detect, "find the keypoints of pictures"},
    {"serve", sp_command_serve, "serve keypoints over HTTP"},
    {"validate", sp_command_validate, "hold an engine's accuracy against the fp32 reference"},
    {"extract", sp_command_extract, "keypoints of whole folders into HDF5, NPZ, COLMAP, JSON lines or CSV"},
    {"match", sp_command_match, "the same points in two pictures, or in many pairs for hloc and COLMAP"},
    {"eval", sp_command_eval, "measure detection and matching on sets of picture pairs"},
    {"bench", sp_command_bench, "measure every stage, level and precision on this machine"},
    {"blackhole-check", sp_command_blackhole_check, "bring up a Tenstorrent Blackhole card, step by step"},
    {"info", sp_command_info, "say what weights, engines and machine are at hand"},
};

enum { COMMANDS = sizeof commands / sizeof commands[0] };

static void print_help(FILE *out) {
    fprintf(out,
            "usage: superpoint COMMAND [OPTION...]\n\n"
            "Finds interest points in pictures and describes each by 256 numbers (SuperPoint, arXiv:1712.07629).\n\n"
            "Commands:\n");
    for (int i = 0; i < COMMANDS; i++)
        fprintf(out, "  %-15s %s\n", commands[i].name, commands[i].summary);
    fprintf(out, "\n`superpoint COMMAND --help` shows a command's options and examples.\n"
                 "`superpoint --version` prints the version.\n\n"
                 "Exit status: 0 done, 1 failed, 2 wrong usage, 130 interrupted.\n");
}

/* What a command printed may still lie in the buffer: on a full disk it is only lost here. */
static int finish(int code, const char *name) {
    const bool lost = ferror(stdout) != 0; /* what an earlier write met is not known any more */
    const int why = fflush(stdout) != 0 ? errno : 0;
    if (code != EXIT_OK || (!lost && !why))
        return code;
    fprintf(stderr, "superpoint%s%s: standard output: cannot be written%s%s\n", *name ? " " : "", name, why ? ": " : "",
            why ? strerror(why) : "");
    return EXIT_FAILED;
}

int main(int argc, char **argv) {
    if (argc < 2) {
        print_help(stderr);
        return EXIT_USAGE;
    }
    const char *name = argv[1];
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0 || strcmp(name, "help") == 0) {
        print_help(stdout);
        return finish(EXIT_OK, "");
    }
    if (strcmp(name, "--version") == 0 || strcmp(name, "version") == 0) {
        printf("superpoint %s\n", sp_version());
        return finish(EXIT_OK, "");
    }
    for (int i = 0; i < COMMANDS; i++)
        if (strcmp(name, commands[i].name) == 0)
            return finish(commands[i].run(argc - 1, argv + 1), name);
    fprintf(stderr, "superpoint: no command is called %s; `superpoint --help` lists them\n", name);
    return EXIT_USAGE;
}
