#include "cli.h"

#include "base/ui.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const tm_command *tm_find_command(const char *name) {
    for (const tm_command *c = tm_commands; c->name; c++)
        if (!strcmp(c->name, name))
            return c;
    return NULL;
}

static bool one_slip(const char *a, const char *b) {
    while (*a && *a == *b)
        a++, b++;
    if (!*a && !*b)
        return true;
    bool swapped = a[0] && a[1] && a[0] == b[1] && a[1] == b[0] && !strcmp(a + 2, b + 2);
    return swapped || (*a && *b && !strcmp(a + 1, b + 1)) || (*a && !strcmp(a + 1, b)) || (*b && !strcmp(a, b + 1));
}

const char *tm_similar_command(const char *word) {
    for (const tm_command *c = tm_commands; c->name; c++)
        if (strlen(word) > 2 && one_slip(word, c->name))
            return c->name;
    return NULL;
}

static int index_of(const tm_command *c, const char *name, size_t len) {
    for (int i = 0; i < TM_MAX_OPTIONS && c->options[i].name; i++)
        if (strlen(c->options[i].name) == len && !strncmp(c->options[i].name, name, len))
            return i;
    return -1;
}

bool tm_flag(const tm_args *a, const char *name) {
    return tm_value(a, name) != NULL;
}

const char *tm_value(const tm_args *a, const char *name) {
    int i = index_of(a->command, name, strlen(name));
    return i < 0 ? NULL : a->values[i];
}

int tm_int_value(const tm_args *a, const char *name, long min, long max, long otherwise, long *out, tm_error *e) {
    const char *text = tm_value(a, name);
    *out = otherwise;
    if (!text)
        return TM_OK;
    char *end;
    errno = 0;
    *out = strtol(text, &end, 10);
    if (errno || *end || end == text || *out < min || *out > max)
        return tm_fail(e, TM_USAGE, "--%s %s: not a whole number of %ld to %ld", name, text, min, max);
    return TM_OK;
}

static int parse_long(const tm_command *c, int argc, char **argv, int *at, tm_args *a, tm_error *e) {
    const char *word = argv[*at] + 2;
    size_t len = strcspn(word, "=");
    int i = index_of(c, word, len);
    if (i < 0) {
        if (c->passes_on) {
            tm_list_add(&a->passed, argv[*at]);
            return TM_OK;
        }
        tm_fail(e, TM_USAGE, "%s has no option --%.*s", c->name, (int)len, word);
        tm_next(e, "`tt-model %s --help`", c->name);
        return TM_USAGE;
    }
    if (!c->options[i].arg) {
        if (word[len])
            return tm_fail(e, TM_USAGE, "--%s takes no value", c->options[i].name);
        a->values[i] = "1";
    } else if (word[len]) {
        a->values[i] = word + len + 1;
    } else if (*at + 1 < argc) {
        a->values[i] = argv[++*at];
    } else {
        return tm_fail(e, TM_USAGE, "--%s needs a value: --%s %s", c->options[i].name, c->options[i].name,
                       c->options[i].arg);
    }
    return TM_OK;
}

static int parse_short(const tm_command *c, int argc, char **argv, int *at, tm_args *a, tm_error *e) {
    const char *word = argv[*at] + 1;
    for (; *word; word++) {
        int i = 0;
        while (i < TM_MAX_OPTIONS && c->options[i].name && c->options[i].letter != *word)
            i++;
        if (i == TM_MAX_OPTIONS || !c->options[i].name) {
            if (c->passes_on) {
                tm_list_add(&a->passed, argv[*at]);
                return TM_OK;
            }
            return tm_fail(e, TM_USAGE, "%s has no option -%c", c->name, *word);
        }
        if (!c->options[i].arg) {
            a->values[i] = "1";
        } else {
            a->values[i] = word[1] ? word + 1 : *at + 1 < argc ? argv[++*at] : NULL;
            return a->values[i] ? TM_OK : tm_fail(e, TM_USAGE, "-%c needs a value", *word);
        }
    }
    return TM_OK;
}

int tm_parse_args(const tm_command *c, int argc, char **argv, tm_args *a, tm_error *e) {
    *a = (tm_args){.command = c};
    int rc = TM_OK;
    bool only_words = false;
    for (int i = 0; i < argc && !rc; i++) {
        const char *w = argv[i];
        bool full = c->passes_on && a->words.count >= (size_t)c->max_args;
        if (only_words || *w != '-' || !w[1])
            tm_list_add(full ? &a->passed : &a->words, w);
        else if (!strcmp(w, "--"))
            only_words = true;
        else if (!strncmp(w, "--", 2))
            rc = parse_long(c, argc, argv, &i, a, e);
        else
            rc = parse_short(c, argc, argv, &i, a, e);
    }
    if (rc || (a->words.count >= (size_t)c->min_args && a->words.count <= (size_t)c->max_args))
        return rc;
    const tm_command *verb = a->words.count ? tm_find_command(a->words.items[0]) : NULL;
    if (a->words.count < (size_t)c->min_args)
        rc = tm_fail(e, TM_USAGE, "%s needs %s", c->name, c->usage);
    else
        rc = tm_fail(e, TM_USAGE, "%s: \"%s\" is one word too many", c->name, a->words.items[c->max_args]);
    if (verb && a->words.count > 1)
        tm_next(e, "Did you mean: tt-model %s %s", verb->name, a->words.items[1]);
    else
        tm_next(e, "`tt-model %s --help`", c->name);
    return rc;
}

void tm_args_free(tm_args *a) {
    tm_list_free(&a->words);
    tm_list_free(&a->passed);
    tm_buf_free(&a->evidence);
}

static void print_options(const tm_option *o, int n) {
    for (int i = 0; i < n && o[i].name; i++) {
        if (!o[i].help)
            continue;
        char left[64];
        snprintf(left, sizeof left, "%s%c%s --%s%s%s", o[i].letter ? "-" : " ", o[i].letter ? o[i].letter : ' ',
                 o[i].letter ? "," : " ", o[i].name, o[i].arg ? " " : "", o[i].arg ? o[i].arg : "");
        printf("  %-26s %s\n", left, o[i].help);
    }
}

static const tm_option global_options[] = {{"verbose", 'v', NULL, "print every step, without redrawing"},
                                           {"no-color", 0, NULL, "no colour (so does NO_COLOR)"},
                                           {"version", 0, NULL, "the version"},
                                           {"help", 'h', NULL, "this text"}};

static void print_program_help(void) {
    printf("tt-model: get, serve and publish model packages of the Hugging Face Hub.\n\n"
           "Usage: tt-model [-v] [--no-color] COMMAND [ARGUMENTS]\n");
    const char *group = "";
    for (const tm_command *c = tm_commands; c->name; c++) {
        if (strcmp(group, c->group) != 0)
            printf("\n%s:\n", group = c->group);
        printf("  %-11s %s\n", c->name, c->summary);
    }
    printf("\nOptions:\n");
    print_options(global_options, 4);
    printf("\nFirst steps:\n"
           "  tt-model pull changh95/superpoint-p150 --with-weights\n"
           "  tt-model serve changh95/superpoint-p150\n"
           "  tt-model stop changh95/superpoint-p150\n\n"
           "`tt-model COMMAND --help` tells more of each. Exit codes: 0 fine, 1 failed, 2 usage, 3 no\n"
           "accelerator free, 4 a program is missing, 5 a program failed, 6 permission denied, 7 not\n"
           "supported, 8 offline, 9 configuration, 130 interrupted.\n");
}

void tm_print_help(const tm_command *c) {
    if (!c) {
        print_program_help();
        return;
    }
    printf("Usage: tt-model %s%s%s%s%s\n\n%c%s.\n", c->name, *c->usage ? " " : "", c->usage,
           c->options[0].name ? " [OPTIONS]" : "", c->passes_on ? " [SERVER ARGUMENTS]" : "",
           c->summary[0] - ('a' <= c->summary[0] && c->summary[0] <= 'z' ? 32 : 0), c->summary + 1);
    if (c->options[0].name) {
        printf("\nOptions:\n");
        print_options(c->options, TM_MAX_OPTIONS);
    }
    if (c->details)
        printf("\n%s\n", c->details);
}
