/* Keypoints and descriptors of many pictures into one file or folder. */
#include <string.h>

#include "command.h"
#include "common/cli.h"
#include "common/fail.h"
#include "common/number.h"
#include "common/params.h"
#include "extract/extract.h"

typedef struct options {
    extraction_options o;
    /* As given, for `complete` to read; NULL: not given. */
    const char *format, *coordinates, *dtype, *decoders, *camera, *cameras, *peer_timeout;
} options;

static const cli_option own[] = {
    {"output", "PATH", "what to write; needed", CLI_TEXT(options, o.output)},
    {"format", "NAME", "see below; without it the suffix of PATH says it", CLI_TEXT(options, format)},
    {"list", "FILE", "pictures from a list, a path a line; - is standard input", CLI_TEXT(options, o.inputs.list)},
    {"null", NULL, "paths in the list end in zero bytes (find -print0)", CLI_FLAG(options, o.inputs.nulls)},
    {"root", "FOLDER", "paths, and the names that are stored, are relative to FOLDER",
     CLI_TEXT(options, o.inputs.root)},
    {"coordinates", "corner|centre|colmap", "origin of the coordinates (what the format expects)",
     CLI_TEXT(options, coordinates)},
    {"descriptor-dtype", "float16|float32|uint8", "type of descriptor values (float16, or the format's)",
     CLI_TEXT(options, dtype)},
    {"decoders", "N", "threads that read and decode (one for each CPU)", CLI_TEXT(options, decoders)},
    {"fail-fast", NULL, "stop at the first picture that cannot be read", CLI_FLAG(options, o.fail_fast)},
    {"overwrite", NULL, "replace an output of other pictures or settings", CLI_FLAG(options, o.overwrite)},
    {"restart", NULL, "forget what an interrupted run has done", CLI_FLAG(options, o.restart)},
    {"camera", "MODEL[,NUMBER...]", "COLMAP camera: SIMPLE_PINHOLE, PINHOLE, SIMPLE_RADIAL (default), RADIAL or OPENCV",
     CLI_TEXT(options, camera)},
    {"cameras", "folder|single|image", "pictures that share a camera: those of one folder and size, all, none (folder)",
     CLI_TEXT(options, cameras)},
    {"peer-timeout", "SECONDS", "under mpirun: give up a process that finishes no picture for so long (300)",
     CLI_TEXT(options, peer_timeout)},
    {"quiet", NULL, "print failures only", CLI_FLAG(options, o.quiet)},
    CLI_END};

static sp_status read_sharing(const char *value, camera_sharing *sharing, sp_error *err) {
    static const char *const names[] = {"folder", "single", "image"};
    for (int i = 0; i < 3; i++)
        if (strcmp(value, names[i]) == 0) {
            *sharing = (camera_sharing)i;
            return SP_OK;
        }
    return fail(err, SP_ERR_ARGUMENT, "cameras: %s is none of folder, single and image", value);
}

/* The values that were given as text. */
static sp_status read_values(options *p, sp_error *err) {
    extraction_options *o = &p->o;
    int64_t decoders = o->decoders;
    sp_status status = SP_OK;
    if (p->coordinates)
        status = params_set(&o->params, "coordinates", p->coordinates, err);
    if (status == SP_OK && p->dtype)
        status = params_set(&o->params, "descriptor_dtype", p->dtype, err);
    if (status == SP_OK && p->decoders)
        status = number_whole("decoders", p->decoders, 1, 256, &decoders, err);
    if (status == SP_OK && p->camera)
        status = camera_parse(&o->camera, p->camera, err);
    if (status == SP_OK && p->cameras)
        status = read_sharing(p->cameras, &o->camera.sharing, err);
    if (status == SP_OK && p->peer_timeout)
        status = number_real("peer-timeout", p->peer_timeout, 0.1, 1e6, &o->peer_timeout, err);
    o->decoders = (uint32_t)decoders;
    return status;
}

static sp_status check_inputs(const input_options *inputs, sp_error *err) {
    for (size_t i = 0; i < inputs->operands.count; i++)
        if (strcmp(inputs->operands.names[i], "-") == 0)
            return fail(err, SP_ERR_ARGUMENT, "-: a list of pictures on standard input is asked for by --list -");
    if (inputs->operands.count == 0 && !inputs->list && !inputs->root)
        return fail(err, SP_ERR_ARGUMENT, "no pictures were named");
    return SP_OK;
}

static sp_status complete(void *context, sp_error *err) {
    options *p = context;
    extraction_options *o = &p->o;
    sp_status status = read_values(p, err);
    if (status == SP_OK && !o->output)
        status = fail(err, SP_ERR_ARGUMENT, "--output: is missing");
    if (status == SP_OK)
        status = check_inputs(&o->inputs, err);
    if (status == SP_OK)
        status = output_find(p->format, o->output, &o->format, err);
    if (status != SP_OK)
        return status;
    if (!p->coordinates)
        o->params.coordinates = o->format->coordinates;
    if (p->dtype && o->format->fixed_dtype && o->params.descriptor_dtype != o->format->dtype)
        return fail(err, SP_ERR_ARGUMENT, "--descriptor-dtype: the format %s holds no such type", o->format->name);
    if (!p->dtype)
        o->params.descriptor_dtype = o->format->dtype;
    return SP_OK;
}

static const char about[] =
    "Finds and describes the keypoints of many pictures. An INPUT is a folder, whose pictures at all depths\n"
    "are taken, a quoted pattern, or a picture. Pictures that cannot be read are reported and left out; the\n"
    "exit status is then 1. Run the same command again after an interruption, of whatever kind, and it goes\n"
    "on where it stopped; the result is the same, byte for byte.\n";

static const char epilogue[] =
    "Formats, the origin of coordinates that each expects, and the suffix that stands for it:\n"
    "  hdf5         centre  .h5     hloc's layout: keypoints, scores, descriptors, image_size by picture\n"
    "  npz          corner          a folder with a NAME.npz for each picture\n"
    "  colmap       colmap  .db     COLMAP's database, with uint8 descriptors\n"
    "  colmap-text  colmap          a folder with a NAME.txt for each picture, for COLMAP's import\n"
    "  jsonl        corner  .jsonl  a line for each picture, as the service replies\n"
    "  csv          centre  .csv    a line for each keypoint, as OpenCV's KeyPoint\n"
    "\n"
    "Many machines: mpirun -n 4 superpoint extract ... shares the list; the folder of the output has to be\n"
    "one that all of them see. A process that hangs is given up after --peer-timeout; the others do its\n"
    "pictures, and the exit status is 1.\n"
    "\n"
    "Examples:\n"
    "  superpoint extract photos --output features.h5\n"
    "  superpoint extract photos --output scene.db --camera PINHOLE,525,525,320,240 --cameras single\n"
    "  superpoint extract 'frames/*.png' --format npz --output features --max-keypoints 2048\n"
    "  find /data -name '*.jpg' -print0 | superpoint extract --list - --null --output features.h5\n"
    "  superpoint extract --root dataset --list queries.txt --output queries.h5 --resize max:1024\n";

int sp_command_extract(int argc, char **argv) {
    options p = {.o = {.program = "superpoint extract",
                       .camera.model = 2, /* SIMPLE_RADIAL, as COLMAP */
                       .peer_timeout = 300}};
    sp_setup_default(&p.o.setup);
    sp_params_default(&p.o.params);
    const cli c = {.program = p.o.program,
                   .usage = "superpoint extract [OPTION...] --output PATH INPUT...",
                   .about = about,
                   .epilogue = epilogue,
                   .options = own,
                   .setup = &p.o.setup,
                   .params = &p.o.params,
                   .operands = &p.o.inputs.operands,
                   .complete = complete,
                   .context = &p};
    const int code = cli_parse(&c, argc, argv);
    return code == CLI_GO_ON ? extraction_run(&p.o) : code;
}
