#include "environment.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "transport_driver.h"

/* The simulator's library, or NULL. */
static const char *simulator(const sp_engine_options *options) {
    const char *path = getenv("TTSIM");
    return strcmp(options->engine, "blackhole") == 0 && path && *path ? path : NULL;
}

static const char *card(void) {
    const char *path = getenv("SUPERPOINT_BLACKHOLE_DEVICE");
    return path && *path ? path : BH_DEFAULT_DEVICE;
}

sp_status sp_bh_find_chip(const sp_engine_options *options, sp_error *err) {
    if (simulator(options) || access(card(), R_OK | W_OK) == 0)
        return SP_OK;
    return sp_fail(err, SP_ERR_UNAVAILABLE,
                   "blackhole: no card: %s: %s (TTSIM can name the library of a simulated one)", card(),
                   strerror(errno));
}

sp_status sp_bh_open_chip(const sp_engine_options *options, bh_transport **transport, sp_error *err) {
    return simulator(options) ? sp_bh_open_simulator(simulator(options), transport, err)
                              : sp_bh_open_driver(card(), &sp_bh_system, transport, err);
}

sp_status sp_bh_reset_chip(const sp_engine_options *options, sp_error *err) {
    if (simulator(options))
        return sp_fail(err, SP_ERR_UNAVAILABLE, "blackhole: a simulated chip cannot be reset");
    return sp_bh_reset_driver(card(), &sp_bh_system, err);
}

sp_status sp_bh_read_grid(bh_config *config, sp_error *err) {
    const char *text = getenv("SUPERPOINT_BLACKHOLE_GRID");
    config->grid_rows = config->grid_cols = 0;
    if (!text || !*text)
        return SP_OK;
    int end = 0;
    if (sscanf(text, "%3ux%3u%n", &config->grid_rows, &config->grid_cols, &end) != 2 || text[end] ||
        !config->grid_rows || !config->grid_cols)
        return sp_fail(err, SP_ERR_ARGUMENT, "SUPERPOINT_BLACKHOLE_GRID: \"%s\" is not ROWSxCOLUMNS", text);
    return SP_OK;
}
