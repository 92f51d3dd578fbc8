#include "provenance.h"

#include "base/process.h"
#include "base/text.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

/* What git prints, without its last newline; NULL when it fails. */
static char *git(const char *dir, const char *a, const char *b, const char *c, const char *d) {
    char *argv[] = {(char *)"git", (char *)a, (char *)b, (char *)c, (char *)d, NULL};
    tm_buf out = {0};
    int status = 1;
    if (tm_run(argv, dir, &out, NULL, &status, NULL) != TM_OK || status != 0) {
        tm_buf_free(&out);
        return NULL;
    }
    char *text = tm_buf_take(&out);
    size_t n = strlen(text);
    while (n && text[n - 1] == '\n')
        text[--n] = '\0';
    return text;
}

/* An address without the user and the password that may stand in it. */
static char *public_remote(const char *remote) {
    const char *scheme = strstr(remote, "://"), *at = scheme ? strchr(scheme, '@') : NULL;
    const char *slash = scheme ? strchr(scheme + 3, '/') : NULL;
    if (!at || (slash && at > slash))
        return tm_strdup(remote);
    return tm_fmt("%.*s://%s", (int)(scheme - remote), remote, at + 1);
}

json_t *tm_provenance(const char *dir) {
    char *sha = git(dir, "rev-parse", "HEAD", NULL, NULL);
    if (!sha)
        return json_null();
    char *status = git(dir, "status", "--porcelain", NULL, NULL),
         *describe = git(dir, "describe", "--tags", "--always", NULL);
    char *remote = git(dir, "remote", "get-url", "origin", NULL),
         *branch = git(dir, "branch", "--show-current", NULL, NULL);
    char *on_remotes = git(dir, "branch", "-r", "--contains", "HEAD");
    char *shown = remote ? public_remote(remote) : NULL;
    json_t *out = json_pack("{s:s, s:s?, s:b, s:s, s:s?, s:s?, s:b}", "sha", sha, "describe", describe, "dirty",
                            status && *status, "mode", "local", "remote", shown, "branch",
                            branch && *branch ? branch : NULL, "pushed", on_remotes && *on_remotes);
    free(sha);
    free(status);
    free(describe);
    free(remote);
    free(shown);
    free(branch);
    free(on_remotes);
    return out;
}

int64_t tm_build_time(const char *dir, const json_t *provenance) {
    const char *epoch = getenv("SOURCE_DATE_EPOCH");
    int64_t when = epoch && *epoch ? strtoll(epoch, NULL, 10) : 0;
    if (when <= 0 && json_is_object(provenance) && !tm_json_bool(provenance, "dirty", true)) {
        char *text = git(dir, "log", "-1", "--format=%ct", NULL);
        when = text ? strtoll(text, NULL, 10) : 0;
        free(text);
    }
    return when > 0 ? when : (int64_t)time(NULL);
}
