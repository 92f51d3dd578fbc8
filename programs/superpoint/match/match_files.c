/* Feature files: pairs of pictures, matched into a file. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/fail.h"
#include "extract/identity.h"
#include "extract/interrupt.h"
#include "extract/progress.h"
#include "match/features.h"
#include "match/match.h"
#include "match/pairs.h"

typedef struct job {
    const match_options *o;
    feature_file *a, *b; /* b NULL: within a */
    pair_list pairs;
    sp_matcher *matcher;
    size_t found; /* matches in all */
} job;

/* Descriptors of two sets of weights, or of two engines' precisions, are not comparable, or less. */
static sp_status check_weights(const job *j, sp_error *err) {
    char *a = identity_weights(features_identity(j->a)), *b = j->b ? identity_weights(features_identity(j->b)) : NULL;
    sp_status status = SP_OK;
    if (a && b && strcmp(a, b) != 0)
        status = fail(err, SP_ERR_ARGUMENT, "%.150s and %.150s: were made with different weights (%.12s..., %.12s...)",
                      j->o->operands.names[0], j->o->operands.names[1], a, b);
    free(a);
    free(b);
    return status;
}

static sp_status list_pairs(job *j, sp_error *err) {
    switch (j->o->pairing) {
    case PAIRING_SEQUENTIAL:
        return pairs_sequential(j->a, j->o->neighbours, &j->pairs, err);
    case PAIRING_RETRIEVAL:
        return pairs_retrieval(j->a, j->b, j->o->neighbours, &j->pairs, err);
    case PAIRING_FILE:
        return pairs_from_file(j->a, j->b, j->o->pairs, &j->pairs, err);
    default:
        return pairs_exhaustive(j->a, j->b, &j->pairs, err);
    }
}

static char *describe(const job *j) {
    json_error_t e;
    json_t *made = json_loads(features_identity(j->a), 0, &e);
    json_t *object =
        json_pack("{s:o, s:b, s:f, s:f}", "features", made ? made : json_null(), "mutual", j->o->match.mutual,
                  "max_ratio", (double)j->o->match.max_ratio, "max_distance", (double)j->o->match.max_distance);
    char *text = object ? json_dumps(object, JSON_SORT_KEYS | JSON_COMPACT | JSON_REAL_PRECISION(7)) : NULL;
    json_decref(object);
    return text;
}

static sp_status match_pair(job *j, match_writer *w, pair p, sp_error *err) {
    feature_file *second = j->b ? j->b : j->a;
    const features *one, *two;
    sp_matches found = {0};
    sp_status status = features_get(j->a, p.a, &one, err);
    if (status == SP_OK)
        status = features_get(second, p.b, &two, err);
    if (status == SP_OK)
        status = sp_match(j->matcher, &one->descriptors, &two->descriptors, &found, err);
    if (status == SP_OK) {
        const pair_matches m = {.names = {features_name(j->a, p.a), features_name(second, p.b)},
                                .counts = {one->count, two->count},
                                .matches = &found};
        status = j->o->format->add(w, &m, err);
    }
    j->found += found.count;
    sp_matches_free(&found);
    return status;
}

static sp_status match_all(job *j, match_writer *w, bool *interrupted, sp_error *err) {
    progress *p = progress_start(j->o->program, "pairs", j->pairs.count, 0, j->o->quiet);
    sp_status status = p ? SP_OK : fail(err, SP_ERR_MEMORY, "out of memory");
    for (size_t i = 0; status == SP_OK && i < j->pairs.count; i++) {
        if (interrupt_asked()) {
            *interrupted = true;
            break;
        }
        status = match_pair(j, w, j->pairs.items[i], err);
        progress_add(p, 1, 0);
    }
    const double seconds = p ? progress_stop(p) : 0;
    if (status == SP_OK && !*interrupted && !j->o->quiet)
        fprintf(stderr, "%s: %zu pairs, %zu matches, %.1f s: %s\n", j->o->program, j->pairs.count, j->found, seconds,
                j->o->output);
    return status;
}

static sp_status write_matches(job *j, bool *interrupted, sp_error *err) {
    match_writer *w;
    char *identity = describe(j);
    sp_status status = identity ? j->o->format->create(j->o->output, identity, j->o->geometries, &w, err)
                                : fail(err, SP_ERR_MEMORY, "out of memory");
    free(identity);
    if (status != SP_OK)
        return status;
    status = match_all(j, w, interrupted, err);
    if (status == SP_OK && !*interrupted)
        return j->o->format->close(w, err);
    j->o->format->abandon(w);
    if (*interrupted)
        fprintf(stderr, "%s: interrupted; nothing was written\n", j->o->program);
    return status;
}

sp_status match_files(const match_options *o, bool *interrupted, sp_error *err) {
    job j = {.o = o};
    interrupt_catch();
    sp_status status = features_open(o->operands.names[0], o->memory / o->operands.count, &j.a, err);
    if (status == SP_OK && o->operands.count == 2)
        status = features_open(o->operands.names[1], o->memory / 2, &j.b, err);
    if (status == SP_OK)
        status = check_weights(&j, err);
    if (status == SP_OK)
        status = list_pairs(&j, err);
    if (status == SP_OK)
        status = sp_matcher_create(&o->match, &j.matcher, err);
    if (status == SP_OK)
        status = write_matches(&j, interrupted, err);
    sp_matcher_free(j.matcher);
    pairs_free(&j.pairs);
    features_close(j.b);
    features_close(j.a);
    return status;
}
