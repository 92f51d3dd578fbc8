#include "output/text.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/fail.h"
#include "common/input.h"
#include "common/jsonout.h"

static const char identity_name[] = "superpoint.json";
enum { MAX_IDENTITY = 1 << 20 };

static sp_status failed(const char *path, sp_error *err) {
    return fail(err, SP_ERR_IO, "%.300s: cannot be written: %s", path, strerror(errno));
}

static sp_status begin(const char *path, writer **w, sp_error *err) {
    *w = calloc(1, sizeof **w);
    if (*w && ((*w)->path = strdup(path)))
        return SP_OK;
    free(*w);
    *w = NULL;
    return fail(err, SP_ERR_MEMORY, "%.300s: out of memory", path);
}

void text_abandon(writer *w) {
    if (w->file)
        fclose(w->file);
    buffer_free(&w->scratch);
    free(w->path);
    free(w);
}

sp_status text_create_file(const char *path, writer **out, sp_error *err) {
    writer *w;
    sp_status status = begin(path, &w, err);
    if (status != SP_OK)
        return status;
    w->file = fopen(path, "wbe");
    if (!w->file) {
        status = failed(path, err);
        text_abandon(w);
        return status;
    }
    *out = w;
    return SP_OK;
}

sp_status text_flush(writer *w, sp_error *err) {
    if (w->scratch.failed)
        return fail(err, SP_ERR_MEMORY, "%.300s: out of memory", w->path);
    const bool ok = fwrite(w->scratch.data, 1, w->scratch.size, w->file) == w->scratch.size;
    buffer_clear(&w->scratch);
    return ok ? SP_OK : failed(w->path, err);
}

sp_status text_close(writer *w, sp_error *err) {
    FILE *file = w->file;
    w->file = NULL;
    sp_status status = file && fclose(file) != 0 ? failed(w->path, err) : SP_OK;
    text_abandon(w);
    return status;
}

/* Make every folder of `path` that is missing, the last part excepted. */
static bool make_parents(char *path) {
    for (char *p = path + 1; (p = strchr(p, '/')) != NULL; p++) {
        *p = '\0';
        const bool ok = mkdir(path, 0777) == 0 || errno == EEXIST;
        *p = '/';
        if (!ok)
            return false;
    }
    return true;
}

static bool climbs(const char *name) {
    for (const char *p = name; p; p = strchr(p, '/')) {
        p += *p == '/';
        if (strncmp(p, "..", 2) == 0 && (p[2] == '/' || p[2] == '\0'))
            return true;
    }
    return false;
}

sp_status folder_put(writer *w, const char *name, const char *suffix, sp_error *err) {
    char path[PATH_MAX];
    if (w->scratch.failed)
        return fail(err, SP_ERR_MEMORY, "%.300s: out of memory", w->path);
    if (climbs(name))
        return fail(err, SP_ERR_ARGUMENT, "%.300s: its result would lie outside the folder; give --root", name);
    if ((size_t)snprintf(path, sizeof path, "%s/%s%s", w->path, name, suffix) >= sizeof path)
        return fail(err, SP_ERR_ARGUMENT, "%.300s: the path is too long", name);
    FILE *file = make_parents(path) ? fopen(path, "wbe") : NULL;
    if (!file)
        return failed(path, err);
    bool ok = fwrite(w->scratch.data, 1, w->scratch.size, file) == w->scratch.size;
    buffer_clear(&w->scratch);
    ok = fclose(file) == 0 && ok;
    return ok ? SP_OK : failed(path, err);
}

sp_status folder_create(const char *path, const char *identity, writer **out, sp_error *err) {
    writer *w;
    sp_status status = begin(path, &w, err);
    if (status != SP_OK)
        return status;
    if (mkdir(path, 0777) != 0 && errno != EEXIST)
        status = failed(path, err);
    if (status == SP_OK) {
        buffer_text(&w->scratch, identity);
        buffer_char(&w->scratch, '\n');
        status = folder_put(w, identity_name, "", err);
    }
    if (status == SP_OK)
        *out = w;
    else
        text_abandon(w);
    return status;
}

void text_put_float(buffer *out, float value) {
    json_put_float(out, value);
    if (!out->failed && out->size >= 2 && out->data[out->size - 1] == '0' && out->data[out->size - 2] == '.')
        out->size -= 2;
}

char *text_first_line(const char *path) {
    FILE *file = fopen(path, "rbe");
    char *line = NULL;
    size_t room = 0;
    if (!file)
        return NULL;
    ssize_t length = getline(&line, &room, file);
    fclose(file);
    if (length <= 0) {
        free(line);
        return NULL;
    }
    if (line[length - 1] == '\n')
        line[length - 1] = '\0';
    return line;
}

sp_status folder_identity(const char *path, char **identity, sp_error *err) {
    char file[PATH_MAX];
    snprintf(file, sizeof file, "%s/%s", path, identity_name);
    *identity = text_first_line(file);
    return *identity ? SP_OK : fail(err, SP_ERR_NOT_FOUND, "%.300s: has no %s of this program", path, identity_name);
}

sp_status text_create_headed(const char *path, const char *before, const char *identity, const char *after,
                             writer **out, sp_error *err) {
    writer *w;
    sp_status status = text_create_file(path, &w, err);
    if (status != SP_OK)
        return status;
    buffer_text(&w->scratch, before);
    buffer_text(&w->scratch, identity);
    buffer_text(&w->scratch, after);
    status = text_flush(w, err);
    if (status == SP_OK)
        *out = w;
    else
        text_abandon(w);
    return status;
}
