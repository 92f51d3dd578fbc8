#include "startup.h"

#include "base/fs.h"
#include "base/json.h"
#include "base/paths.h"
#include "native.h"

#include <errno.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define UNIT "tt-model-resume.service"

/* Longer than a server is given to end. */
enum { STOP_SECONDS = 130 };

static char *user_units(void) {
    const char *config = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
    return config && *config == '/' ? tm_join(config, "systemd/user")
                                    : tm_join(home && *home ? home : "/", ".config/systemd/user");
}

char *tm_startup_unit(void) {
    char *dir = user_units(), *path = tm_join(dir, UNIT);
    free(dir);
    return path;
}

/* A word in double quotes as systemd reads them: its specifiers and variables are not wanted. */
static void add_quoted(tm_buf *b, const char *s, bool command) {
    tm_buf_puts(b, "\"");
    for (; *s; s++) {
        if (*s == '"' || *s == '\\')
            tm_buf_puts(b, "\\");
        if (*s == '%' || (*s == '$' && command))
            tm_buf_add(b, s, 1);
        tm_buf_add(b, s, 1);
    }
    tm_buf_puts(b, "\"");
}

static int unit_text(tm_buf *b, tm_error *e) {
    char self[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    if (n < 0)
        return tm_fail(e, TM_ERROR, "cannot find this program: %s", strerror(errno));
    self[n] = '\0';
    tm_buf_puts(b, "# Written by `tt-model serve --restart`, removed when the last such server is stopped.\n"
                   "[Unit]\nDescription=Model servers that tt-model brings back\n\n"
                   "[Service]\nType=oneshot\nRemainAfterExit=yes\n");
    /* What decides where the records are. */
    const char *cache = getenv("XDG_CACHE_HOME");
    if (cache && *cache) {
        char *set = tm_fmt("XDG_CACHE_HOME=%s", cache);
        tm_buf_puts(b, "Environment=");
        add_quoted(b, set, false);
        tm_buf_puts(b, "\n");
        free(set);
    }
    tm_buf_puts(b, "ExecStart=");
    add_quoted(b, self, true);
    tm_buf_printf(b, " resume\nTimeoutStopSec=%d\n\n[Install]\nWantedBy=default.target\n", STOP_SECONDS);
    return TM_OK;
}

static bool any_wants(void) {
    json_t *all = tm_native_all(NULL), *state;
    bool found = false;
    size_t i;
    json_array_foreach(all, i, state) found = found || tm_json_bool(state, "restart", false);
    json_decref(all);
    return found;
}

int tm_startup_update(bool *wanted, tm_error *e) {
    char *dir = user_units(), *unit = tm_join(dir, UNIT), *link = tm_join(dir, "default.target.wants/" UNIT);
    tm_buf text = {0};
    int rc = TM_OK;
    *wanted = any_wants();
    if (*wanted) {
        rc = unit_text(&text, e);
        if (!rc)
            rc = tm_mkdirs_for(link, e);
        if (!rc)
            rc = tm_write_file(unit, text.data, text.len, e);
        /* What `systemctl --user enable` does; this works without a running systemd too. */
        if (!rc && symlink("../" UNIT, link) != 0 && errno != EEXIST)
            rc = tm_fail(e, TM_ERROR, "cannot make the link %s: %s", link, strerror(errno));
    } else {
        unlink(link);
        unlink(unit);
    }
    tm_buf_free(&text);
    free(dir);
    free(unit);
    free(link);
    return rc;
}

char *tm_startup_advice(void) {
    if (!tm_is_dir("/run/systemd/system"))
        return tm_strdup("systemd does not run here: have `tt-model resume` run when the machine starts");
    const struct passwd *user = getpwuid(getuid());
    char *linger = tm_fmt("/var/lib/systemd/linger/%s", user ? user->pw_name : "");
    bool lingers = tm_exists(linger);
    free(linger);
    return lingers ? NULL
                   : tm_strdup(
                         "it comes back when you log in; `loginctl enable-linger` makes that when the machine starts");
}
