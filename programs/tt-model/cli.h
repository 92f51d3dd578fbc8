/*
 * cli.h - the command line: one table says what each command takes, and parsing, help and the shell
 * completions all read it.
 */
#ifndef TM_CLI_H
#define TM_CLI_H

#include "base/error.h"
#include "base/text.h"

#include <stdbool.h>
#include <stddef.h>

typedef struct tm_option {
    const char *name; /* "port": --port */
    char letter;      /* 0: none */
    const char *arg;  /* what its value is called in the help; NULL: a switch */
    const char *help; /* NULL: accepted, not shown */
} tm_option;

enum { TM_MAX_OPTIONS = 24 };

struct tm_args;

typedef struct tm_command {
    const char *name, *group, *summary;
    const char *usage;   /* its positional arguments */
    const char *details; /* paragraphs and examples under the options */
    int min_args, max_args;
    bool passes_on; /* unknown words go to the server */
    int (*run)(const struct tm_args *a, tm_error *e);
    tm_option options[TM_MAX_OPTIONS]; /* up to the first without a name */
} tm_command;

typedef struct tm_args {
    const tm_command *command;
    const char *values[TM_MAX_OPTIONS]; /* NULL: not given */
    tm_list words;                      /* positional arguments */
    tm_list passed;                     /* for the server */
    tm_buf evidence;                    /* the tail of a log that explains a failure */
} tm_args;

bool tm_flag(const tm_args *a, const char *name);
const char *tm_value(const tm_args *a, const char *name);
/* An integer option of min...max; `otherwise` when it was not given. */
int tm_int_value(const tm_args *a, const char *name, long min, long max, long otherwise, long *out, tm_error *e);

/* The commands, ended by one without a name. */
extern const tm_command tm_commands[];
const tm_command *tm_find_command(const char *name);
/* A command that differs from the word by one letter (another, one more, one less, or two swapped); or NULL. */
const char *tm_similar_command(const char *word);

void tm_print_help(const tm_command *command); /* NULL: of the program */
int tm_parse_args(const tm_command *command, int argc, char **argv, tm_args *a, tm_error *e);
void tm_args_free(tm_args *a);

/* The commands' functions, one file each in cmd/. */
int tm_cmd_curl(const tm_args *a, tm_error *e);
int tm_cmd_pull(const tm_args *a, tm_error *e);
int tm_cmd_serve(const tm_args *a, tm_error *e);
int tm_cmd_resume(const tm_args *a, tm_error *e);
int tm_cmd_stop(const tm_args *a, tm_error *e);
int tm_cmd_logs(const tm_args *a, tm_error *e);
int tm_cmd_ps(const tm_args *a, tm_error *e);
int tm_cmd_list(const tm_args *a, tm_error *e);
int tm_cmd_info(const tm_args *a, tm_error *e);
int tm_cmd_profiles(const tm_args *a, tm_error *e);
int tm_cmd_search(const tm_args *a, tm_error *e);
int tm_cmd_rm(const tm_args *a, tm_error *e);
int tm_cmd_login(const tm_args *a, tm_error *e);
int tm_cmd_package(const tm_args *a, tm_error *e);
int tm_cmd_push(const tm_args *a, tm_error *e);
int tm_cmd_publish(const tm_args *a, tm_error *e);
int tm_cmd_unpublish(const tm_args *a, tm_error *e);
int tm_cmd_version(const tm_args *a, tm_error *e);
int tm_cmd_completion(const tm_args *a, tm_error *e);

#endif
