/* profile.c - serve settings: their checks, the merge of a profile, boards and meshes. */
#include "base/fs.h"
#include "manifest.h"

#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct field {
    const char *name;
    json_type type;
    json_int_t min, max; /* of integers */
} field;

static const field serve_fields[] = {
    {"hardware", JSON_STRING, 0, 0},
    {"mesh_device", JSON_STRING, 0, 0},
    {"port", JSON_INTEGER, 1, 65535},
    {"max_model_len", JSON_INTEGER, 1, INT_MAX},
    {"max_num_seqs", JSON_INTEGER, 1, INT_MAX},
    {"block_size", JSON_INTEGER, 1, INT_MAX},
    {"server_timeout", JSON_INTEGER, 1, INT_MAX},
    {"capabilities", JSON_OBJECT, 0, 0},
    {"additional_config", JSON_OBJECT, 0, 0},
    {"args", JSON_ARRAY, 0, 0},
    {"env", JSON_OBJECT, 0, 0},
};

/* The key that is wrong, for the caller that knows the line it stands on. */
static void note(tm_buf *key, const char *name) {
    if (key)
        tm_buf_puts(key, name);
}

static int wrong(tm_error *e, const char *where, const char *key, const char *what) {
    return tm_fail(e, TM_ERROR, "%s: `%s` %s", where, key, what);
}

static int check_args(const json_t *args, const char *where, tm_error *e) {
    size_t i, k;
    json_t *v, *w;
    json_array_foreach(args, i, v) {
        if (json_is_array(v)) {
            json_array_foreach(v, k, w) {
                if (!json_is_string(w))
                    return wrong(e, where, "args", "holds something that is not text");
            }
        } else if (!json_is_string(v)) {
            return wrong(e, where, "args", "holds something that is not text");
        }
    }
    return TM_OK;
}

static int check_env(json_t *env, const char *where, tm_error *e) {
    const char *key;
    json_t *v;
    json_object_foreach(env, key, v) {
        bool good = *key && !isdigit((unsigned char)*key) && strlen(key) <= 256;
        for (const char *s = key; *s; s++)
            good = good && (isalnum((unsigned char)*s) || *s == '_');
        if (!good)
            return tm_fail(e, TM_ERROR, "%s: `env` has a variable named \"%.100s\"", where, key);
        if (!json_is_string(v))
            return tm_fail(e, TM_ERROR, "%s: `env.%s` is not text (put it in quotes)", where, key);
    }
    return TM_OK;
}

static int check_capabilities(json_t *caps, const char *where, tm_error *e) {
    const char *key;
    json_t *v;
    json_object_foreach(caps, key, v) {
        if (strcmp(key, "tool_parser") != 0 && strcmp(key, "reasoning_parser") != 0)
            return tm_fail(e, TM_ERROR, "%s: `capabilities.%s` is not known", where, key);
        if (!json_is_string(v) && !json_is_null(v))
            return tm_fail(e, TM_ERROR, "%s: `capabilities.%s` is not text", where, key);
    }
    return TM_OK;
}

static const field *find_field(const char *key) {
    for (size_t i = 0; i < sizeof serve_fields / sizeof *serve_fields; i++)
        if (!strcmp(serve_fields[i].name, key))
            return &serve_fields[i];
    return NULL;
}

int tm_check_serve(const json_t *serve, const char *where, bool named, tm_buf *bad_key, tm_error *e) {
    const char *key;
    json_t *v;
    json_object_foreach((json_t *)serve, key, v) {
        if (named && (!strcmp(key, "name") || !strcmp(key, "description")))
            continue;
        const field *f = find_field(key);
        int rc = TM_OK;
        if (!f)
            rc = wrong(e, where, key, "is not known");
        else if (!json_is_null(v) && json_typeof(v) != f->type)
            rc = wrong(e, where, key, "is of the wrong type");
        else if (f->type == JSON_INTEGER && json_is_integer(v) &&
                 (json_integer_value(v) < f->min || json_integer_value(v) > f->max))
            rc = tm_fail(e, TM_ERROR, "%s: `%s` is not within %lld and %lld", where, key, (long long)f->min,
                         (long long)f->max);
        if (rc) {
            note(bad_key, key);
            return rc;
        }
    }
    const char *hardware = tm_json_str(serve, "hardware"), *mesh = tm_json_str(serve, "mesh_device");
    int rows, cols;
    const char *at = "hardware";
    int rc = TM_OK;
    if (hardware && *hardware && !tm_hardware_chips(hardware))
        rc = tm_fail(e, TM_ERROR, "%s: `hardware` %.64s is not a board (p150, p300x2 …)", where, hardware);
    if (!rc && mesh && *mesh && !tm_mesh_shape(mesh, &rows, &cols)) {
        rc = tm_fail(e, TM_ERROR, "%s: `mesh_device` %.64s is neither (rows, columns) nor a known name", where, mesh);
        at = "mesh_device";
    }
    if (!rc) {
        rc = check_args(json_object_get(serve, "args"), where, e);
        at = "args";
    }
    if (!rc) {
        rc = check_env(json_object_get(serve, "env"), where, e);
        at = "env";
    }
    if (!rc) {
        rc = check_capabilities(json_object_get(serve, "capabilities"), where, e);
        at = "capabilities";
    }
    if (rc)
        note(bad_key, at);
    return rc;
}

json_t *tm_merge(const json_t *base, const json_t *over) {
    json_t *out = json_is_object(base) ? json_deep_copy(base) : json_object();
    const char *key;
    json_t *v;
    json_object_foreach((json_t *)over, key, v) {
        if (tm_json_empty(v))
            continue;
        json_t *old = json_object_get(out, key);
        json_object_set_new(out, key, json_is_object(v) && json_is_object(old) ? tm_merge(old, v) : json_deep_copy(v));
    }
    return out;
}

int tm_hardware_chips(const char *hardware) {
    static const struct {
        const char *board;
        int chips;
    } boards[] = {{"p100", 1}, {"p150", 1}, {"n150", 1}, {"e150", 1}, {"p300", 2}, {"n300", 2}};
    for (size_t i = 0; i < sizeof boards / sizeof *boards; i++) {
        if (strncmp(hardware, boards[i].board, 4) != 0)
            continue;
        const char *rest = hardware + 4;
        if (*rest >= 'a' && *rest <= 'w')
            rest++;
        if (!*rest)
            return boards[i].chips;
        char *end;
        long n = *rest == 'x' && isdigit((unsigned char)rest[1]) ? strtol(rest + 1, &end, 10) : 0;
        return n >= 1 && n * boards[i].chips <= TM_MAX_CHIPS && !*end ? (int)n * boards[i].chips : 0;
    }
    return 0;
}

bool tm_mesh_shape(const char *mesh, int *rows, int *cols) {
    static const struct {
        const char *name;
        int rows, cols;
    } known[] = {{"N150", 1, 1},   {"P100", 1, 1},   {"P150", 1, 1},   {"P150x2", 1, 2},   {"N300", 1, 2},
                 {"P300", 1, 2},   {"N150x4", 1, 4}, {"P150x4", 1, 4}, {"P300x2", 1, 4},   {"T3K", 1, 8},
                 {"P150x8", 1, 8}, {"QB2", 2, 2},    {"TG", 4, 8},     {"BH-Galaxy", 4, 8}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (!strcmp(mesh, known[i].name)) {
            *rows = known[i].rows;
            *cols = known[i].cols;
            return true;
        }
    }
    int used = 0;
    return sscanf(mesh, "(%3d,%3d)%n", rows, cols, &used) == 2 && used > 0 && !mesh[used] && *rows > 0 && *cols > 0 &&
           *rows * *cols <= TM_MAX_CHIPS;
}

int tm_manifest_profile(const tm_manifest *m, const char *name, tm_profile *p, tm_error *e) {
    *p = (tm_profile){0};
    if (!name)
        name = m->default_profile;
    bool found = false;
    tm_buf names = {0};
    for (size_t i = 0; i < m->profile_count; i++) {
        found = found || !strcmp(m->profiles[i], name);
        tm_buf_printf(&names, "%s%s", i ? ", " : "", m->profiles[i]);
    }
    if (!found) {
        tm_fail(e, TM_USAGE, "%s has no serve profile \"%s\"", m->name, name);
        tm_next(e, "Its profiles: %s.", names.data);
    }
    tm_buf_free(&names);
    if (!found)
        return TM_USAGE;

    json_t *over = NULL, *v;
    size_t i;
    json_array_foreach(json_object_get(m->container, "serve_profiles"), i, v) {
        if (!strcmp(tm_json_str_or(v, "name", ""), name))
            over = v;
    }
    p->name = tm_strdup(name);
    p->serve = tm_merge(json_object_get(m->container, "serve"), over);
    p->hardware = tm_json_str(p->serve, "hardware");
    p->mesh_device = tm_json_str(p->serve, "mesh_device");
    if (p->hardware && *p->hardware)
        p->chips = tm_hardware_chips(p->hardware);
    if (p->mesh_device && *p->mesh_device)
        tm_mesh_shape(p->mesh_device, &p->rows, &p->cols);
    if (p->chips && p->rows && p->rows * p->cols != p->chips) {
        int rc = tm_fail(e, TM_ERROR, "profile %s: the mesh %s is %d chips, the hardware %s has %d", name,
                         p->mesh_device, p->rows * p->cols, p->hardware, p->chips);
        tm_profile_free(p);
        return rc;
    }
    return TM_OK;
}

void tm_profile_free(tm_profile *p) {
    free(p->name);
    json_decref(p->serve);
    *p = (tm_profile){0};
}
