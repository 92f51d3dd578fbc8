/*
 * error.h - how a part of the manager says that it failed.
 *
 * A function that can fail returns 0 or one of the codes below, which is also the exit code of the
 * program, and fills in a tm_error: what failed, why, and what to do about it. The codes are those of
 * the `tt` command line, so that a script reads both programs alike.
 */
#ifndef TM_ERROR_H
#define TM_ERROR_H

enum {
    TM_OK = 0,
    TM_ERROR = 1,         /* failed, and none of the codes below fits */
    TM_USAGE = 2,         /* the command line is wrong */
    TM_NO_DEVICES = 3,    /* no accelerator, or all that there are are taken */
    TM_TOOL_MISSING = 4,  /* Docker or another program is not there */
    TM_TOOL_FAILED = 5,   /* Docker, the server or another program failed */
    TM_NEEDS_SUDO = 6,    /* permission denied */
    TM_UNSUPPORTED = 7,   /* a schema, kind or architecture that is not handled here */
    TM_OFFLINE = 8,       /* the Hub cannot be reached, or must not be */
    TM_CONFIG = 9,        /* a token, an environment variable or a configuration file is wrong */
    TM_INTERRUPTED = 130, /* Ctrl-C */
};

typedef struct tm_error {
    int code;
    char what[512];  /* one sentence */
    char why[1024];  /* may be empty */
    char next[1024]; /* what to do; lines parted by \n; may be empty */
} tm_error;

/* Fill in `what` (and clear the rest) and return `code`. `e` may be NULL. */
int tm_fail(tm_error *e, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* Add the cause, or the advice, to an error that tm_fail made. */
void tm_why(tm_error *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void tm_next(tm_error *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* The name of a code as it stands in the JSON form of an error. */
const char *tm_code_name(int code);

#endif
