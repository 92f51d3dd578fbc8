/* The same points in two pictures, or in many pairs of pictures from feature files. */
#include <float.h>

#include "command.h"
#include "common/cli.h"
#include "common/fail.h"
#include "common/number.h"
#include "match/match.h"

typedef struct options {
    match_options o;
    bool one_way;
    /* As given, for `complete` to read; NULL: not given. */
    const char *ratio, *distance, *format, *sequential, *retrieval, *memory;
} options;

static const cli_option own[] = {
    {"max-ratio", "R", "keep when the distance is at most R times that of the second nearest (1: off)",
     CLI_TEXT(options, ratio)},
    {"max-distance", "D", "keep when the distance of the descriptors, 0...2, is at most D (2: off)",
     CLI_TEXT(options, distance)},
    {"one-way", NULL, "the nearest for each point of the first, whether or not it is mutual",
     CLI_FLAG(options, one_way)},
    {"draw", "FILE.png", "two pictures: write both with lines between the matches", CLI_TEXT(options, o.draw)},
    {"json", NULL, "two pictures: print one JSON document", CLI_FLAG(options, o.json)},
    {"output", "PATH", "feature files: what to write, .h5 (hloc), .db (COLMAP) or .txt (COLMAP)",
     CLI_TEXT(options, o.output)},
    {"format", "NAME", "hdf5, colmap or colmap-text, where PATH's suffix does not say it", CLI_TEXT(options, format)},
    {"pairs", "FILE", "pairs from a file, two names a line; - is standard input", CLI_TEXT(options, o.pairs)},
    {"sequential", "N", "each picture with the next N in the order of names", CLI_TEXT(options, sequential)},
    {"retrieval", "N", "each picture with the N that are most alike", CLI_TEXT(options, retrieval)},
    {"skip-verification", NULL, "database: enter the matches as two-view geometries too, unchecked",
     CLI_FLAG(options, o.geometries)},
    {"memory", "MIB", "memory for features (1024)", CLI_TEXT(options, memory)},
    {"quiet", NULL, "print failures only", CLI_FLAG(options, o.quiet)},
    CLI_END};

static sp_status read_float(const char *name, const char *value, float *out, sp_error *err) {
    double number;
    sp_status status = number_real(name, value, -FLT_MAX, FLT_MAX, &number, err);
    if (status == SP_OK)
        *out = (float)number;
    return status;
}

/* The values that were given as text. */
static sp_status read_values(options *p, sp_error *err) {
    match_options *o = &p->o;
    int64_t neighbours = 0, mib = 0;
    sp_status status = SP_OK;
    if (p->ratio)
        status = read_float("max-ratio", p->ratio, &o->match.max_ratio, err);
    if (status == SP_OK && p->distance)
        status = read_float("max-distance", p->distance, &o->match.max_distance, err);
    if (status == SP_OK && p->sequential)
        status = number_whole("sequential", p->sequential, 1, 1000000, &neighbours, err);
    if (status == SP_OK && p->retrieval)
        status = number_whole("retrieval", p->retrieval, 1, 1000000, &neighbours, err);
    if (status == SP_OK && p->memory)
        status = number_whole("memory", p->memory, 1, 1 << 24, &mib, err);
    o->neighbours = (uint32_t)neighbours;
    if (mib)
        o->memory = (size_t)mib << 20;
    return status;
}

/* How pictures are paired; more than one way cannot be asked for. */
static sp_status choose_pairing(options *p, sp_error *err) {
    match_options *o = &p->o;
    if ((o->pairs != NULL) + (p->sequential != NULL) + (p->retrieval != NULL) > 1)
        return fail(err, SP_ERR_ARGUMENT, "of --pairs, --sequential and --retrieval one at most can be given");
    o->pairing = o->pairs        ? PAIRING_FILE
                 : p->sequential ? PAIRING_SEQUENTIAL
                 : p->retrieval  ? PAIRING_RETRIEVAL
                                 : PAIRING_EXHAUSTIVE;
    return SP_OK;
}

/* The library judges the numbers before anything is read. */
static sp_status check_matcher(const sp_match_options *o, sp_error *err) {
    sp_matcher *trial;
    sp_status status = sp_matcher_create(o, &trial, err);
    if (status == SP_OK)
        sp_matcher_free(trial);
    return status;
}

static sp_status complete(void *context, sp_error *err) {
    options *p = context;
    match_options *o = &p->o;
    o->match.threads = o->setup.engine.threads;
    o->match.level = o->setup.engine.level;
    o->match.mutual = !p->one_way;
    sp_status status = read_values(p, err);
    if (status == SP_OK)
        status = choose_pairing(p, err);
    if (status == SP_OK)
        status = check_matcher(&o->match, err);
    if (status != SP_OK)
        return status;
    if (o->operands.count == 0)
        return fail(err, SP_ERR_ARGUMENT, "no files were named");
    if (o->operands.count > 2)
        return fail(err, SP_ERR_ARGUMENT, "%.300s: is a third file", o->operands.names[2]);
    if (!o->output) {
        if (o->operands.count != 2)
            return fail(err, SP_ERR_ARGUMENT, "two pictures are needed, or feature files and --output");
        if (o->pairing != PAIRING_EXHAUSTIVE || p->format || o->geometries)
            return fail(err, SP_ERR_ARGUMENT, "--output: is missing");
        return o->params.descriptors ? SP_OK : fail(err, SP_ERR_ARGUMENT, "without descriptors nothing is matched");
    }
    if (o->draw || o->json)
        return fail(err, SP_ERR_ARGUMENT, "--draw and --json are for two pictures, without --output");
    if (o->pairing == PAIRING_SEQUENTIAL && o->operands.count == 2)
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
                   .operands = &p.o.operands,
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
