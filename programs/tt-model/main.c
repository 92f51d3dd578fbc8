/* main.c - tt-model: global options, then one command. */
#include "base/ui.h"
#include "cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool wants_help(int argc, char **argv) {
    for (int i = 0; i < argc && strcmp(argv[i], "--") != 0; i++)
        if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h"))
            return true;
    return false;
}

/* --verbose, --no-color and --json may also stand behind the command. */
static int take_common(int argc, char **argv, tm_ui_options *ui, const tm_command *c) {
    int kept = 0;
    for (int i = 0; i < argc; i++) {
        if (!strcmp(argv[i], "--")) {
            while (i < argc)
                argv[kept++] = argv[i++];
            break;
        }
        if (!strcmp(argv[i], "--verbose") && !c->passes_on)
            ui->verbose = true;
        else if (!strcmp(argv[i], "--no-color"))
            ui->no_color = true;
        else
            argv[kept++] = argv[i];
    }
    return kept;
}

/* Commands that only the Python program of this name has: say so instead of "no such command". */
static bool of_python(const char *word, tm_error *e) {
    static const struct {
        const char *name, *why;
    } commands[] = {
        {"package-thin", "Packages without a container (venv bundles) are neither built nor served here."},
        {"whitelist", "Copies under the organisation Tenstorrent are made by its reviewers."},
        {"unwhitelist", "Copies under the organisation Tenstorrent are made by its reviewers."},
    };
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        if (!strcmp(word, commands[i].name)) {
            tm_fail(e, TM_UNSUPPORTED, "%s is a command of the Python tt-model", word);
            tm_why(e, "%s", commands[i].why);
            tm_next(e, "Call that one by its path: both work on the same machine, with the same files.");
            return true;
        }
    return false;
}

static int usage_error(const tm_ui_options *ui, const tm_error *e) {
    tm_ui_init(ui);
    tm_ui_error(NULL, e, NULL);
    return e->code;
}

/* A word that is no command, with what may have been meant. */
static int refuse_word(const char *word, const tm_ui_options *ui, tm_error *e) {
    if (!of_python(word, e)) {
        const char *meant = tm_similar_command(word);
        tm_fail(e, TM_USAGE, "there is no command \"%s\"", word);
        if (meant)
            tm_next(e, "Did you mean: tt-model %s", meant);
        else
            tm_next(e, "`tt-model --help`");
    }
    return usage_error(ui, e);
}

/* argv: what stands behind the command's name. */
static int run(const tm_command *command, int argc, char **argv, tm_ui_options *ui, tm_error *e) {
    if (wants_help(argc, argv)) {
        tm_print_help(command);
        return TM_OK;
    }
    tm_args args;
    int rc = tm_parse_args(command, take_common(argc, argv, ui, command), argv, &args, e);
    ui->json = tm_flag(&args, "json");
    if (rc) {
        tm_args_free(&args);
        return usage_error(ui, e);
    }
    tm_ui_init(ui);
    rc = command->run(&args, e);
    if (rc && *e->what) {
        char *title = args.words.count ? tm_fmt("%s %s", command->name, args.words.items[0]) : tm_strdup(command->name);
        tm_ui_error(title, e, args.evidence.data);
        free(title);
    }
    tm_args_free(&args);
    return rc;
}

/* The global options, then the command. */
static int dispatch(int argc, char **argv) {
    tm_ui_options ui = {0};
    tm_error e = {0};
    int i = 1;
    for (; i < argc && argv[i][0] == '-'; i++) {
        if (!strcmp(argv[i], "-v") || !strcmp(argv[i], "--verbose")) {
            ui.verbose = true;
        } else if (!strcmp(argv[i], "--no-color")) {
            ui.no_color = true;
        } else if (!strcmp(argv[i], "--version")) {
            puts(TM_VERSION);
            return TM_OK;
        } else if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h")) {
            tm_print_help(NULL);
            return TM_OK;
        } else {
            tm_fail(&e, TM_USAGE, "there is no option %s before the command", argv[i]);
            tm_next(&e, "`tt-model --help`");
            return usage_error(&ui, &e);
        }
    }
    if (i == argc) {
        tm_print_help(NULL);
        return TM_USAGE;
    }
    const tm_command *command = tm_find_command(argv[i]);
    if (!command)
        return refuse_word(argv[i], &ui, &e);
    i++;
    return run(command, argc - i, argv + i, &ui, &e);
}

int main(int argc, char **argv) {
    int rc = dispatch(argc, argv);
    const bool lost = ferror(stdout) != 0;
    if ((fflush(stdout) != 0 || lost) && !rc) {
        fputs("tt-model: cannot write to the standard output\n", stderr);
        rc = TM_ERROR;
    }
    return rc;
}
