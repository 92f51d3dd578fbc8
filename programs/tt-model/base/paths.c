#include "paths.h"

#include "fs.h"
#include "text.h"

#include <ctype.h>
#include <errno.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

enum { MAX_TOKEN = 4096 };

static const char *env(const char *name) {
    const char *v = getenv(name);
    return v && *v ? v : NULL;
}

static char *expand(const char *path) {
    if (path[0] != '~' || (path[1] != '/' && path[1] != '\0'))
        return tm_strdup(path);
    const char *home = env("HOME");
    struct passwd *pw = home ? NULL : getpwuid(getuid());
    return tm_fmt("%s%s", home ? home : pw ? pw->pw_dir : "/", path + 1);
}

static char *cache_home(void) {
    const char *xdg = env("XDG_CACHE_HOME");
    return expand(xdg && *xdg == '/' ? xdg : "~/.cache");
}

char *tm_hf_home(void) {
    if (env("HF_HOME"))
        return expand(env("HF_HOME"));
    char *base = cache_home(), *out = tm_join(base, "huggingface");
    free(base);
    return out;
}

char *tm_hf_hub(void) {
    const char *hub = env("HF_HUB_CACHE") ? env("HF_HUB_CACHE") : env("HUGGINGFACE_HUB_CACHE");
    if (hub)
        return expand(hub);
    char *home = tm_hf_home(), *out = tm_join(home, "hub");
    free(home);
    return out;
}

char *tm_root(void) {
    char *base = cache_home(), *now = tm_join(base, "tt-model"), *old = tm_join(base, "tt-kernel");
    free(base);
    if (!tm_exists(now) && tm_exists(old)) {
        free(now);
        return old;
    }
    free(old);
    return now;
}

char *tm_root_file(const char *fmt, ...) {
    va_list ap;
    char *rest = NULL;
    va_start(ap, fmt);
    if (vasprintf(&rest, fmt, ap) < 0)
        rest = NULL;
    va_end(ap);
    char *root = tm_root(), *out = tm_join(root, rest ? rest : "");
    free(root);
    free(rest);
    return out;
}

char *tm_pulled_manifest(const char *repo_id) {
    const char *slash = strchr(repo_id, '/');
    return tm_root_file("pulled/%.*s__%s/tt_kernel_manifest.json", (int)(slash - repo_id), repo_id, slash + 1);
}

char *tm_hf_endpoint(void) {
    const char *set = env("HF_ENDPOINT");
    char *out = tm_strdup(set ? set : "https://huggingface.co");
    for (size_t n = strlen(out); n && out[n - 1] == '/'; n--)
        out[n - 1] = '\0';
    return out;
}

char *tm_hf_token_path(void) {
    if (env("HF_TOKEN_PATH"))
        return expand(env("HF_TOKEN_PATH"));
    char *home = tm_hf_home(), *out = tm_join(home, "token");
    free(home);
    return out;
}

/* A token is one printable word; anything else would end up in a header line. */
static char *clean_token(const char *text) {
    while (isspace((unsigned char)*text))
        text++;
    size_t n = strlen(text);
    while (n && isspace((unsigned char)text[n - 1]))
        n--;
    for (size_t i = 0; i < n; i++)
        if (!isgraph((unsigned char)text[i]))
            return NULL;
    return n ? tm_strndup(text, n) : NULL;
}

char *tm_hf_token(void) {
    const char *set = env("HF_TOKEN") ? env("HF_TOKEN") : env("HUGGING_FACE_HUB_TOKEN");
    if (set)
        return clean_token(set);
    char *path = tm_hf_token_path(), *out = NULL;
    tm_buf text = {0};
    if (tm_read_file(path, MAX_TOKEN, &text, NULL) == TM_OK)
        out = clean_token(text.data);
    tm_buf_free(&text);
    free(path);
    return out;
}

const char *tm_offline(void) {
    static const char *const names[] = {"HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"};
    for (size_t i = 0; i < 2; i++) {
        const char *v = env(names[i]);
        if (v && (!strcmp(v, "1") || !strcasecmp(v, "true") || !strcasecmp(v, "yes") || !strcasecmp(v, "on")))
            return names[i];
    }
    return NULL;
}

int tm_env_int(const char *name, long min, long max, long otherwise, long *out, tm_error *e) {
    const char *v = env(name);
    if (!v && tm_starts_with(name, "TT_MODEL_")) {
        char *old = tm_fmt("TT_KERNEL_%s", name + strlen("TT_MODEL_"));
        v = env(old);
        free(old);
    }
    *out = otherwise;
    if (!v)
        return TM_OK;
    char *end;
    errno = 0;
    long n = strtol(v, &end, 10);
    if (errno || *end || end == v || n < min || n > max)
        return tm_fail(e, TM_CONFIG, "%s=%s is not a whole number of %ld to %ld", name, v, min, max);
    *out = n;
    return TM_OK;
}
