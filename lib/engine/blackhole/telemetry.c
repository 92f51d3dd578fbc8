#include "telemetry.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"

/* Source: tt-kmd telemetry.h, and the tags 34 and 40 of tt-zephyr-platforms. */
#define ARC_SCRATCH(i) (0x80030400u + 4u * (i))
enum { SCRATCH_VALUES = 12, SCRATCH_TABLE = 13 };
enum { TAG_CLOCK = 14, TAG_BUNDLE = 28, TAG_COLUMNS = 34, TAG_TRANSLATION = 40 };
enum { MAX_TELEMETRY = 256, COLUMNS = 14, ROWS = 10, FIRST_ROW = 2 };

/* Values of the tags asked for; `found` says which the firmware has. */
static sp_status read_tags(bh_transport *t, const uint32_t *tags, size_t n, uint32_t *values, bool *found,
                           sp_error *err) {
    uint32_t table = 0, data = 0, count = 0;
    memset(found, 0, n * sizeof *found);
    sp_status status = t->read(t, BH_ARC, ARC_SCRATCH(SCRATCH_TABLE), &table, 4, err);
    if (status == SP_OK)
        status = t->read(t, BH_ARC, ARC_SCRATCH(SCRATCH_VALUES), &data, 4, err);
    if (status == SP_OK && table == 0xFFFFFFFFu)
        return sp_fail(err, SP_ERR_ENGINE_HUNG,
                       "blackhole: %s: the chip does not answer (reads give all ones); reset it", t->chip.name);
    if (status == SP_OK)
        status = t->read(t, BH_ARC, table + 4, &count, 4, err);
    if (status == SP_OK && count > MAX_TELEMETRY)
        return sp_fail(err, SP_ERR_ENGINE, "blackhole: %s: telemetry of %u entries is not believable", t->chip.name,
                       count);
    for (uint32_t i = 0; i < count && status == SP_OK; i++) {
        uint32_t entry = 0; /* tag, and its place among the values in the high half */
        status = t->read(t, BH_ARC, table + 8 + 4 * i, &entry, 4, err);
        for (size_t k = 0; k < n && status == SP_OK; k++)
            if ((entry & 0xFFFF) == tags[k]) {
                status = t->read(t, BH_ARC, data + 4 * (entry >> 16), &values[k], 4, err);
                found[k] = status == SP_OK;
            }
    }
    return status;
}

/* Disabled columns are gone from the translated coordinates: the enabled ones are the first of 1...7, 10...16. */
static void list_tiles(bh_chip *chip, uint32_t columns) {
    chip->tiles = 0;
    for (uint32_t c = 0; c < columns; c++)
        for (uint32_t y = FIRST_ROW; y < FIRST_ROW + ROWS; y++)
            chip->tile[chip->tiles++] = NOC_AT(c < 7 ? 1 + c : 3 + c, y);
    for (uint32_t b = 0; b < BH_BANKS; b++)
        chip->bank[b] = BH_DRAM_PORT(b);
}

sp_status sp_bh_read_telemetry(bh_transport *t, sp_error *err) {
    enum { CLOCK, BUNDLE, ENABLED, TRANSLATION, TAGS };
    static const uint32_t tags[TAGS] = {TAG_CLOCK, TAG_BUNDLE, TAG_COLUMNS, TAG_TRANSLATION};
    uint32_t value[TAGS];
    bool found[TAGS];
    bh_chip *chip = &t->chip;
    sp_status status = read_tags(t, tags, TAGS, value, found, err);
    if (status != SP_OK)
        return status;
    if (!found[ENABLED])
        return sp_fail(err, SP_ERR_UNAVAILABLE,
                       "blackhole: %s: the board's firmware does not say which columns are enabled", chip->name);
    if (found[TRANSLATION] && !value[TRANSLATION])
        return sp_fail(err, SP_ERR_UNAVAILABLE, "blackhole: %s: coordinate translation is off", chip->name);
    const uint32_t columns = (uint32_t)__builtin_popcount(value[ENABLED] & ((1u << COLUMNS) - 1));
    if (!columns)
        return sp_fail(err, SP_ERR_UNAVAILABLE, "blackhole: %s: no column of tiles is enabled", chip->name);
    list_tiles(chip, columns);
    chip->clock_mhz = found[CLOCK] ? value[CLOCK] : 0;
    if (found[BUNDLE]) {
        const size_t used = strlen(chip->versions);
        snprintf(chip->versions + used, sizeof chip->versions - used, ", board firmware %u.%u.%u", value[BUNDLE] >> 24,
                 value[BUNDLE] >> 16 & 0xFF, value[BUNDLE] >> 8 & 0xFF);
    }
    return SP_OK;
}
