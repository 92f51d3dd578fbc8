#include "sides.h"

static bool tile_exists(const bh_chip *chip, uint32_t at) {
    for (size_t k = 0; k < chip->tiles; k++)
        if (chip->tile[k] == at)
            return true;
    return false;
}

uint32_t sp_bh_side_of(uint32_t at) {
    enum { LAST_BETWEEN = 8 }; /* columns 8 and 9 hold no Tensix tiles */
    return NOC_X(at) > LAST_BETWEEN;
}

static void find_rectangles(const bh_chip *chip, uint32_t tiles, bh_side side[BH_SIDES]) {
    for (uint32_t i = 0; i < BH_SIDES; i++)
        side[i] = (bh_side){.x0 = 63, .y0 = 63, .feeder = NOC_NOWHERE};
    for (uint32_t k = 0; k < tiles; k++) {
        bh_side *s = &side[sp_bh_side_of(chip->tile[k])];
        const uint32_t x = NOC_X(chip->tile[k]), y = NOC_Y(chip->tile[k]);
        s->x0 = x < s->x0 ? x : s->x0, s->x1 = x > s->x1 ? x : s->x1;
        s->y0 = y < s->y0 ? y : s->y0, s->y1 = y > s->y1 ? y : s->y1;
        s->users++;
    }
    for (uint32_t i = 0; i < BH_SIDES; i++) {
        side[i].whole = true;
        for (uint32_t x = side[i].x0; x <= side[i].x1; x++)
            for (uint32_t y = side[i].y0; y <= side[i].y1; y++)
                side[i].whole &= tile_exists(chip, NOC_AT(x, y));
    }
}

void sp_bh_choose_sides(const bh_chip *chip, uint32_t tiles, bh_side side[BH_SIDES]) {
    find_rectangles(chip, tiles, side);
    if (tiles <= 1 || chip->tiles < tiles + BH_SIDES || !side[0].whole || !side[1].whole)
        return;
    size_t spare = chip->tiles; /* from the end: the right side first */
    side[1].feeder = chip->tile[--spare];
    for (size_t k = tiles; k < spare; k++)
        if (sp_bh_side_of(chip->tile[k]) == 0) {
            side[0].feeder = chip->tile[k];
            return;
        }
    side[0].feeder = chip->tile[--spare];
}

sp_status sp_bh_broadcast(bh_transport *t, const bh_side side[BH_SIDES], uint32_t tiles, uint64_t address,
                          const void *from, size_t n, sp_error *err) {
    sp_status status = SP_OK;
    for (uint32_t i = 0; i < BH_SIDES && status == SP_OK; i++) {
        const bh_side *s = &side[i];
        if (s->users > 1 && s->whole) {
            status = t->multicast(t, NOC_AT(s->x0, s->y0), NOC_AT(s->x1, s->y1), address, from, n, err);
            continue;
        }
        for (uint32_t k = 0; k < tiles && status == SP_OK; k++)
            if (sp_bh_side_of(t->chip.tile[k]) == i)
                status = t->write(t, t->chip.tile[k], address, from, n, err);
    }
    return status;
}
