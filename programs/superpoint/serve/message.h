/* The headers of a request, as far as HTTP itself has rules for them. */
#ifndef SP_SERVE_MESSAGE_H
#define SP_SERVE_MESSAGE_H

#include "http.h"

/* What is wrong with the request as HTTP: a status and *what, or 0. The strings are those of the library. */
int message_check(request *r, const char *method, const char *version, const char **what);

/* Whether the headers announce a body. */
bool message_has_body(request *r);

/* Whether the client asks for the connection's end, or speaks a version in which it ends anyway. */
bool message_ends_connection(request *r);

/* The id that the client gave, where it can stand in a header and a log, else one of our own. */
void message_take_id(request *r);

#endif
