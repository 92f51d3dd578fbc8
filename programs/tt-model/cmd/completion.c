/* completion.c - tt-model completion: scripts for bash, zsh and fish, from the table of commands. */
#include "base/error.h"
#include "cli.h"

#include <stdio.h>
#include <string.h>

static void words_of(const tm_command *c) {
    for (int i = 0; i < TM_MAX_OPTIONS && c->options[i].name; i++)
        if (c->options[i].help)
            printf(" --%s", c->options[i].name);
}

static void commands(void) {
    for (const tm_command *c = tm_commands; c->name; c++)
        printf(" %s", c->name);
}

/* Ids of installed packages, for the commands that take one. */
#define INSTALLED "tt-model list 2>/dev/null | sed -n 's/^  [^ ]* \\([^ ]*\\/[^ ]*\\) .*/\\1/p'"

static void bash(void) {
    printf("_tt_model() {\n"
           "  local cur=${COMP_WORDS[COMP_CWORD]} cmd= i\n"
           "  for ((i = 1; i < COMP_CWORD; i++)); do\n"
           "    case ${COMP_WORDS[i]} in -*) ;; *) cmd=${COMP_WORDS[i]}; break;; esac\n"
           "  done\n"
           "  if [ -z \"$cmd\" ]; then\n"
           "    COMPREPLY=($(compgen -W \"");
    commands();
    printf(
        " --verbose --no-color --version --help\" -- \"$cur\"))\n    return\n  fi\n  local words=\n  case $cmd in\n");
    for (const tm_command *c = tm_commands; c->name; c++) {
        printf("    %s) words=\"", c->name);
        words_of(c);
        printf(" --help\";;\n");
    }
    printf("  esac\n"
           "  case $cur in\n"
           "    -*) COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"));;\n"
           "    *) case $cmd in\n"
           "         serve|stop|logs|info|profiles|rm|pull) COMPREPLY=($(compgen -W \"$(" INSTALLED
           ")\" -- \"$cur\"));;\n"
           "         completion) COMPREPLY=($(compgen -W \"bash zsh fish\" -- \"$cur\"));;\n"
           "         push|package) COMPREPLY=($(compgen -f -- \"$cur\"));;\n"
           "       esac;;\n"
           "  esac\n"
           "}\n"
           "complete -F _tt_model tt-model\n");
}

static void zsh(void) {
    printf("#compdef tt-model\nautoload -U +X bashcompinit && bashcompinit\n");
    bash();
}

static void fish(void) {
    printf("complete -c tt-model -f\n");
    for (const tm_command *c = tm_commands; c->name; c++) {
        printf("complete -c tt-model -n __fish_use_subcommand -a %s -d \"%s\"\n", c->name, c->summary);
        for (int i = 0; i < TM_MAX_OPTIONS && c->options[i].name; i++)
            if (c->options[i].help)
                printf("complete -c tt-model -n \"__fish_seen_subcommand_from %s\" -l %s%s -d \"%s\"\n", c->name,
                       c->options[i].name, c->options[i].arg ? " -r" : "", c->options[i].help);
    }
    printf("complete -c tt-model -n \"__fish_seen_subcommand_from serve stop logs info profiles rm pull\" "
           "-a \"(" INSTALLED ")\"\n");
}

int tm_cmd_completion(const tm_args *a, tm_error *e) {
    const char *shell = a->words.items[0];
    if (!strcmp(shell, "bash"))
        bash();
    else if (!strcmp(shell, "zsh"))
        zsh();
    else if (!strcmp(shell, "fish"))
        fish();
    else
        return tm_fail(e, TM_USAGE, "completions are for bash, zsh and fish, not for %s", shell);
    return TM_OK;
}
