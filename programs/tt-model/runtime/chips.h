/* chips.h - the accelerators of this machine, and which of them are taken. */
#ifndef TM_CHIPS_H
#define TM_CHIPS_H

#include "base/error.h"
#include "base/json.h"
#include "docker.h"

#include <stdbool.h>

#define TM_DEVICE_DIR "/dev/tenstorrent"

typedef struct tm_chips {
    int ids[256];
    int count;
} tm_chips;

/* Numbered nodes of /dev/tenstorrent, ascending. */
void tm_chips_inventory(tm_chips *out);
/* "blackhole", "wormhole_b0", "grayskull", or NULL when there is no card. */
const char *tm_local_arch(void);

/* Chips that running containers hold: those that share the host's IPC namespace are looked at for device
 * grants, bind mounts, our label; a privileged one, or one with the whole directory, holds all. */
int tm_chips_taken(tm_docker *docker, tm_chips *taken, tm_error *e);
/* Chips that native servers hold. */
void tm_chips_add(tm_chips *set, int id);
bool tm_chips_has(const tm_chips *set, int id);

/* Choose `need` free chips, or check the wanted list ("0,1"; NULL: any). */
int tm_chips_choose(const tm_chips *taken, int need, const char *wanted, tm_chips *out, tm_error *e);
/* "0,1"; fresh */
char *tm_chips_text(const tm_chips *set);

#endif
