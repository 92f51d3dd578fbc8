/* The same points in two pictures, or in many pairs of pictures from feature files. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "common/cli.h"
#include "common/fail.h"
#include "match/match.h"

enum {
    OPT_RATIO,
    OPT_DISTANCE,
    OPT_ONE_WAY,
    OPT_DRAW,
    OPT_JSON,
    OPT_OUTPUT,
    OPT_FORMAT,
    OPT_PAIRS,
    OPT_SEQUENTIAL,
    OPT_RETRIEVAL,
    OPT_GEOMETRIES,
    OPT_MEMORY,
    OPT_QUIET,
    OPT_END
};

static const cli_option own[] = {
    [OPT_RATIO] = {"max-ratio", "R", "keep when the distance is at most R times that of the second nearest (1: off)"},
    [OPT_DISTANCE] = {"max-distance", "D", "keep when the distance of the descriptors, 0...2, is at most D (2: off)"},
    [OPT_ONE_WAY] = {"one-way", NULL, "the nearest for each point of the first, whether or not it is mutual"},
    [OPT_DRAW] = {"draw", "FILE.png", "two pictures: write both with lines between the matches"},
    [OPT_JSON] = {"json", NULL, "two pictures: print one JSON document"},
    [OPT_OUTPUT] = {"output", "PATH", "feature files: what to write, .h5 (hloc), .db (COLMAP) or .txt (COLMAP)"},
    [OPT_FORMAT] = {"format", "NAME", "hdf5, colmap or colmap-text, where PATH's suffix does not say it"},
    [OPT_PAIRS] = {"pairs", "FILE", "pairs from a file, two names a line; - is standard input"},
    [OPT_SEQUENTIAL] = {"sequential", "N", "each picture with the next N in the order of names"},
    [OPT_RETRIEVAL] = {"retrieval", "N", "each picture with the N that are most alike"},
    [OPT_GEOMETRIES] = {"skip-verification", NULL, "database: enter the matches as two-view geometries too, unchecked"},
    [OPT_MEMORY] = {"memory", "MIB", "memory for features (1024)"},
    [OPT_QUIET] = {"quiet", NULL, "print failures only"},
    [OPT_END] = {NULL, NULL, NULL}};

static sp_status take_real(const char *name, const char *value, float *out, sp_error *err) {
    char *end;
    const float number = strtof(value, &end);
    if (end == value || *end || !isfinite(number))
        return fail(err, SP_ERR_ARGUMENT, "%s: %s is not a number", name, value);
    *out = number;
    return SP_OK;
}

static sp_status take_count(const char *name, const char *value, unsigned long most, unsigned long *out,
                            sp_error *err) {
    char *end;
    errno = 0;
    *out = strtoul(value, &end, 10);
    if (*value < '0' || *value > '9' || *end || errno || *out < 1 || *out > most)
        return fail(err, SP_ERR_ARGUMENT, "%s: %s is not a whole number within 1...%lu", name, value, most);
    return SP_OK;
}

typedef struct options {
    match_options o;
    const char *format;
    int pairings;
} options;

static sp_status take_pairing(options *p, pairing kind, const char *name, const char *value, sp_error *err) {
    unsigned long n = 0;
    p->o.pairing = kind;
    p->pairings++;
    if (kind == PAIRING_FILE) {
        p->o.pairs = value;
        return SP_OK;
    }
    sp_status status = take_count(name, value, 1000000, &n, err);
    p->o.neighbours = (uint32_t)n;
    return status;
}

static sp_status take(void *context, const cli_option *option, const char *value, sp_error *err) {
    options *p = context;
    match_options *o = &p->o;
    unsigned long n;
    if (!option) {
        if (o->operand_count == 2)
            return fail(err, SP_ERR_ARGUMENT, "%.300s: is a third file", value);
        o->operands[o->operand_count++] = value;
        return SP_OK;
    }
    switch (option - own) {
    case OPT_RATIO:
        return take_real("max-ratio", value, &o->match.max_ratio, err);
    case OPT_DISTANCE:
        return take_real("max-distance", value, &o->match.max_distance, err);
    case OPT_ONE_WAY:
        o->match.mutual = false;
        return SP_OK;
    case OPT_DRAW:
        o->draw = value;
        return SP_OK;
    case OPT_JSON:
        o->json = true;
        return SP_OK;
    case OPT_OUTPUT:
        o->output = value;
        return SP_OK;
    case OPT_FORMAT:
        p->format = value;
        return SP_OK;
    case OPT_PAIRS:
        return take_pairing(p, PAIRING_FILE, "pairs", value, err);
    case OPT_SEQUENTIAL:
        return take_pairing(p, PAIRING_SEQUENTIAL, "sequential", value, err);
    case OPT_RETRIEVAL:
        return take_pairing(p, PAIRING_RETRIEVAL, "retrieval", value, err);
    case OPT_GEOMETRIES:
        o->geometries = true;
        return SP_OK;
    case OPT_MEMORY: {
        sp_status status = take_count("memory", value, 1 << 24, &n, err);
        o->memory = (size_t)n << 20;
        return status;
    }
    default:
        o->quiet = true;
        return SP_OK;
    }
}

static sp_status complete(void *context, sp_error *err) {
    options *p = context;
    match_options *o = &p->o;
    o->match.threads = o->setup.engine.threads;
    o->match.level = o->setup.engine.level;
    sp_matcher *trial; /* lets the library judge the numbers before anything is read */
    sp_status status = sp_matcher_create(&o->match, &trial, err);
    if (status != SP_OK)
        return status;
    sp_matcher_free(trial);
    if (o->operand_count == 0)
        return fail(err, SP_ERR_ARGUMENT, "no files were named");
    if (!o->output) {
        if (o->operand_count != 2)
            return fail(err, SP_ERR_ARGUMENT, "two pictures are needed, or feature files and --output");
        if (p->pairings || p->format || o->geometries)
            return fail(err, SP_ERR_ARGUMENT, "--output: is missing");
        return o->params.descriptors ? SP_OK : fail(err, SP_ERR_ARGUMENT, "without descriptors nothing is matched");
    }
    if (o->draw || o->json)
        return fail(err, SP_ERR_ARGUMENT, "--draw and --json are for two pictures, without --output");
    if (p->pairings > 1)
        return fail(err, SP_ERR_ARGUMENT, "of --pairs, --sequential and --retrieval one at most can be given");
    if (o->pairing == PAIRING_SEQUENTIAL && o->operand_count == 2)
        return fail(err, SP_ERR_ARGUMENT, "--sequential: takes one feature file");
    return match_format_find(p->format, o->output, &o->format, err);
}

static const char about[] =
    "Matches by mutual nearest neighbours. Two pictures: prints a line of x, y in the first, x, y in the\n"
    "second and the descriptors' similarity for each match. Feature files, from superpoint extract, hloc or\n"
    "a COLMAP database: matches pairs of pictures, by default each with each; with two files, those of the\n"
    "first with those of the second.\n";

static const char epilogue[] =
    "Examples:\n"
    "  superpoint match left.jpg right.jpg --max-ratio 0.9 --draw matches.png\n"
    "  superpoint match features.h5 --output matches.h5 --pairs pairs.txt\n"
    "  superpoint match scene.db --output scene.db --max-ratio 0.9\n"
    "  superpoint match video.h5 --output matches.h5 --sequential 10\n"
    "  superpoint match queries.h5 map.h5 --output matches.h5 --retrieval 20\n"
    "\n"
    "The matches are not checked for one geometry. COLMAP does that: colmap geometric_verifier, or\n"
    "pycolmap.verify_matches(database, pairs), on the database that this wrote.\n";

int sp_command_match(int argc, char **argv) {
    options p = {.o = {.program = "superpoint match", .memory = (size_t)1 << 30}};
    sp_setup_default(&p.o.setup);
    sp_params_default(&p.o.params);
    sp_match_options_default(&p.o.match);
    const cli c = {.program = p.o.program,
                   .usage = "superpoint match [OPTION...] PICTURE PICTURE\n"
                            "       superpoint match [OPTION...] --output PATH FEATURES [FEATURES]",
                   .about = about,
                   .epilogue = epilogue,
                   .options = own,
                   .setup = &p.o.setup,
                   .params = &p.o.params,
                   .take = take,
                   .complete = complete,
                   .context = &p};
    sp_error err = {0};
    int code = cli_parse(&c, argc, argv);
    if (code != CLI_GO_ON)
        return code;
    bool interrupted = false;
    sp_status status = p.o.output ? match_files(&p.o, &interrupted, &err) : match_pictures(&p.o, &err);
    if (status != SP_OK)
        return cli_fail(&c, &err);
    return interrupted ? EXIT_INTERRUPTED : EXIT_OK;
}
