#include "oci.h"

#include "base/fs.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/paths.h"
#include "base/process.h"
#include "base/ui.h"
#include "tar.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_JSON = 4 << 20, MAX_LAYERS = 512 };

static int refuse(tm_error *e, const char *what, const char *name) {
    tm_fail(e, TM_ERROR, "the image of this package is refused: %s", what);
    if (name)
        tm_why(e, "%s", name);
    return TM_ERROR;
}

static bool is_below(const char *path, const char *dir) {
    return tm_starts_with(path, dir) && path[strlen(dir)] == '/';
}

/* Where a file really is: inside the package, or a blob of the cache. */
static int check_place(const char *package, const char *path, tm_error *e) {
    char real[PATH_MAX], root[PATH_MAX], hub[PATH_MAX];
    if (!realpath(path, real) || !realpath(package, root))
        return refuse(e, "a file of it is missing", path);
    char *hub_dir = tm_hf_hub();
    bool in_hub = realpath(hub_dir, hub) && is_below(real, hub);
    free(hub_dir);
    return is_below(real, root) || in_hub ? TM_OK : refuse(e, "a link in it leads outside the package", path);
}

/* A blob that the cache holds under this very digest was checked when it was downloaded. */
static bool known_good(const char *path, const char *hex) {
    char real[PATH_MAX], hub[PATH_MAX], *hub_dir = tm_hf_hub();
    bool good =
        realpath(path, real) && realpath(hub_dir, hub) && is_below(real, hub) && !strcmp(tm_basename(real), hex);
    free(hub_dir);
    return good;
}

static int open_blob(const char *dir, const json_t *descriptor, tm_oci_blob *b, tm_error *e) {
    const char *digest = tm_json_str(descriptor, "digest");
    json_int_t size = tm_json_int(descriptor, "size", -1);
    if (!digest || !tm_starts_with(digest, "sha256:") || !tm_is_hex(digest + 7, 64) || size < 0)
        return refuse(e, "a blob has no proper digest or size", digest);
    b->digest = tm_strdup(digest);
    b->path = tm_fmt("%s/blobs/sha256/%s", dir, digest + 7);
    b->size = size;
    int rc = check_place(dir, b->path, e);
    if (rc)
        return rc;
    int64_t real = tm_file_size(b->path);
    if (real != size) {
        rc = refuse(e, "a blob lies about its size", NULL);
        tm_why(e, "%s should be %lld bytes, and is %lld.", digest, (long long)size, (long long)real);
        return rc;
    }
    char hex[65];
    if (known_good(b->path, digest + 7))
        return TM_OK;
    rc = tm_sha256_file(b->path, hex, e);
    if (!rc && strcmp(hex, digest + 7) != 0) {
        rc = refuse(e, "the bytes of a blob do not have its digest", NULL);
        tm_why(e, "%s has the digest %s.", digest, hex);
    }
    return rc;
}

static int load_json(const char *dir, const char *path, json_t **out, tm_error *e) {
    int rc = check_place(dir, path, e);
    return rc ? rc : tm_json_load(path, MAX_JSON, out, e);
}

static bool for_this_machine(const json_t *descriptor) {
    const json_t *platform = tm_json_object(descriptor, "platform");
#if defined(__aarch64__)
    const char *here = "arm64";
#else
    const char *here = "amd64";
#endif
    return !platform || !strcmp(tm_json_str_or(platform, "architecture", here), here);
}

/* The manifest's descriptor: from index.json, through a nested index when there is one. */
static int find_manifest(tm_oci_image *im, tm_error *e) {
    char *path = tm_join(im->dir, "index.json");
    json_t *index = NULL, *entry;
    int rc = load_json(im->dir, path, &index, e);
    free(path);
    for (int depth = 0; !rc; depth++) {
        const json_t *chosen = NULL;
        size_t i;
        json_array_foreach(json_object_get(index, "manifests"), i, entry) {
            if (!chosen && for_this_machine(entry))
                chosen = entry;
        }
        if (!chosen || depth > 2) {
            rc = refuse(e, "index.json names no image for this machine", NULL);
            break;
        }
        const char *name = tm_json_str(tm_json_object(chosen, "annotations"), "org.opencontainers.image.ref.name");
        if (depth == 0 && name)
            im->ref_name = tm_strdup(name);
        free(im->manifest.digest);
        free(im->manifest.path);
        im->manifest = (tm_oci_blob){0};
        rc = open_blob(im->dir, chosen, &im->manifest, e);
        if (rc || !strstr(tm_json_str_or(chosen, "mediaType", ""), "index"))
            break;
        json_t *inner = NULL;
        rc = load_json(im->dir, im->manifest.path, &inner, e);
        json_decref(index);
        index = inner;
    }
    json_decref(index);
    return rc;
}

int tm_oci_open(const char *dir, tm_oci_image *im, tm_error *e) {
    *im = (tm_oci_image){.dir = tm_strdup(dir)};
    json_t *manifest = NULL, *layers = NULL, *entry;
    int rc = find_manifest(im, e);
    if (!rc)
        rc = load_json(dir, im->manifest.path, &manifest, e);
    if (!rc) {
        layers = tm_json_array(manifest, "layers");
        if (!json_array_size(layers) || json_array_size(layers) > MAX_LAYERS)
            rc = refuse(e, "its manifest names no layers, or too many", NULL);
    }
    if (!rc)
        rc = open_blob(dir, tm_json_object(manifest, "config"), &im->config, e);
    if (!rc && im->config.size > MAX_JSON)
        rc = refuse(e, "its configuration is too large", NULL);
    if (!rc)
        im->layers = tm_alloc(json_array_size(layers) * sizeof *im->layers);
    size_t i;
    json_array_foreach(layers, i, entry) {
        if (!rc)
            rc = open_blob(dir, entry, &im->layers[im->layer_count++], e);
        if (!rc)
            im->bytes += (uint64_t)im->layers[i].size;
    }
    json_decref(manifest);
    if (rc)
        tm_oci_close(im);
    return rc;
}

static void close_blob(tm_oci_blob *b) {
    free(b->digest);
    free(b->path);
}

void tm_oci_close(tm_oci_image *im) {
    for (size_t i = 0; i < im->layer_count; i++)
        close_blob(&im->layers[i]);
    free(im->layers);
    close_blob(&im->manifest);
    close_blob(&im->config);
    free(im->dir);
    free(im->ref_name);
    *im = (tm_oci_image){0};
}

static int load_with_skopeo(const tm_oci_image *im, tm_docker *docker, const char *tag, tm_error *e) {
    char *host = tm_docker_host(docker);
    tm_list argv = {0};
    tm_list_add(&argv, "skopeo");
    tm_list_add(&argv, "--insecure-policy"); /* packages are not signed: there is no policy to hold to */
    tm_list_add(&argv, "copy");
    tm_list_add(&argv, "--quiet");
    tm_list_add(&argv, "--dest-daemon-host");
    tm_list_add(&argv, host);
    tm_list_addf(&argv, im->ref_name ? "oci:%s:%s" : "oci:%s", im->dir, im->ref_name);
    tm_list_addf(&argv, "docker-daemon:%s", tag);
    tm_buf err = {0};
    int status = 0;
    int rc = tm_run(argv.items, NULL, NULL, &err, &status, e);
    if (!rc && status != 0) {
        rc = tm_fail(e, TM_TOOL_FAILED, "skopeo could not give the image to Docker");
        tm_why(e, "%s", err.data ? err.data : "");
    }
    tm_buf_free(&err);
    tm_list_free(&argv);
    free(host);
    return rc;
}

typedef struct load {
    tm_tar *tar;
    uint64_t sent;
} load;

static long read_archive(void *arg, char *data, size_t n) {
    load *l = arg;
    long k = tm_tar_read(l->tar, data, n);
    if (k > 0)
        l->sent += (uint64_t)k;
    tm_step_progress(l->sent, tm_tar_total(l->tar), true);
    return k;
}

/* The archive of `docker save`: manifest.json, the configuration, the layers. Every Docker takes it, and
 * it carries the tag. */
static int load_as_archive(const tm_oci_image *im, tm_docker *docker, const char *tag, tm_error *e) {
    load l = {.tar = tm_tar_new()};
    json_t *names = json_array();
    char *config = tm_fmt("%s.json", im->config.digest + 7);
    int rc = tm_tar_add_file(l.tar, config, im->config.path, 0644, 0, e);
    for (size_t i = 0; i < im->layer_count && !rc; i++) {
        char *name = tm_fmt("%s.tar", im->layers[i].digest + 7);
        json_array_append_new(names, json_string(name));
        rc = tm_tar_add_file(l.tar, name, im->layers[i].path, 0644, 0, e);
        free(name);
    }
    json_t *doc = json_pack("[{s:s, s:[s], s:o}]", "Config", config, "RepoTags", tag, "Layers", names);
    char *text = json_dumps(doc, JSON_COMPACT);
    tm_tar_add_bytes(l.tar, "manifest.json", text, strlen(text), 0644, 0);
    if (!rc)
        rc = tm_docker_load(docker, read_archive, &l, (int64_t)tm_tar_total(l.tar), e);
    if (rc && *tm_tar_error(l.tar))
        tm_why(e, "%s", tm_tar_error(l.tar));
    free(text);
    free(config);
    json_decref(doc);
    tm_tar_free(l.tar);
    return rc;
}

int tm_oci_load(const tm_oci_image *im, tm_docker *docker, const char *tag, char **id, tm_error *e) {
    *id = NULL;
    char *skopeo = tm_find_program("skopeo");
    bool plain_path = !strchr(im->dir, ':'); /* skopeo takes what follows a colon for a name */
    int rc = skopeo && plain_path ? load_with_skopeo(im, docker, tag, e) : load_as_archive(im, docker, tag, e);
    free(skopeo);
    if (!rc)
        rc = tm_docker_image_id(docker, tag, id, e);
    if (!rc && !*id)
        rc = tm_fail(e, TM_TOOL_FAILED, "Docker took the image, but does not know it as %s", tag);
    /* The classic store names an image by its configuration, the containerd store by its manifest. */
    if (!rc && strcmp(*id, im->config.digest) != 0 && strcmp(*id, im->manifest.digest) != 0) {
        rc = tm_fail(e, TM_TOOL_FAILED, "Docker holds another image as %s than the package carries", tag);
        tm_why(e, "It has %s; the package has %s.", *id, im->config.digest);
        free(*id);
        *id = NULL;
    }
    return rc;
}
