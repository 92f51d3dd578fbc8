/* code.h - the copy of the source code that a package carries, and its digest. */
#ifndef TM_CODE_H
#define TM_CODE_H

#include "authored.h"
#include "base/error.h"
#include "base/text.h"

/* Copy what `source` names into `out`. Left out: caches, virtual environments, logs and weights; `dropped`
 * names them. */
int tm_code_stage(const tm_authored *a, const char *out, tm_list *dropped, tm_error *e);

/* SHA-256 over every regular file below `dir`: its relative path, then its bytes, with nothing between.
 * The order is by the parts of the path, so that a/x comes before a-b/x. */
int tm_code_digest(const char *dir, char hex[65], tm_error *e);

/* That order: negative, 0 or positive. */
int tm_path_order(const char *a, const char *b);

/* Copy one file; directories are made. */
int tm_copy_file(const char *from, const char *to, tm_error *e);

#endif
