/* provenance.h - where the code of a package came from, as git tells it. */
#ifndef TM_PROVENANCE_H
#define TM_PROVENANCE_H

#include "base/json.h"

#include <stdint.h>

/* {sha, describe, dirty, mode, remote, branch, pushed} of the checkout that `dir` is in; null when it is in
 * none. A new reference. */
json_t *tm_provenance(const char *dir);

/* When the package was made: SOURCE_DATE_EPOCH, else the time of the checkout's commit if nothing is changed
 * there, else now. */
int64_t tm_build_time(const char *dir, const json_t *provenance);

#endif
