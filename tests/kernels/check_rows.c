/* The inner loops of suppression, selection and sampling: every level gives the bits of the plain one. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "features/rows.h"

enum { MAX = 700 };

typedef struct room {
    float a[MAX], b[MAX], scores[MAX], line[MAX + 2 * SP_MAX_NMS_RADIUS];
    float want[MAX], got[MAX];
    uint32_t found[2][MAX];
    uint16_t half[2][MAX];
} room;

/* Scores with plateaus, zeros and extremes; `kind` 0 random, 1 all the same, 2 any bits that are not a NaN. */
static float draw(check *c, int kind) {
    const uint32_t r = check_random(c);
    if (kind == 1)
        return 0.25f;
    if (kind == 0)
        return (float)(r % 64) / 64;
    union {
        uint32_t u;
        float f;
    } any = {r};
    return isnan(any.f) ? INFINITY : any.f;
}

static bool same(const void *a, const void *b, size_t bytes) {
    return memcmp(a, b, bytes) == 0;
}

static void check_length(check *c, const sp_row_kernels *k, room *r, uint32_t n, int kind) {
    const sp_row_kernels *plain = &sp_row_kernels_c;
    const char *level = sp_cpu_level_text(k->level);
    for (uint32_t i = 0; i < MAX; i++) {
        r->a[i] = draw(c, kind);
        r->b[i] = draw(c, kind);
        r->scores[i] = check_random(c) % 3 ? draw(c, kind) : fmaxf(r->a[i], r->b[i]);
    }
    memset(r->want, 0x5a, sizeof r->want);
    memset(r->got, 0x5a, sizeof r->got);
    plain->larger(r->a, r->b, r->want, n);
    k->larger(r->a, r->b, r->got, n);
    check_that(c, same(r->want, r->got, sizeof r->want), "%s larger of %u", level, n);
    plain->keep(r->a, r->b, r->scores, r->want, n);
    k->keep(r->a, r->b, r->scores, r->got, n);
    check_that(c, same(r->want, r->got, sizeof r->want), "%s keep of %u", level, n);
    for (int radius = 1; radius <= SP_MAX_NMS_RADIUS; radius += 1 + radius / 3) {
        plain->window(r->a, n, radius, r->line, r->want);
        k->window(r->a, n, radius, r->line, r->got);
        check_that(c, same(r->want, r->got, sizeof r->want), "%s window of %u, radius %d", level, n, radius);
    }
    const size_t count = plain->above(r->scores, 7, n, 0.25f, r->found[0]);
    check_that(c,
               k->above(r->scores, 7, n, 0.25f, r->found[1]) == count &&
                   same(r->found[0], r->found[1], count * sizeof r->found[0][0]),
               "%s above of %u", level, n);
    memset(r->half, 0x5a, sizeof r->half);
    plain->half(r->a, n, r->half[0]);
    k->half(r->a, n, r->half[1]);
    check_that(c, same(r->half[0], r->half[1], sizeof r->half[0]), "%s half of %u", level, n);
}

static void check_blend(check *c, const sp_row_kernels *k, room *r) {
    for (uint32_t i = 0; i < MAX; i++)
        r->a[i] = (float)check_random(c) / 4e9f - 0.5f;
    const float *const corner[4] = {r->a, r->a + 100, r->a + 200, r->a + 300};
    const float weight[4] = {0.1f, 0.2f, 0.3f, 0.4f};
    memset(r->want, 0x5a, sizeof r->want);
    memset(r->got, 0x5a, sizeof r->got);
    sp_row_kernels_c.blend(corner, weight, r->want);
    k->blend(corner, weight, r->got);
    check_that(c, same(r->want, r->got, sizeof r->want), "%s blend", sp_cpu_level_text(k->level));
}

void check_rows(check *c) {
    const sp_row_kernels *all[] = {
#if defined(__x86_64__)
        &sp_row_kernels_avx2,
        &sp_row_kernels_avx512,
#endif
        &sp_row_kernels_c
    };
    room *r = malloc(sizeof *r);
    for (size_t i = 0; r && i < sizeof all / sizeof all[0]; i++) {
        if (!sp_cpu_has(all[i]->level))
            continue;
        for (int kind = 0; kind < 3; kind++)
            for (uint32_t n = 1; n <= 660; n += n < 70 ? 1 : 97)
                check_length(c, all[i], r, n, kind);
        check_blend(c, all[i], r);
    }
    check_that(c, r != NULL, "no memory");
    free(r);
}
