#include "image_build.h"

#include "base/fs.h"
#include "base/hash.h"
#include "base/ui.h"
#include "tar.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <zlib.h>

enum { CHUNK = 1 << 18, MAX_DEPTH = 64 };

static int add_tree(tm_tar *t, const char *root, const char *rel, int64_t mtime, int depth, tm_error *e) {
    char *here = *rel ? tm_join(root, rel) : tm_strdup(root);
    struct dirent **names = NULL;
    int n = scandir(here, &names, NULL, alphasort), rc = TM_OK;
    if (n < 0 || depth > MAX_DEPTH)
        rc = tm_fail(e, TM_ERROR, "cannot list %s: %s", here, n < 0 ? strerror(errno) : "nested too deep");
    for (int i = 0; i < n; i++) {
        const char *name = names[i]->d_name;
        char *sub = *rel ? tm_join(rel, name) : tm_strdup(name), *full = tm_join(root, sub), target[PATH_MAX];
        struct stat st;
        if (rc || !strcmp(name, ".") || !strcmp(name, "..")) {
            /* nothing to add */
        } else if (lstat(full, &st) != 0) {
            rc = tm_fail(e, TM_ERROR, "cannot look at %s: %s", full, strerror(errno));
        } else if (S_ISDIR(st.st_mode)) {
            tm_tar_add_dir(t, sub, st.st_mode & 01777, mtime);
            rc = add_tree(t, root, sub, mtime, depth + 1, e);
        } else if (S_ISLNK(st.st_mode)) {
            ssize_t len = readlink(full, target, sizeof target - 1);
            target[len > 0 ? len : 0] = '\0';
            tm_tar_add_link(t, sub, target, mtime);
        } else if (S_ISREG(st.st_mode)) {
            rc = tm_tar_add_file(t, sub, full, st.st_mode & 0111 ? 0755 : 0644, mtime, e);
        } else {
            rc = tm_fail(e, TM_ERROR, "%s is neither a file, a directory nor a link", full);
        }
        free(sub);
        free(full);
        free(names[i]);
    }
    free(names);
    free(here);
    return rc;
}

typedef struct layer {
    char diff_id[65]; /* of the archive */
    char digest[65];  /* of the archive, compressed */
    uint64_t size;
} layer;

/* Compress the archive into `path`, with the digests of both. The gzip header carries no time. */
static int write_layer(tm_tar *t, const char *path, layer *l, tm_error *e) {
    FILE *f = fopen(path, "wbe");
    if (!f)
        return tm_fail(e, TM_ERROR, "cannot create %s: %s", path, strerror(errno));
    z_stream z = {0};
    if (deflateInit2(&z, 9, Z_DEFLATED, 15 + 16, 9, Z_DEFAULT_STRATEGY) != Z_OK) {
        fclose(f);
        return tm_fail(e, TM_ERROR, "cannot start zlib");
    }
    tm_hash *plain = tm_hash_new(TM_SHA256), *packed = tm_hash_new(TM_SHA256);
    unsigned char *in = tm_alloc(CHUNK), *out = tm_alloc(CHUNK);
    int rc = TM_OK;
    uint64_t done = 0;
    for (long n = 1; n > 0 && !rc;) {
        n = tm_tar_read(t, (char *)in, CHUNK);
        if (n < 0)
            rc = tm_fail(e, TM_ERROR, "%s", tm_tar_error(t));
        if (n > 0)
            tm_hash_add(plain, in, (size_t)n);
        z.next_in = in;
        z.avail_in = n > 0 ? (unsigned)n : 0;
        do {
            z.next_out = out;
            z.avail_out = CHUNK;
            deflate(&z, n > 0 ? Z_NO_FLUSH : Z_FINISH);
            size_t k = CHUNK - z.avail_out;
            tm_hash_add(packed, out, k);
            l->size += k;
            if (fwrite(out, 1, k, f) != k && !rc)
                rc = tm_fail(e, TM_ERROR, "cannot write %s: %s", path, strerror(errno));
        } while (z.avail_out == 0);
        done += n > 0 ? (uint64_t)n : 0;
        tm_step_progress(done, tm_tar_total(t), true);
        if (tm_interrupted() && !rc)
            rc = tm_fail(e, TM_INTERRUPTED, "interrupted");
    }
    deflateEnd(&z);
    free(in);
    free(out);
    tm_hash_end(plain, l->diff_id);
    tm_hash_end(packed, l->digest);
    if (fclose(f) != 0 && !rc)
        rc = tm_fail(e, TM_ERROR, "cannot write %s: %s", path, strerror(errno));
    return rc;
}

/* Write a document as a blob. Fresh descriptor. */
static json_t *put_blob(const char *out, const char *media_type, const json_t *doc, char hex[65], tm_error *e) {
    char *text = json_dumps(doc, JSON_COMPACT);
    tm_sha256(text, strlen(text), hex);
    char *path = tm_fmt("%s/blobs/sha256/%s", out, hex), *digest = tm_fmt("sha256:%s", hex);
    int rc = tm_write_file(path, text, strlen(text), e);
    json_t *d =
        rc ? NULL
           : json_pack("{s:s, s:s, s:I}", "mediaType", media_type, "digest", digest, "size", (json_int_t)strlen(text));
    free(text);
    free(path);
    free(digest);
    return d;
}

static void iso_time(int64_t when, char out[32]) {
    time_t t = (time_t)when;
    struct tm tm;
    gmtime_r(&t, &tm);
    strftime(out, 32, "%Y-%m-%dT%H:%M:%SZ", &tm);
}

static int write_documents(const tm_image_request *q, const layer *l, tm_image_built *built, tm_error *e) {
    char when[32], config_hex[65], manifest_hex[65], *diff = tm_fmt("sha256:%s", l->diff_id),
                                                     *digest = tm_fmt("sha256:%s", l->digest);
    iso_time(q->created, when);
#if defined(__aarch64__)
    const char *arch = "arm64";
#else
    const char *arch = "amd64";
#endif
    json_t *config = json_pack("{s:s, s:s, s:s, s:O, s:{s:s, s:[s]}, s:[{s:s, s:s}]}", "architecture", arch, "os",
                               "linux", "created", when, "config", q->config, "rootfs", "type", "layers", "diff_ids",
                               diff, "history", "created", when, "created_by", "tt-model package");
    json_t *cd = put_blob(q->out, "application/vnd.oci.image.config.v1+json", config, config_hex, e);
    json_t *manifest = NULL, *md = NULL;
    int rc = cd ? TM_OK : e->code;
    if (!rc) {
        manifest =
            json_pack("{s:i, s:s, s:O, s:[{s:s, s:s, s:I}]}", "schemaVersion", 2, "mediaType",
                      "application/vnd.oci.image.manifest.v1+json", "config", cd, "layers", "mediaType",
                      "application/vnd.oci.image.layer.v1.tar+gzip", "digest", digest, "size", (json_int_t)l->size);
        md = put_blob(q->out, "application/vnd.oci.image.manifest.v1+json", manifest, manifest_hex, e);
        rc = md ? TM_OK : e->code;
    }
    if (!rc) {
        snprintf(built->digest, sizeof built->digest, "sha256:%s", config_hex);
        built->tag = tm_fmt("tt-model/%s:%.12s", q->name, config_hex);
        json_object_set_new(md, "annotations",
                            json_pack("{s:s, s:s}", "org.opencontainers.image.ref.name", "latest",
                                      "io.containerd.image.name", built->tag));
        json_t *index = json_pack("{s:i, s:s, s:[O]}", "schemaVersion", 2, "mediaType",
                                  "application/vnd.oci.image.index.v1+json", "manifests", md);
        char *path = tm_join(q->out, "index.json");
        rc = tm_json_save(path, index, e);
        json_decref(index);
        free(path);
    }
    json_decref(config);
    json_decref(cd);
    json_decref(manifest);
    json_decref(md);
    free(diff);
    free(digest);
    return rc;
}

int tm_image_build(const tm_image_request *q, tm_image_built *built, tm_error *e) {
    *built = (tm_image_built){0};
    char *blobs = tm_join(q->out, "blobs/sha256"), *tmp = tm_join(blobs, "layer.tmp");
    char *mark = tm_join(q->out, "oci-layout");
    static const char layout[] = "{\"imageLayoutVersion\": \"1.0.0\"}";
    layer l = {0};
    tm_tar *t = tm_tar_new();
    int rc = tm_mkdirs(blobs, e);
    if (!rc)
        rc = add_tree(t, q->rootfs, "", q->created, 0, e);
    if (!rc)
        rc = write_layer(t, tmp, &l, e);
    if (!rc) {
        char *path = tm_join(blobs, l.digest);
        if (rename(tmp, path) != 0)
            rc = tm_fail(e, TM_ERROR, "cannot rename a file to %s: %s", path, strerror(errno));
        free(path);
    }
    if (!rc)
        rc = tm_write_file(mark, layout, strlen(layout), e);
    if (!rc)
        rc = write_documents(q, &l, built, e);
    if (!rc)
        built->bytes = tm_tree_bytes(q->out);
    tm_tar_free(t);
    free(blobs);
    free(tmp);
    free(mark);
    return rc;
}
