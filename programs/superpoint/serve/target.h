/* Request targets (RFC 9112, 3.2) and their query strings. */
#ifndef SP_SERVE_TARGET_H
#define SP_SERVE_TARGET_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Take a target apart in place: /path?query, http://host/path?query, or "*". `*path` is percent-decoded,
 * without a slash at its end ("/" alone keeps it), `*query` is as sent, NULL when there is none. False for what is none
 * of these, for escapes that are cut or hold a zero, and for bytes that a target cannot hold.
 */
bool target_split(char *target, char **path, char **query);

/* The next name=value of a query, decoded in place ('+' is a space); false at the end or when an escape is wrong, with
 * *wrong set then. `*query` moves on. */
bool target_next(char **query, char **name, char **value, bool *wrong);

#endif
