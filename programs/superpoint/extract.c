/* Keypoints and descriptors of many pictures into one file or folder. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "common/cli.h"
#include "common/fail.h"
#include "common/params.h"
#include "extract/extract.h"

typedef struct options {
    extraction_options o;
    const char **operands;
    const char *format;
    bool coordinates_given, dtype_given;
} options;

enum {
    OPT_OUTPUT,
    OPT_FORMAT,
    OPT_LIST,
    OPT_NULL,
    OPT_ROOT,
    OPT_COORDINATES,
    OPT_DTYPE,
    OPT_DECODERS,
    OPT_FAIL_FAST,
    OPT_OVERWRITE,
    OPT_RESTART,
    OPT_CAMERA,
    OPT_CAMERAS,
    OPT_PEER_TIMEOUT,
    OPT_QUIET,
    OPT_END
};

static const cli_option own[] = {
    [OPT_OUTPUT] = {"output", "PATH", "what to write; needed"},
    [OPT_FORMAT] = {"format", "NAME", "see below; without it the suffix of PATH says it"},
    [OPT_LIST] = {"list", "FILE", "pictures from a list, a path a line; - is standard input"},
    [OPT_NULL] = {"null", NULL, "paths in the list end in zero bytes (find -print0)"},
    [OPT_ROOT] = {"root", "FOLDER", "paths, and the names that are stored, are relative to FOLDER"},
    [OPT_COORDINATES] = {"coordinates", "corner|centre|colmap", "origin of the coordinates (what the format expects)"},
    [OPT_DTYPE] = {"descriptor-dtype", "float16|float32|uint8", "type of descriptor values (float16, or the format's)"},
    [OPT_DECODERS] = {"decoders", "N", "threads that read and decode (one for each CPU)"},
    [OPT_FAIL_FAST] = {"fail-fast", NULL, "stop at the first picture that cannot be read"},
    [OPT_OVERWRITE] = {"overwrite", NULL, "replace an output of other pictures or settings"},
    [OPT_RESTART] = {"restart", NULL, "forget what an interrupted run has done"},
    [OPT_CAMERA] = {"camera", "MODEL[,NUMBER...]",
                    "COLMAP camera: SIMPLE_PINHOLE, PINHOLE, SIMPLE_RADIAL (default),"
                    " RADIAL or OPENCV"},
    [OPT_CAMERAS] = {"cameras", "folder|single|image",
                     "pictures that share a camera: those of one folder and size, all,"
                     " none (folder)"},
    [OPT_PEER_TIMEOUT] = {"peer-timeout", "SECONDS",
                          "under mpirun: give up a process that finishes no picture for so long (300)"},
    [OPT_QUIET] = {"quiet", NULL, "print failures only"},
    [OPT_END] = {NULL, NULL, NULL}};

static sp_status take_number(const char *name, const char *value, uint32_t *number, sp_error *err) {
    char *end;
    const unsigned long n = strtoul(value, &end, 10);
    if (*value < '0' || *value > '9' || *end || n < 1 || n > 256)
        return fail(err, SP_ERR_ARGUMENT, "%s: %s is not a whole number within 1...256", name, value);
    *number = (uint32_t)n;
    return SP_OK;
}

static sp_status take_seconds(const char *name, const char *value, double *seconds, sp_error *err) {
    char *end;
    const double s = strtod(value, &end);
    if (end == value || *end || !(s >= 0.1 && s <= 1e6))
        return fail(err, SP_ERR_ARGUMENT, "%s: %s is not a number of seconds within 0.1...1000000", name, value);
    *seconds = s;
    return SP_OK;
}

static sp_status take_sharing(const char *value, camera_sharing *sharing, sp_error *err) {
    static const char *const names[] = {"folder", "single", "image"};
    for (int i = 0; i < 3; i++)
        if (strcmp(value, names[i]) == 0) {
            *sharing = (camera_sharing)i;
            return SP_OK;
        }
    return fail(err, SP_ERR_ARGUMENT, "cameras: %s is none of folder, single and image", value);
}

static sp_status take(void *context, const cli_option *option, const char *value, sp_error *err) {
    options *p = context;
    extraction_options *o = &p->o;
    if (!option) {
        if (strcmp(value, "-") == 0)
            return fail(err, SP_ERR_ARGUMENT, "-: a list of pictures on standard input is asked for by --list -");
        p->operands[o->inputs.operand_count++] = value;
        return SP_OK;
    }
    switch (option - own) {
    case OPT_OUTPUT:
        o->output = value;
        break;
    case OPT_FORMAT:
        p->format = value;
        break;
    case OPT_LIST:
        o->inputs.list = value;
        break;
    case OPT_NULL:
        o->inputs.nulls = true;
        break;
    case OPT_ROOT:
        o->inputs.root = value;
        break;
    case OPT_COORDINATES:
        p->coordinates_given = true;
        return params_set(&o->params, "coordinates", value, err);
    case OPT_DTYPE:
        p->dtype_given = true;
        return params_set(&o->params, "descriptor_dtype", value, err);
    case OPT_DECODERS:
        return take_number("decoders", value, &o->decoders, err);
    case OPT_FAIL_FAST:
        o->fail_fast = true;
        break;
    case OPT_OVERWRITE:
        o->overwrite = true;
        break;
    case OPT_RESTART:
        o->restart = true;
        break;
    case OPT_CAMERA:
        return camera_parse(&o->camera, value, err);
    case OPT_CAMERAS:
        return take_sharing(value, &o->camera.sharing, err);
    case OPT_PEER_TIMEOUT:
        return take_seconds("peer-timeout", value, &o->peer_timeout, err);
    default:
        o->quiet = true;
    }
    return SP_OK;
}

static sp_status complete(void *context, sp_error *err) {
    options *p = context;
    extraction_options *o = &p->o;
    if (!o->output)
        return fail(err, SP_ERR_ARGUMENT, "--output: is missing");
    if (o->inputs.operand_count == 0 && !o->inputs.list && !o->inputs.root)
        return fail(err, SP_ERR_ARGUMENT, "no pictures were named");
    sp_status status = output_find(p->format, o->output, &o->format, err);
    if (status != SP_OK)
        return status;
    if (!p->coordinates_given)
        o->params.coordinates = o->format->coordinates;
    if (p->dtype_given && o->format->fixed_dtype && o->params.descriptor_dtype != o->format->dtype)
        return fail(err, SP_ERR_ARGUMENT, "--descriptor-dtype: the format %s holds no such type", o->format->name);
    if (!p->dtype_given)
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
    options p = {.operands = calloc((size_t)argc + 1, sizeof *p.operands)};
    if (!p.operands)
        return EXIT_FAILED;
    p.o.program = "superpoint extract";
    p.o.inputs.operands = p.operands;
    p.o.camera.model = 2; /* SIMPLE_RADIAL, as COLMAP */
    p.o.peer_timeout = 300;
    sp_setup_default(&p.o.setup);
    sp_params_default(&p.o.params);
    const cli c = {.program = p.o.program,
                   .usage = "superpoint extract [OPTION...] --output PATH INPUT...",
                   .about = about,
                   .epilogue = epilogue,
                   .options = own,
                   .setup = &p.o.setup,
                   .params = &p.o.params,
                   .take = take,
                   .complete = complete,
                   .context = &p};
    int code = cli_parse(&c, argc, argv);
    if (code == CLI_GO_ON)
        code = extraction_run(&p.o);
    free(p.operands);
    return code;
}
