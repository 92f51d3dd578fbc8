#include "chips.h"

#include "base/fs.h"

#include <ctype.h>
#include <dirent.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_IPC_HOPS = 8 };

bool tm_chips_has(const tm_chips *set, int id) {
    for (int i = 0; i < set->count; i++)
        if (set->ids[i] == id)
            return true;
    return false;
}

void tm_chips_add(tm_chips *set, int id) {
    if (!tm_chips_has(set, id) && set->count < (int)(sizeof set->ids / sizeof *set->ids))
        set->ids[set->count++] = id;
}

static int by_number(const void *a, const void *b) {
    return *(const int *)a - *(const int *)b;
}

/* A chip's number: digits only, of a sensible size; -1 otherwise. */
static int chip_number(const char *s) {
    if (!*s || strlen(s) > 4)
        return -1;
    for (const char *c = s; *c; c++)
        if (!isdigit((unsigned char)*c))
            return -1;
    return atoi(s);
}

void tm_chips_inventory(tm_chips *out) {
    *out = (tm_chips){0};
    DIR *d = opendir(TM_DEVICE_DIR);
    for (struct dirent *ent; d && (ent = readdir(d));)
        if (chip_number(ent->d_name) >= 0)
            tm_chips_add(out, chip_number(ent->d_name));
    if (d)
        closedir(d);
    qsort(out->ids, (size_t)out->count, sizeof *out->ids, by_number);
}

const char *tm_local_arch(void) {
    static const struct {
        const char *pci, *arch;
    } cards[] = {{"0xb140", "blackhole"}, {"0x401e", "wormhole_b0"}, {"0xfaca", "grayskull"}};
    tm_chips all;
    tm_chips_inventory(&all);
    if (!all.count)
        return NULL;
    char *path = tm_fmt("/sys/class/tenstorrent/tenstorrent!%d/device/device", all.ids[0]);
    tm_buf text = {0};
    const char *arch = NULL;
    if (tm_read_file(path, 4096, &text, NULL) == TM_OK)
        for (size_t i = 0; i < sizeof cards / sizeof *cards; i++)
            if (tm_starts_with(text.data, cards[i].pci))
                arch = cards[i].arch;
    tm_buf_free(&text);
    free(path);
    return arch;
}

/* What a host path inside or above /dev/tenstorrent grants: a chip's number, -2 for all, -1 for none. */
static int path_grant(const char *path) {
    size_t n = strlen(path);
    while (n > 1 && path[n - 1] == '/')
        n--;
    if (n == strlen(TM_DEVICE_DIR) && !strncmp(path, TM_DEVICE_DIR, n))
        return -2;
    if (!strncmp(path, TM_DEVICE_DIR "/", strlen(TM_DEVICE_DIR) + 1))
        return chip_number(path + strlen(TM_DEVICE_DIR) + 1);
    bool above = n == 1 || (!strncmp(TM_DEVICE_DIR, path, n) && TM_DEVICE_DIR[n] == '/');
    return above ? -2 : -1;
}

static void add_grant(tm_chips *taken, const tm_chips *all, int grant) {
    if (grant >= 0)
        tm_chips_add(taken, grant);
    for (int i = 0; grant == -2 && i < all->count; i++)
        tm_chips_add(taken, all->ids[i]);
}

static void add_container(tm_chips *taken, const tm_chips *all, const json_t *c) {
    const json_t *host = tm_json_object(c, "HostConfig"),
                 *labels = tm_json_object(tm_json_object(c, "Config"), "Labels");
    size_t i;
    json_t *v;
    if (tm_json_bool(host, "Privileged", false))
        add_grant(taken, all, -2);
    json_array_foreach(json_object_get(host, "Devices"), i, v)
        add_grant(taken, all, path_grant(tm_json_str_or(v, "PathOnHost", "")));
    json_array_foreach(json_object_get(c, "Mounts"), i, v) {
        if (!strcmp(tm_json_str_or(v, "Type", ""), "bind"))
            add_grant(taken, all, path_grant(tm_json_str_or(v, "Source", "")));
    }
    char *list = tm_strdup(tm_json_str_or(labels, TM_LABEL ".devices", "")), *save = NULL;
    for (char *s = strtok_r(list, ",", &save); s; s = strtok_r(NULL, ",", &save))
        if (chip_number(s) >= 0)
            tm_chips_add(taken, chip_number(s));
    free(list);
}

static const json_t *by_id(const json_t *list, const char *id) {
    size_t i;
    json_t *c;
    json_array_foreach(list, i, c) {
        if (!strcmp(tm_json_str_or(c, "Id", ""), id) || !strcmp(tm_json_str_or(c, "Name", "/") + 1, id))
            return c;
    }
    return NULL;
}

static bool shares_host_ipc(const json_t *list, const json_t *c) {
    for (int hop = 0; c && hop < MAX_IPC_HOPS; hop++) {
        const char *mode = tm_json_str_or(tm_json_object(c, "HostConfig"), "IpcMode", "");
        if (!strcmp(mode, "host"))
            return true;
        if (!tm_starts_with(mode, "container:"))
            return false;
        c = by_id(list, mode + strlen("container:"));
    }
    return false;
}

int tm_chips_taken(tm_docker *docker, tm_chips *taken, tm_error *e) {
    json_t *list = NULL, *running = json_array(), *entry;
    tm_chips all;
    tm_chips_inventory(&all);
    int rc = tm_docker_call(docker, "GET", "/containers/json", NULL, NULL, &list, e);
    size_t i;
    json_array_foreach(list, i, entry) {
        json_t *full = NULL;
        if (!rc)
            rc = tm_docker_inspect(docker, tm_json_str_or(entry, "Id", ""), &full, e);
        if (full)
            json_array_append_new(running, full);
    }
    json_array_foreach(running, i, entry) {
        if (shares_host_ipc(running, entry))
            add_container(taken, &all, entry);
    }
    qsort(taken->ids, (size_t)taken->count, sizeof *taken->ids, by_number);
    json_decref(running);
    json_decref(list);
    return rc;
}

static int parse_wanted(const char *wanted, tm_chips *out, tm_error *e) {
    char *list = tm_strdup(wanted), *save = NULL;
    int rc = TM_OK;
    for (char *s = strtok_r(list, ",", &save); s && !rc; s = strtok_r(NULL, ",", &save)) {
        int id = chip_number(s);
        if (id < 0 || tm_chips_has(out, id))
            rc = tm_fail(e, TM_USAGE, "--device-id %s: distinct chip numbers such as 0,1 are wanted", wanted);
        tm_chips_add(out, id);
    }
    free(list);
    return rc;
}

static int too_few(const tm_chips *all, const tm_chips *taken, int need, tm_error *e) {
    char *have = tm_chips_text(all), *busy = tm_chips_text(taken);
    if (all->count < need)
        tm_fail(e, TM_NO_DEVICES, "%d chip%s needed, and this machine has %d", need, need == 1 ? " is" : "s are",
                all->count);
    else
        tm_fail(e, TM_NO_DEVICES, "%d chip%s needed, and too few are free", need, need == 1 ? " is" : "s are");
    if (taken->count)
        tm_why(e, "Chips here: %s. Taken: %s.", all->count ? have : "none", busy);
    tm_next(e, "`tt-model ps` shows what runs; `tt-model stop ID` frees its chips.");
    free(have);
    free(busy);
    return TM_NO_DEVICES;
}

int tm_chips_choose(const tm_chips *taken, int need, const char *wanted, tm_chips *out, tm_error *e) {
    tm_chips all;
    tm_chips_inventory(&all);
    *out = (tm_chips){0};
    if (!wanted) {
        for (int i = 0; i < all.count && out->count < need; i++)
            if (!tm_chips_has(taken, all.ids[i]))
                tm_chips_add(out, all.ids[i]);
        return out->count == need ? TM_OK : too_few(&all, taken, need, e);
    }
    int rc = parse_wanted(wanted, out, e);
    if (!rc && out->count != need)
        rc = tm_fail(e, TM_USAGE, "--device-id %s: this profile needs %d chip%s", wanted, need, need == 1 ? "" : "s");
    for (int i = 0; i < out->count && !rc; i++) {
        if (!tm_chips_has(&all, out->ids[i]))
            rc = tm_fail(e, TM_NO_DEVICES, "there is no chip %d in this machine", out->ids[i]);
        else if (tm_chips_has(taken, out->ids[i]))
            rc = too_few(&all, taken, need, e);
    }
    return rc;
}

char *tm_chips_text(const tm_chips *set) {
    tm_buf b = {0};
    for (int i = 0; i < set->count; i++)
        tm_buf_printf(&b, "%s%d", i ? "," : "", set->ids[i]);
    return tm_buf_take(&b);
}
