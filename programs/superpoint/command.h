/* The subcommands of `superpoint`, one file each. */
#ifndef SUPERPOINT_COMMAND_H
#define SUPERPOINT_COMMAND_H

/* Exit codes of every subcommand. */
enum {
    EXIT_OK = 0,
    EXIT_FAILED = 1,       /* said on stderr what and where */
    EXIT_USAGE = 2,        /* the command line is wrong */
    EXIT_INTERRUPTED = 130 /* by SIGINT */
};

/* argv[0] is the subcommand's name; the result is the process's exit code. */
typedef int sp_command(int argc, char **argv);

sp_command sp_command_bench;
sp_command sp_command_blackhole_check;
sp_command sp_command_detect;
sp_command sp_command_eval;
sp_command sp_command_extract;
sp_command sp_command_info;
sp_command sp_command_match;
sp_command sp_command_serve;
sp_command sp_command_validate;

#endif
