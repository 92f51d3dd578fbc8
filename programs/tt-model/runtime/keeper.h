/* keeper.h - the process that stays with a native server. See native.h. */
#ifndef TM_KEEPER_H
#define TM_KEEPER_H

#include "base/error.h"
#include "base/json.h"
#include "base/text.h"

/* Most bytes of a state file. */
enum { TM_MAX_NATIVE_STATE = 1 << 20 };

/* Fork the keeper, which starts argv with env added, adds pid, start_ticks, boot_id and keeper_pid to
 * `state`, saves it at `state_path`, and stamps what the server prints into `log_path`. Returns when the
 * state is on disk, or when the program could not be started. */
int tm_keeper_start(const char *state_path, const char *log_path, const json_t *state, const tm_list *argv,
                    const tm_list *env, tm_error *e);

/* When a process started, in clock ticks since boot; -1 when there is none (or only a zombie). */
json_int_t tm_process_start(long pid);
void tm_boot_id(char out[64]);

#endif
