#include "extract/inputs.h"

#include <errno.h>
#include <fts.h>
#include <glob.h>
#include <limits.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "common/fail.h"

static sp_status no_memory(sp_error *err) {
    return fail(err, SP_ERR_MEMORY, "list of pictures: out of memory");
}

static const char *plain_name(const char *name) {
    for (;;) {
        if (name[0] == '/')
            name++;
        else if (name[0] == '.' && name[1] == '/')
            name += 2;
        else
            return name;
    }
}

static sp_status put(input_list *list, const char *name, const char *path, sp_error *err) {
    if (list->count == list->room) {
        const size_t room = list->room ? 2 * list->room : 256;
        input *more = realloc(list->items, room * sizeof *more);
        if (!more)
            return no_memory(err);
        list->items = more;
        list->room = room;
    }
    input *in = &list->items[list->count];
    *in = (input){strdup(plain_name(name)), strdup(path)};
    list->count++;
    return in->name && in->path ? SP_OK : no_memory(err);
}

static bool is_picture(const char *name) {
    static const char *const suffixes[] = {".jpg", ".jpeg", ".jpe", ".png",  ".ppm",
                                           ".pgm", ".pnm",  ".bmp", ".webp", ".gif"};
    const char *dot = strrchr(name, '.');
    for (size_t i = 0; dot && i < sizeof suffixes / sizeof suffixes[0]; i++)
        if (strcasecmp(dot, suffixes[i]) == 0)
            return true;
    return false;
}

static int by_name(const FTSENT **a, const FTSENT **b) {
    return strcmp((*a)->fts_name, (*b)->fts_name);
}

static int by_path(const void *a, const void *b) {
    return strcmp(((const input *)a)->path, ((const input *)b)->path);
}

/* Links are followed; one that leads back above itself is passed over. */
static sp_status put_folder(input_list *list, const char *folder, const char *base, sp_error *err) {
    char *roots[] = {(char *)folder, NULL};
    FTS *tree = fts_open(roots, FTS_LOGICAL | FTS_NOCHDIR, by_name);
    if (!tree)
        return fail(err, SP_ERR_IO, "%.300s: %s", folder, strerror(errno));
    const size_t skip = base ? strlen(base) : 0, first = list->count;
    sp_status status = SP_OK;
    for (FTSENT *e; status == SP_OK && (e = fts_read(tree)) != NULL;) {
        if (e->fts_info == FTS_DNR || e->fts_info == FTS_ERR)
            status = fail(err, SP_ERR_IO, "%.300s: %s", e->fts_path, strerror(e->fts_errno));
        else if (e->fts_info == FTS_F && is_picture(e->fts_name))
            status = put(list, e->fts_path + skip, e->fts_path, err);
    }
    fts_close(tree);
    if (status == SP_OK && list->count > first)
        qsort(list->items + first, list->count - first, sizeof *list->items, by_path);
    return status;
}

static sp_status put_pattern(input_list *list, const char *pattern, size_t skip, sp_error *err) {
    glob_t found;
    const int code = glob(pattern, 0, NULL, &found);
    if (code == GLOB_NOMATCH)
        return fail(err, SP_ERR_NOT_FOUND, "%.300s: matches nothing", pattern);
    if (code != 0)
        return fail(err, SP_ERR_IO, "%.300s: cannot be expanded", pattern);
    sp_status status = SP_OK;
    for (size_t i = 0; status == SP_OK && i < found.gl_pathc; i++) {
        struct stat st;
        const char *path = found.gl_pathv[i];
        if (stat(path, &st) == 0 && S_ISDIR(st.st_mode))
            status = put_folder(list, path, NULL, err);
        else
            status = put(list, path + skip, path, err);
    }
    globfree(&found);
    return status;
}

/* `text` below the root, if there is one. */
static sp_status put_operand(input_list *list, const input_options *o, const char *text, sp_error *err) {
    char path[PATH_MAX];
    const bool below = o->root && text[0] != '/';
    const size_t length =
        (size_t)(below ? snprintf(path, sizeof path, "%s/%s", o->root, text) : snprintf(path, sizeof path, "%s", text));
    if (length >= sizeof path)
        return fail(err, SP_ERR_ARGUMENT, "%.300s: the path is too long", text);
    const size_t skip = below ? length - strlen(text) : 0;
    struct stat st;
    if (stat(path, &st) != 0)
        return strpbrk(path, "*?[") ? put_pattern(list, path, skip, err) : put(list, path + skip, path, err);
    if (!S_ISDIR(st.st_mode))
        return put(list, path + skip, path, err);
    for (size_t n = length; n > 1 && path[n - 1] == '/'; n--)
        path[n - 1] = '\0';
    if (o->root)
        return put_folder(list, path, o->root, err);
    return put_folder(list, path, o->operands.count == 1 && !o->list ? path : NULL, err);
}

static sp_status put_list(input_list *list, const input_options *o, sp_error *err) {
    FILE *file = strcmp(o->list, "-") == 0 ? stdin : fopen(o->list, "re");
    if (!file)
        return fail(err, SP_ERR_NOT_FOUND, "%.300s: %s", o->list, strerror(errno));
    char *line = NULL;
    size_t room = 0;
    sp_status status = SP_OK;
    const int end = o->nulls ? '\0' : '\n';
    for (ssize_t n; status == SP_OK && (n = getdelim(&line, &room, end, file)) > 0;) {
        if (line[n - 1] == end)
            line[--n] = '\0';
        if (!o->nulls && n > 0 && line[n - 1] == '\r')
            line[--n] = '\0';
        if (n > 0)
            status = put_operand(list, o, line, err);
    }
    if (status == SP_OK && ferror(file))
        status = fail(err, SP_ERR_IO, "%.300s: %s", o->list, strerror(errno));
    free(line);
    if (file != stdin)
        fclose(file);
    return status;
}

/* Of equal names the first stays. */
static sp_status drop_repeated(input_list *list, sp_error *err) {
    struct hsearch_data seen = {0};
    size_t kept = 0;
    if (list->count == 0)
        return SP_OK;
    if (!hcreate_r(2 * list->count, &seen))
        return no_memory(err);
    for (size_t i = 0; i < list->count; i++) {
        ENTRY *found, entry = {.key = list->items[i].name};
        if (hsearch_r(entry, FIND, &found, &seen)) {
            free(list->items[i].name);
            free(list->items[i].path);
            list->repeated++;
            continue;
        }
        hsearch_r(entry, ENTER, &found, &seen);
        list->items[kept++] = list->items[i];
    }
    list->count = kept;
    hdestroy_r(&seen);
    return SP_OK;
}

sp_status inputs_collect(const input_options *o, input_list *list, sp_error *err) {
    sp_status status = SP_OK;
    *list = (input_list){0};
    for (size_t i = 0; status == SP_OK && i < o->operands.count; i++)
        status = put_operand(list, o, o->operands.names[i], err);
    if (status == SP_OK && o->list)
        status = put_list(list, o, err);
    if (status == SP_OK && o->root && o->operands.count == 0 && !o->list)
        status = put_folder(list, o->root, o->root, err);
    if (status == SP_OK)
        status = drop_repeated(list, err);
    if (status == SP_OK && list->count == 0)
        status = fail(err, SP_ERR_NOT_FOUND, "no picture was found");
    if (status != SP_OK)
        inputs_free(list);
    return status;
}

void inputs_free(input_list *list) {
    for (size_t i = 0; i < list->count; i++) {
        free(list->items[i].name);
        free(list->items[i].path);
    }
    free(list->items);
    *list = (input_list){0};
}
