#include "launch.h"

#include "base/fs.h"
#include "base/paths.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define HUGEPAGES "/dev/hugepages-1G"
#define MESH_DESCRIPTOR "/opt/tt-metal/tt_metal/fabric/mesh_graph_descriptors/p150_mesh_graph_descriptor.textproto"

char *tm_container_name(const char *package, const char *profile) {
    return tm_fmt("tt-model-%s-%s", package, profile);
}

const char *tm_ready_marker(const tm_manifest *m) {
    const json_t *runtime = tm_json_object(m->container, "runtime");
    if (!strcmp(m->kind, "vllm-fork"))
        return "Server ready at";
    if (!strcmp(m->kind, "http-server"))
        return tm_json_str_or(runtime, "ready_line", "Application startup complete");
    return "Application startup complete";
}

/* Environment as a JSON object, so that what is set later wins and the order is that of the names. */
static void set_env(json_t *env, const char *key, const char *value) {
    if (value)
        json_object_set_new(env, key, json_string(value));
}

static void add_args(const json_t *serve, tm_list *argv) {
    size_t i, k;
    json_t *v, *w;
    json_array_foreach(json_object_get(serve, "args"), i, v) {
        if (json_is_string(v))
            tm_list_add(argv, json_string_value(v));
        json_array_foreach(v, k, w) tm_list_add(argv, json_string_value(w));
    }
}

static void add_int(tm_list *argv, const json_t *serve, const char *key, const char *flag) {
    if (json_is_integer(json_object_get(serve, key))) {
        tm_list_add(argv, flag);
        tm_list_addf(argv, "%lld", (long long)tm_json_int(serve, key, 0));
    }
}

static void vllm_command(const tm_launch_request *q, tm_list *argv) {
    const json_t *serve = q->profile->serve, *caps = tm_json_object(serve, "capabilities");
    tm_list_add(argv, "vllm");
    tm_list_add(argv, "serve");
    tm_list_add(argv, q->manifest->has_weights ? q->manifest->weights[0].repo : "");
    add_int(argv, serve, "max_model_len", "--max-model-len");
    add_int(argv, serve, "max_num_seqs", "--max-num-seqs");
    add_int(argv, serve, "block_size", "--block-size");
    if (!tm_json_empty(json_object_get(serve, "additional_config"))) {
        char *text = json_dumps(json_object_get(serve, "additional_config"), JSON_COMPACT);
        tm_list_add(argv, "--additional-config");
        tm_list_add(argv, text);
        free(text);
    }
    if (tm_json_str(caps, "tool_parser")) {
        tm_list_add(argv, "--enable-auto-tool-choice");
        tm_list_add(argv, "--tool-call-parser");
        tm_list_add(argv, tm_json_str(caps, "tool_parser"));
    }
    if (tm_json_str(caps, "reasoning_parser")) {
        tm_list_add(argv, "--reasoning-parser");
        tm_list_add(argv, tm_json_str(caps, "reasoning_parser"));
    }
    add_args(serve, argv);
    tm_list_add(argv, "--port");
    tm_list_addf(argv, "%d", q->port);
}

static int dit_command(const tm_launch_request *q, tm_list *argv, tm_error *e) {
    const char *app = tm_json_str(tm_json_object(q->manifest->container, "runtime"), "app");
    if (!app || !strchr(app, ':'))
        return tm_fail(e, TM_ERROR, "%s: container.runtime.app (module:attribute) is missing", q->manifest->name);
    static const char *const head[] = {"python", "-m", "uvicorn", "--host", "0.0.0.0", "--port"};
    for (size_t i = 0; i < sizeof head / sizeof *head; i++)
        tm_list_add(argv, head[i]);
    tm_list_addf(argv, "%d", q->port);
    tm_list_add(argv, "--lifespan");
    tm_list_add(argv, "on");
    add_args(q->profile->serve, argv);
    tm_list_add(argv, app);
    return TM_OK;
}

static char *replace(const char *text, const char *what, const char *with) {
    tm_buf b = {0};
    for (const char *at; (at = strstr(text, what)); text = at + strlen(what)) {
        tm_buf_add(&b, text, (size_t)(at - text));
        tm_buf_puts(&b, with);
    }
    tm_buf_puts(&b, text);
    return tm_buf_take(&b);
}

static int http_command(const tm_launch_request *q, tm_list *argv, tm_error *e) {
    const json_t *command = tm_json_array(tm_json_object(q->manifest->container, "runtime"), "command");
    if (!json_array_size(command))
        return tm_fail(e, TM_ERROR, "%s: container.runtime.command is missing", q->manifest->name);
    char port[16];
    snprintf(port, sizeof port, "%d", q->port);
    size_t i;
    json_t *v;
    json_array_foreach(command, i, v) {
        if (!json_is_string(v))
            return tm_fail(e, TM_ERROR, "%s: container.runtime.command holds something that is not text",
                           q->manifest->name);
        char *a = replace(json_string_value(v), "{host}", "0.0.0.0"), *b = replace(a, "{port}", port);
        free(a);
        tm_list_take(argv, b);
    }
    add_args(q->profile->serve, argv);
    return TM_OK;
}

static int kind_command(const tm_launch_request *q, tm_list *argv, json_t *env, tm_error *e) {
    const char *kind = q->manifest->kind, *mesh = q->profile->mesh_device;
    int rc = TM_OK;
    if (!strcmp(kind, "vllm-plugin")) {
        vllm_command(q, argv);
        set_env(env, "MESH_DEVICE", mesh);
    } else if (!strcmp(kind, "tt-dit-server")) {
        rc = dit_command(q, argv, e);
        set_env(env, "MESH_DEVICE", mesh);
        const char *shape_env =
            tm_json_str_or(tm_json_object(q->manifest->container, "runtime"), "mesh_shape_env", "FLUX2_MESH_SHAPE");
        char shape[32];
        snprintf(shape, sizeof shape, "%dx%d", q->profile->rows, q->profile->cols);
        if (q->profile->rows && *shape_env)
            set_env(env, shape_env, shape);
    } else if (!strcmp(kind, "http-server")) {
        rc = http_command(q, argv, e);
    } else {
        tm_fail(e, TM_UNSUPPORTED, "packages of the kind %s are not served here", kind);
        tm_why(e, "Known kinds: vllm-plugin, tt-dit-server, http-server.");
        return TM_UNSUPPORTED;
    }
    if (q->manifest->has_weights) {
        set_env(env, "HF_MODEL", q->manifest->weights[0].repo);
        if (strcmp(kind, "vllm-plugin") != 0)
            set_env(env, "TT_MODEL_WEIGHTS_REVISION", q->manifest->weights[0].revision);
    }
    return rc;
}

/* A pinned revision makes HF_MODEL the snapshot's path as the container sees it. */
static void pin_weights(const tm_launch_request *q, json_t *env, bool hub_apart) {
    const tm_weights *w = q->manifest->has_weights ? &q->manifest->weights[0] : NULL;
    const char *model = tm_json_str(env, "HF_MODEL");
    if (!w || !w->revision || !tm_is_hex(w->revision, 40) || !model || strcmp(model, w->repo) != 0)
        return;
    const char *slash = strchr(w->repo, '/');
    char *path = tm_fmt("%s/%ss--%.*s--%s/snapshots/%s", hub_apart ? "/hf-hub" : "/hf/hub", w->type,
                        (int)(slash - w->repo), w->repo, slash + 1, w->revision);
    set_env(env, "HF_MODEL", path);
    free(path);
}

static void add_mounts(const tm_launch_request *q, tm_launch *l, bool *hub_apart) {
    char *home = tm_hf_home(), *hub = tm_hf_hub(), *usual = tm_join(home, "hub");
    static const struct {
        const char *dir, *inside, *env;
    } own[] = {{"cache", "/cache", "TT_METAL_CACHE"},
               {"weights", "/weight-cache", "TT_DIT_CACHE_DIR"},
               {"tensors", "/tensor-cache", "TT_CACHE_PATH"}};
    tm_list_addf(&l->volumes, "%s:/hf", home);
    tm_list_add(&l->env, "HF_HOME=/hf");
    for (size_t i = 0; i < 3; i++) {
        char *dir = tm_root_file("%s/%s", q->manifest->name, own[i].dir);
        tm_list_addf(&l->volumes, "%s:%s", dir, own[i].inside);
        tm_list_addf(&l->env, "%s=%s", own[i].env, own[i].inside);
        free(dir);
    }
    *hub_apart = strcmp(hub, usual) != 0;
    if (*hub_apart) {
        tm_list_addf(&l->volumes, "%s:/hf-hub", hub);
        tm_list_add(&l->env, "HF_HUB_CACHE=/hf-hub");
    }
    free(home);
    free(hub);
    free(usual);
}

static void add_devices(const tm_launch_request *q, tm_launch *l) {
    if (!q->profile->chips)
        return;
    l->hugepages = true;
    if (!q->chips) {
        tm_list_add(&l->devices, TM_DEVICE_DIR);
        return;
    }
    for (int i = 0; i < q->chips->count; i++)
        tm_list_addf(&l->devices, "%s/%d", TM_DEVICE_DIR, q->chips->ids[i]);
    char *ids = tm_chips_text(q->chips);
    tm_list_addf(&l->labels, "%s.devices=%s", TM_LABEL, ids);
    free(ids);
}

int tm_launch_make(const tm_launch_request *q, tm_launch *l, tm_error *e) {
    const tm_manifest *m = q->manifest;
    *l = (tm_launch){.port = q->port, .restart = q->restart};
    l->name = tm_container_name(m->name, q->profile->name);
    l->user = q->rootless ? tm_strdup("0:0") : tm_fmt("%u:%u", (unsigned)getuid(), (unsigned)getgid());
    l->image = tm_manifest_image_ref(m);
    l->marker = tm_strdup(tm_ready_marker(m));
    tm_list_addf(&l->labels, "%s=%s", TM_LABEL, m->name);
    tm_list_addf(&l->labels, "%s.profile=%s", TM_LABEL, q->profile->name);
    if (q->repo_id)
        tm_list_addf(&l->labels, "%s.repo=%s", TM_LABEL, q->repo_id);
    add_devices(q, l);
    bool hub_apart;
    add_mounts(q, l, &hub_apart);
    const char *token = getenv("HF_TOKEN");
    if (token && *token)
        tm_list_add(&l->env, "HF_TOKEN");

    json_t *env = json_object();
    const char *key;
    json_t *v;
    int rc = kind_command(q, &l->argv, env, e);
    if (q->profile->chips == 1 && !strcmp(m->arch, "blackhole"))
        set_env(env, "TT_MESH_GRAPH_DESC_PATH", MESH_DESCRIPTOR);
    json_object_foreach(tm_json_object(q->profile->serve, "env"), key, v) set_env(env, key, json_string_value(v));
    pin_weights(q, env, hub_apart);
    tm_list sorted = {0};
    json_object_foreach(env, key, v) tm_list_addf(&sorted, "%s=%s", key, json_string_value(v));
    tm_list_sort(&sorted);
    for (size_t i = 0; i < sorted.count; i++)
        tm_list_add(&l->env, sorted.items[i]);
    tm_list_free(&sorted);
    json_decref(env);
    for (size_t i = 0; q->extra && i < q->extra->count; i++)
        tm_list_add(&l->argv, q->extra->items[i]);
    if (rc)
        tm_launch_free(l);
    return rc;
}

void tm_launch_free(tm_launch *l) {
    free(l->name);
    free(l->user);
    free(l->image);
    free(l->marker);
    tm_list_free(&l->labels);
    tm_list_free(&l->devices);
    tm_list_free(&l->volumes);
    tm_list_free(&l->env);
    tm_list_free(&l->argv);
    *l = (tm_launch){0};
}

static void words(tm_list *out, const char *flag, const tm_list *values) {
    for (size_t i = 0; i < values->count; i++) {
        tm_list_add(out, flag);
        tm_list_add(out, values->items[i]);
    }
}

char *tm_launch_shell(const tm_launch *l) {
    tm_list w = {0};
    tm_list_add(&w, "docker");
    tm_list_add(&w, "run");
    tm_list_add(&w, "--detach");
    tm_list_add(&w, "--name");
    tm_list_add(&w, l->name);
    tm_list_add(&w, "--user");
    tm_list_add(&w, l->user);
    if (l->restart) {
        tm_list_add(&w, "--restart");
        tm_list_add(&w, "unless-stopped");
    }
    words(&w, "--label", &l->labels);
    for (size_t i = 0; i < l->devices.count; i++) {
        tm_list_add(&w, "--device");
        tm_list_addf(&w, "%s:%s", l->devices.items[i], l->devices.items[i]);
    }
    tm_list_add(&w, "--ipc");
    tm_list_add(&w, "host");
    if (l->hugepages) {
        tm_list_add(&w, "--mount");
        tm_list_add(&w, "type=bind,src=" HUGEPAGES ",dst=" HUGEPAGES);
    }
    words(&w, "--volume", &l->volumes);
    tm_list_add(&w, "--publish");
    tm_list_addf(&w, "%d:%d", l->port, l->port);
    words(&w, "--env", &l->env);
    tm_list_add(&w, l->image);
    for (size_t i = 0; i < l->argv.count; i++)
        tm_list_add(&w, l->argv.items[i]);
    tm_buf b = {0};
    for (size_t i = 0; i < w.count; i++) {
        if (i)
            tm_buf_puts(&b, " ");
        tm_buf_shell_word(&b, w.items[i]);
    }
    tm_list_free(&w);
    return tm_buf_take(&b);
}

static json_t *string_array(const tm_list *l) {
    json_t *out = json_array();
    for (size_t i = 0; i < l->count; i++)
        json_array_append_new(out, json_string(l->items[i]));
    return out;
}

json_t *tm_launch_body(const tm_launch *l) {
    json_t *labels = json_object(), *env = json_array(), *devices = json_array(), *mounts = json_array();
    for (size_t i = 0; i < l->labels.count; i++) {
        const char *eq = strchr(l->labels.items[i], '=');
        char *key = tm_strndup(l->labels.items[i], (size_t)(eq - l->labels.items[i]));
        json_object_set_new(labels, key, json_string(eq + 1));
        free(key);
    }
    for (size_t i = 0; i < l->env.count; i++) {
        const char *item = l->env.items[i], *value = strchr(item, '=') ? NULL : getenv(item);
        char *text = value ? tm_fmt("%s=%s", item, value) : tm_strdup(item);
        json_array_append_new(env, json_string(text));
        free(text);
    }
    for (size_t i = 0; i < l->devices.count; i++)
        json_array_append_new(devices, json_pack("{s:s, s:s, s:s}", "PathOnHost", l->devices.items[i],
                                                 "PathInContainer", l->devices.items[i], "CgroupPermissions", "rwm"));
    if (l->hugepages)
        json_array_append_new(mounts,
                              json_pack("{s:s, s:s, s:s}", "Type", "bind", "Source", HUGEPAGES, "Target", HUGEPAGES));
    char port[32], host_port[16];
    snprintf(port, sizeof port, "%d/tcp", l->port);
    snprintf(host_port, sizeof host_port, "%d", l->port);
    return json_pack("{s:s, s:s, s:o, s:o, s:o, s:{s:{}}, s:{s:o, s:o, s:o, s:s, s:{s:[{s:s}]}}}", "Image", l->image,
                     "User", l->user, "Labels", labels, "Env", env, "Cmd", string_array(&l->argv), "ExposedPorts", port,
                     "HostConfig", "Binds", string_array(&l->volumes), "Devices", devices, "Mounts", mounts, "IpcMode",
                     "host", "PortBindings", port, "HostPort", host_port);
}

int tm_launch_prepare(const tm_launch *l, tm_error *e) {
    int rc = TM_OK;
    for (size_t i = 0; i < l->volumes.count && !rc; i++) {
        const char *colon = strrchr(l->volumes.items[i], ':');
        char *dir = tm_strndup(l->volumes.items[i], (size_t)(colon - l->volumes.items[i]));
        rc = tm_mkdirs(dir, e);
        free(dir);
    }
    return rc;
}
