#include "parts.h"

#include "base/fs.h"
#include "fetch.h"

#include <dirent.h>
#include <stdlib.h>
#include <unistd.h>

char *tm_part_path(const tm_parts *p, int64_t begin) {
    return tm_fmt("%s.%lld", p->incomplete, (long long)begin);
}

/* Safe to be cut anywhere: a part is removed only once its bytes are in the prefix. */
int tm_parts_absorb(const tm_parts *p, tm_error *e) {
    int rc = TM_OK;
    for (;;) {
        int64_t have = tm_file_size(p->incomplete), begin;
        if (have < 0)
            have = 0;
        begin = have / p->segment * p->segment;
        char *part = tm_part_path(p, begin);
        int64_t size = tm_file_size(part);
        if (size >= 0 && begin + size > have && begin + size <= p->size)
            rc = tm_append_file(p->incomplete, part, have - begin, e);
        else
            size = -1;
        if (!rc && size >= 0)
            unlink(part);
        free(part);
        if (rc || size < 0)
            return rc;
        int64_t grown = tm_file_size(p->incomplete);
        if (grown % p->segment != 0 || grown >= p->size)
            return TM_OK;
    }
}

void tm_parts_remove(const tm_parts *p, bool all) {
    char *dir = tm_dirname(p->incomplete), *prefix = tm_fmt("%s.", tm_basename(p->incomplete));
    DIR *d = opendir(dir);
    for (struct dirent *ent; d && (ent = readdir(d));) {
        if (tm_starts_with(ent->d_name, prefix))
            unlinkat(dirfd(d), ent->d_name, 0);
    }
    if (d)
        closedir(d);
    if (all)
        unlink(p->incomplete);
    free(dir);
    free(prefix);
}
