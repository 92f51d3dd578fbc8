#include "common/cli.h"

#include <stdio.h>
#include <string.h>

#include "common/fail.h"
#include "common/params.h"

enum { USAGE = 2, NAME_WIDTH = 30 };

static void print_option(const char *name, const char *value, const char *help, const char *preset) {
    char left[128];
    snprintf(left, sizeof left, "--%s%s%s", name, value ? " " : "", value ? value : "");
    if (strlen(left) > NAME_WIDTH - 2)
        printf("  %s\n  %-*s ", left, NAME_WIDTH - 1, "");
    else
        printf("  %-*s", NAME_WIDTH, left);
    printf("%s%s%s%s\n", help, preset ? " (" : "", preset ? preset : "", preset ? ")" : "");
}

static const cli_option *find(const cli_option *options, const char *name) {
    for (const cli_option *o = options; o->name; o++)
        if (strcmp(o->name, name) == 0)
            return o;
    return NULL;
}

static void print_params(const cli *c) {
    size_t count;
    const param_spec *specs = params_specs(&count);
    printf("\nDetection (defaults in brackets):\n");
    for (size_t i = 0; i < count; i++) {
        char name[64], preset[64];
        snprintf(name, sizeof name, "%s", specs[i].name);
        for (char *p = strchr(name, '_'); p; p = strchr(p, '_'))
            *p = '-';
        if (find(c->options, name)) /* the command has its own of that name */
            continue;
        params_text(c->params, &specs[i], preset, sizeof preset);
        print_option(name, specs[i].value, specs[i].help, *preset ? preset : NULL);
    }
}

static void print_help(const cli *c) {
    printf("usage: %s\n\n%s\nOptions:\n", c->usage, c->about);
    for (const cli_option *o = c->options; o->name; o++)
        print_option(o->name, o->value, o->help, NULL);
    print_option("help", NULL, "this text", NULL);
    if (c->params)
        print_params(c);
    if (c->setup) {
        printf("\nEngine:\n");
        for (const cli_option *o = sp_setup_options; o->name; o++)
            print_option(o->name, o->value, o->help, NULL);
    }
    if (c->epilogue)
        printf("\n%s", c->epilogue);
}

/* What kind of option `name` is, and whether it takes a value. */
typedef struct known {
    const cli_option *own, *setup;
    const param_spec *param;
    bool takes_value;
} known;

static bool look_up(const cli *c, const char *name, known *k) {
    *k = (known){.own = find(c->options, name)};
    if (!k->own && c->setup)
        k->setup = find(sp_setup_options, name);
    if (!k->own && !k->setup && c->params && !strchr(name, '_'))
        k->param = params_find(name);
    k->takes_value = k->own ? k->own->value != NULL : k->setup || k->param;
    return k->own || k->setup || k->param;
}

static sp_status apply(const cli *c, const known *k, const char *value, sp_error *err) {
    if (k->own && k->own->member) {
        char *member = (char *)c->context + k->own->member - 1;
        if (k->own->value)
            *(const char **)member = value;
        else
            *(bool *)member = true;
        return SP_OK;
    }
    if (k->own)
        return c->take(c->context, k->own, value, err);
    if (k->setup)
        return sp_setup_set(c->setup, k->setup->name, value, err);
    return params_set(c->params, k->param->name, value, err);
}

/* One "--name[=value]" with `next` the argument behind it (NULL at the end). *used: `next` was the value. */
static sp_status parse_option(const cli *c, const char *text, const char *next, bool *used, sp_error *err) {
    char name[64];
    const char *equals = strchr(text, '=');
    size_t length = equals ? (size_t)(equals - text) : strlen(text);
    known k;
    *used = false;
    snprintf(name, sizeof name, "%.*s", (int)(length < sizeof name ? length : sizeof name - 1), text);
    if (length >= sizeof name || !look_up(c, name, &k))
        return fail(err, SP_ERR_ARGUMENT, "--%s: is not an option of this command", name);
    if (!k.takes_value)
        return equals ? fail(err, SP_ERR_ARGUMENT, "--%s: takes no value", name) : apply(c, &k, NULL, err);
    if (equals)
        return apply(c, &k, equals + 1, err);
    bool word;
    if (k.param && k.param->kind == PARAM_BOOLEAN && !(next && params_boolean(next, &word)))
        return apply(c, &k, "true", err);
    if (!next)
        return fail(err, SP_ERR_ARGUMENT, "--%s: its value is missing", name);
    *used = true;
    return apply(c, &k, next, err);
}

/* Operands gather at the front of argv, where nothing is read any more. */
static sp_status take_operand(const cli *c, const char *text, sp_error *err) {
    if (!c->operands)
        return fail(err, SP_ERR_ARGUMENT, "%s: this command takes no operands", text);
    c->operands->names[c->operands->count++] = text;
    return SP_OK;
}

static int fail_usage(const cli *c, const sp_error *err) {
    fprintf(stderr, "%s: %s\n`%s --help` shows the options\n", c->program, err->text, c->program);
    return USAGE;
}

int cli_parse(const cli *c, int argc, char **argv) {
    bool operands_only = false;
    sp_error err = {0};
    if (c->operands)
        *c->operands = (cli_operands){(const char **)(argv + 1), 0};
    for (int i = 1; i < argc; i++) {
        sp_status status;
        const char *text = argv[i];
        if (operands_only || strncmp(text, "--", 2) != 0) {
            if (!operands_only && strcmp(text, "-h") == 0) {
                print_help(c);
                return 0;
            }
            if (!operands_only && text[0] == '-' && text[1])
                status = fail(&err, SP_ERR_ARGUMENT, "%s: is not an option; options begin with two dashes", text);
            else
                status = take_operand(c, text, &err);
        } else if (text[2] == '\0') {
            operands_only = true;
            continue;
        } else if (strcmp(text, "--help") == 0) {
            print_help(c);
            return 0;
        } else {
            bool used;
            status = parse_option(c, text + 2, i + 1 < argc ? argv[i + 1] : NULL, &used, &err);
            i += used;
        }
        if (status != SP_OK)
            return fail_usage(c, &err);
    }
    if (c->complete && c->complete(c->context, &err) != SP_OK)
        return fail_usage(c, &err);
    if (c->setup && c->params && c->params->resize == SP_RESIZE_FIXED) { /* what the engine prepares for */
        c->setup->engine.width = c->params->width;
        c->setup->engine.height = c->params->height;
    }
    return CLI_GO_ON;
}

int cli_fail(const cli *c, const sp_error *err) {
    fprintf(stderr, "%s: %s\n", c->program, err->text);
    return sp_status_exit(err->status);
}
