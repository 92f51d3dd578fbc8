#include "model/hub_cache.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/error.h"
#include "base/file.h"

/* Format into `out`; false when it does not fit. */
static bool print_to(char *out, size_t size, const char *format, ...) __attribute__((format(printf, 3, 4)));
static bool print_to(char *out, size_t size, const char *format, ...) {
    va_list args;
    va_start(args, format);
    int n = vsnprintf(out, size, format, args);
    va_end(args);
    return n >= 0 && (size_t)n < size;
}

static bool exists(const char *path) {
    struct stat st;
    return stat(path, &st) == 0;
}

/* Letters, digits, '-', '_', '.', and `extra`; nothing that climbs out of a folder. */
static bool safe_name(const char *text, size_t length, char extra) {
    if (length == 0 || text[0] == '.' || text[0] == '-' || text[0] == '/' || text[length - 1] == '/')
        return false;
    for (size_t i = 0; i < length; i++) {
        if (!isalnum((unsigned char)text[i]) && !strchr("-_.", text[i]) && text[i] != extra)
            return false;
        if (i > 0 && text[i] == '.' && text[i - 1] == '.')
            return false;
    }
    return true;
}

/* "owner/name[@revision]" into its parts; the revision may hold slashes ("refs/pr/1"). */
static bool split_id(const char *text, char id[SP_HUB_MAX_ID], char revision[SP_HUB_MAX_REVISION]) {
    const char *at = strchr(text, '@'), *slash = strchr(text, '/');
    size_t length = at ? (size_t)(at - text) : strlen(text);
    if (!slash || (size_t)(slash - text) >= length || length >= SP_HUB_MAX_ID)
        return false;
    size_t owner = (size_t)(slash - text);
    if (!safe_name(text, owner, '.') || !safe_name(slash + 1, length - owner - 1, '.'))
        return false;
    memcpy(id, text, length);
    id[length] = '\0';
    if (at && !safe_name(at + 1, strlen(at + 1), '/'))
        return false;
    return print_to(revision, SP_HUB_MAX_REVISION, "%s", at ? at + 1 : "main");
}

static bool cache_folder(const char *given, char *out, size_t size) {
    static const struct {
        const char *variable, *below;
    } places[] = {{"HF_HUB_CACHE", ""},
                  {"HUGGINGFACE_HUB_CACHE", ""},
                  {"HF_HOME", "/hub"},
                  {"XDG_CACHE_HOME", "/huggingface/hub"},
                  {"HOME", "/.cache/huggingface/hub"}};
    if (given)
        return print_to(out, size, "%s", given);
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        const char *value = getenv(places[i].variable);
        if (value && *value)
            return print_to(out, size, "%s%s", value, places[i].below);
    }
    return false;
}

/* The commit that `revision` stands for: a ref's content, or itself when a snapshot has its name. */
static sp_status find_commit(const char *model, const char *id, char revision[SP_HUB_MAX_REVISION], sp_error *err) {
    char path[SP_HUB_MAX_PATH];
    if (print_to(path, sizeof path, "%s/refs/%s", model, revision) && exists(path)) {
        void *bytes = NULL;
        size_t size = 0;
        sp_status status = sp_file_read(path, SP_HUB_MAX_REVISION - 1, &bytes, &size, err);
        if (status != SP_OK)
            return status;
        while (size > 0 && isspace(((unsigned char *)bytes)[size - 1]))
            size--;
        memcpy(revision, bytes, size);
        revision[size] = '\0';
        free(bytes);
        if (!safe_name(revision, size, '.'))
            return sp_fail(err, SP_ERR_WEIGHTS_DATA, "%s: does not hold a commit", path);
        return SP_OK;
    }
    if (print_to(path, sizeof path, "%s/snapshots/%s", model, revision) && exists(path))
        return SP_OK;
    return sp_fail(err, SP_ERR_NOT_FOUND, "%s: revision %s is not in the cache (%s); pull it first", id, revision,
                   model);
}

sp_status sp_hub_find(const char *weights, const char *cache, sp_hub_entry *entry, sp_error *err) {
    *entry = (sp_hub_entry){.path = ""};
    if (exists(weights))
        return print_to(entry->path, sizeof entry->path, "%s", weights)
                   ? SP_OK
                   : sp_fail(err, SP_ERR_ARGUMENT, "weights: the path is longer than %d bytes", SP_HUB_MAX_PATH);
    char id[SP_HUB_MAX_ID], revision[SP_HUB_MAX_REVISION], folder[SP_HUB_MAX_PATH], model[SP_HUB_MAX_PATH];
    if (!split_id(weights, id, revision))
        return sp_fail(err, SP_ERR_NOT_FOUND, "%s: no such file, and not a Hub id (owner/name[@revision])", weights);
    char *slash = strchr(id, '/');
    if (!cache_folder(cache, folder, sizeof folder) ||
        !print_to(model, sizeof model, "%s/models--%.*s--%s", folder, (int)(slash - id), id, slash + 1))
        return sp_fail(err, SP_ERR_NOT_FOUND, "%s: no Hub cache folder: set HF_HOME", weights);
    if (!exists(model))
        return sp_fail(err, SP_ERR_NOT_FOUND, "%s: no such file, and not in the Hub cache (%s); pull it first", weights,
                       folder);
    sp_status status = find_commit(model, id, revision, err);
    if (status != SP_OK)
        return status;
    if (!print_to(entry->path, sizeof entry->path, "%s/snapshots/%s/model.safetensors", model, revision) ||
        !exists(entry->path)) {
        entry->path[0] = '\0';
        return sp_fail(err, SP_ERR_NOT_FOUND, "%s: snapshot %s has no model.safetensors", weights, revision);
    }
    memcpy(entry->id, id, sizeof id);
    memcpy(entry->revision, revision, sizeof revision);
    return SP_OK;
}
