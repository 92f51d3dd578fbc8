/* package.c - tt-model package: from tt-model.yaml to a directory that push uploads. */
#include "base/fs.h"
#include "base/json.h"
#include "base/ui.h"
#include "cli.h"
#include "package/authored.h"
#include "package/card.h"
#include "package/code.h"
#include "package/compose.h"
#include "package/image_build.h"
#include "package/oci.h"
#include "package/provenance.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Debian packages that an image's libraries came from, written by packaging/rootfs.sh. */
#define LOCK_IN_IMAGE "usr/share/doc/image-packages.txt"

typedef struct work {
    tm_authored a;
    char *out, *final; /* built beside its place, then moved there */
    tm_built b;
    tm_image_built image;
    char code_hex[65], created[32];
    int64_t when;
} work;

static char *in_out(const work *w, const char *name) {
    return tm_join(w->out, name);
}

/* A directory that is not a package's is not overwritten. */
static int prepare_out(work *w, const char *wanted, tm_error *e) {
    w->final = wanted ? tm_strdup(wanted) : tm_fmt("dist/%s", tm_json_str(w->a.doc, "name"));
    char *mark = tm_join(w->final, TM_MANIFEST_NAME);
    bool ours = tm_exists(mark);
    free(mark);
    if (tm_exists(w->final) && !ours && rmdir(w->final) != 0)
        return tm_fail(e, TM_ERROR, "%s is there, and is no package: it is left alone", w->final);
    w->out = tm_fmt("%s.%ld.tmp", w->final, (long)getpid());
    int rc = tm_remove_tree(w->out, e);
    return rc ? rc : tm_mkdirs(w->out, e);
}

static int stage_code(work *w, tm_error *e) {
    char *code = in_out(w, "code");
    tm_list dropped = {0};
    tm_step("code", "copying the code");
    int rc = tm_mkdirs(code, e);
    if (!rc)
        rc = tm_code_stage(&w->a, code, &dropped, e);
    if (!rc)
        rc = tm_code_digest(code, w->code_hex, e);
    if (!rc)
        tm_step_done("digest %.16s", w->code_hex);
    for (size_t i = 0; i < dropped.count && !rc; i++)
        tm_note("○", "left out: %s", dropped.items[i]);
    tm_list_free(&dropped);
    free(code);
    return rc;
}

static void find_provenance(work *w) {
    const json_t *source = json_object_get(w->a.doc, "source"),
                 *first = json_array_get(json_object_get(source, "extra_code"), 0);
    const char *metal = tm_json_str(source, "tt_metal"), *root = tm_json_str(first, "root");
    char *dir = tm_authored_path(&w->a, root ? root : "."), *metal_dir = metal ? tm_authored_path(&w->a, metal) : NULL;
    w->b.source = tm_provenance(dir);
    w->b.tt_metal = metal_dir ? tm_provenance(metal_dir) : json_null();
    w->when = tm_build_time(dir, w->b.source);
    time_t t = (time_t)w->when;
    struct tm tm;
    gmtime_r(&t, &tm);
    strftime(w->created, sizeof w->created, "%Y-%m-%dT%H:%M:%S+00:00", &tm);
    if (tm_json_bool(w->b.source, "dirty", false))
        tm_note("!", "the checkout has changes that are not committed; the package says so");
    free(dir);
    free(metal_dir);
}

static json_t *image_config(const work *w) {
    const json_t *image = json_object_get(w->a.doc, "image");
    json_t *config = json_object(), *env = json_array(), *v;
    const char *key;
    json_object_foreach(json_object_get(image, "env"), key, v) {
        char *item = tm_fmt("%s=%s", key, json_string_value(v));
        json_array_append_new(env, json_string(item));
        free(item);
    }
    char *kind = tm_fmt("TT_MODEL_KIND=%s", tm_json_str_or(w->a.doc, "kind", "vllm-plugin"));
    json_array_append_new(env, json_string(kind));
    free(kind);
    json_object_set(config, "Entrypoint", json_object_get(image, "entrypoint"));
    json_object_set_new(config, "Env", env);
    json_object_set_new(config, "User", json_string(tm_json_str_or(image, "user", "1000:1000")));
    json_object_set_new(config, "WorkingDir", json_string(tm_json_str_or(image, "workdir", "/")));
    json_object_set_new(config, "Labels", tm_compose_labels(&w->a, w->b.source));
    return config;
}

static int build_image(work *w, tm_error *e) {
    const char *rootfs = tm_json_str(json_object_get(w->a.doc, "image"), "rootfs");
    if (!rootfs) {
        tm_fail(e, TM_UNSUPPORTED, "%s has no image.rootfs", w->a.yaml.path);
        tm_why(e, "Images that carry tt-metal are built by the Python tt-model; this program packages a directory.");
        return TM_UNSUPPORTED;
    }
    char *dir = tm_authored_path(&w->a, rootfs), *out = in_out(w, "image"), size[32];
    tm_step("image", "building the image");
    int rc = TM_OK;
    if (!tm_is_dir(dir)) {
        rc = tm_yaml_error(&w->a.yaml, "image.rootfs", e, "is no directory: %s", dir);
        tm_next(e, "packaging/rootfs.sh makes it");
    }
    json_t *config = image_config(w);
    tm_image_request q = {
        .rootfs = dir, .out = out, .name = tm_json_str(w->a.doc, "name"), .config = config, .created = w->when};
    if (!rc)
        rc = tm_image_build(&q, &w->image, e);
    if (!rc)
        tm_step_done("%s, %s", w->image.tag, tm_human_bytes((double)w->image.bytes, size));
    json_decref(config);
    free(dir);
    free(out);
    return rc;
}

static int copy_media(const work *w, tm_error *e) {
    size_t i;
    json_t *v;
    json_array_foreach(json_object_get(json_object_get(w->a.doc, "card"), "media"), i, v) {
        const char *path = json_string_value(v);
        char key[64];
        snprintf(key, sizeof key, "card.media.%zu", i);
        char *from = path ? tm_authored_path(&w->a, path) : NULL,
             *to = path ? tm_fmt("%s/media/%s", w->out, tm_basename(path)) : NULL;
        int rc = path ? tm_copy_file(from, to, e) : tm_yaml_error(&w->a.yaml, key, e, "must be a path");
        free(from);
        free(to);
        if (rc)
            return rc;
    }
    return TM_OK;
}

static int write_lock(const work *w, tm_error *e) {
    char *rootfs = tm_authored_path(&w->a, tm_json_str(json_object_get(w->a.doc, "image"), "rootfs"));
    char *from = tm_join(rootfs, LOCK_IN_IMAGE), *to = in_out(w, "requirements.lock");
    int rc = tm_exists(from) ? tm_copy_file(from, to, e) : tm_write_file(to, "", 0, e);
    free(rootfs);
    free(from);
    free(to);
    return rc;
}

static int write_documents(work *w, tm_error *e) {
    tm_step("card", "writing manifest and model card");
    int rc = tm_card_resolve(&w->a, &w->b.card, e);
    if (rc)
        return rc;
    w->b.image_tag = w->image.tag;
    w->b.image_digest = w->image.digest;
    w->b.created_at = w->created;
    w->b.code_sha256 = w->code_hex;
    json_t *doc = tm_compose_manifest(&w->a, &w->b);
    char *manifest = in_out(w, TM_MANIFEST_NAME), *readme = in_out(w, "README.md");
    tm_buf card = {0};
    tm_manifest m = {0};
    rc = tm_json_save(manifest, doc, e);
    if (!rc)
        rc = tm_manifest_load(manifest, &m, e); /* what is written must be readable */
    if (!rc)
        rc = tm_card_write(&m, tm_json_str(w->a.doc, "repo"), &card, e);
    if (!rc)
        rc = tm_write_file(readme, card.data, card.len, e);
    if (!rc)
        tm_step_done(NULL);
    static const char *const wanted[] = {"performance", "limitations"};
    for (size_t i = 0; i < 2 && !rc; i++)
        if (tm_json_empty(json_object_get(w->b.card, wanted[i])))
            tm_note("!", "card.%s is empty: the package cannot be listed in the catalog", wanted[i]);
    tm_buf_free(&card);
    tm_manifest_free(&m);
    json_decref(doc);
    free(manifest);
    free(readme);
    return rc;
}

static int load_into_docker(const work *w, tm_error *e) {
    tm_docker docker;
    tm_oci_image image;
    char *dir = tm_join(w->final, "image"), *id = NULL;
    int rc = tm_docker_open(&docker, e);
    if (!rc) {
        tm_step("load", "giving the image to Docker");
        rc = tm_oci_open(dir, &image, e);
        if (!rc) {
            rc = tm_oci_load(&image, &docker, w->image.tag, &id, e);
            tm_oci_close(&image);
        }
        if (!rc)
            tm_step_done("%s", w->image.tag);
        tm_docker_close(&docker);
    }
    free(dir);
    free(id);
    return rc;
}

static int publish_out(work *w, tm_error *e) {
    int rc = tm_remove_tree(w->final, e);
    if (!rc && rename(w->out, w->final) != 0)
        rc = tm_fail(e, TM_ERROR, "cannot rename %s to %s", w->out, w->final);
    return rc;
}

static void report(const work *w) {
    if (tm_ui_json()) {
        json_t *doc = json_pack("{s:s, s:s, s:s, s:s}", "dir", w->final, "image", w->image.tag, "image_digest",
                                w->image.digest, "code_sha256", w->code_hex);
        tm_json_print(doc);
        json_decref(doc);
    } else {
        tm_note("✓", "packaged %s", w->final);
        tm_note("→", "next:  tt-model push %s", w->final);
    }
}

int tm_cmd_package(const tm_args *a, tm_error *e) {
    work w = {0};
    const char *yaml = tm_value(a, "container");
    int rc = tm_authored_load(yaml ? yaml : "tt-model.yaml", &w.a, e);
    if (rc)
        return rc;
    rc = prepare_out(&w, tm_value(a, "out"), e);
    if (!rc)
        find_provenance(&w);
    if (!rc)
        rc = stage_code(&w, e);
    if (!rc)
        rc = build_image(&w, e);
    if (!rc)
        rc = write_documents(&w, e);
    if (!rc)
        rc = copy_media(&w, e);
    if (!rc)
        rc = write_lock(&w, e);
    if (!rc)
        rc = publish_out(&w, e);
    if (!rc && tm_flag(a, "load"))
        rc = load_into_docker(&w, e);
    if (!rc)
        report(&w);
    else if (w.out)
        tm_remove_tree(w.out, NULL);
    json_decref(w.b.source);
    json_decref(w.b.tt_metal);
    json_decref(w.b.card);
    free(w.image.tag);
    free(w.out);
    free(w.final);
    tm_authored_free(&w.a);
    return rc;
}
