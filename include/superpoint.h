/*
 * superpoint.h - find interest points in a picture and describe them.
 *
 * SuperPoint (DeTone, Malisiewicz, Rabinovich: "SuperPoint: Self-Supervised Interest Point Detection
 * and Description", arXiv:1712.07629) is a convolutional network that gives, for every pixel of a
 * grey picture, a score that it is an interest point, and a coarse map of 256-dimensional
 * descriptors. This library runs the network on the machine at hand and turns its maps into
 * keypoints.
 *
 * The way of a picture:
 *
 *     bytes --sp_image_decode--> image --sp_frame_from_image--> frame   (any thread)
 *     frame --sp_engine_run--> maps                                     (one call at a time per engine)
 *     maps + frame --sp_features_extract--> features                    (any thread)
 *
 * sp_detect() does all of it in one call:
 *
 *     sp_error err;
 *     sp_model *model = NULL;
 *     sp_engine *engine = NULL;
 *     sp_features found = {0};
 *     if (sp_model_open("superpoint.safetensors", NULL, &model, &err) != SP_OK ||
 *         sp_engine_create(model, NULL, &engine, &err) != SP_OK ||
 *         sp_detect(engine, jpeg, jpeg_size, NULL, &found, &err) != SP_OK)
 *         fprintf(stderr, "%s\n", err.text);
 *     for (size_t i = 0; i < found.count; i++)
 *         printf("%g %g %g\n", found.keypoints[2 * i], found.keypoints[2 * i + 1], found.scores[i]);
 *     sp_features_free(&found);
 *     sp_engine_free(engine);
 *     sp_model_free(model);
 *
 * Threads. Objects may be used by one thread at a time; different objects by different threads at
 * the same time. A model is read-only once opened, and may be shared. There is no global state.
 *
 * Errors. Every call that can fail returns an sp_status and, when `err` is not NULL, fills in a
 * sentence that says what was wrong and where. Output arguments are left empty on failure, and may
 * be freed. The library never prints, never exits, and never keeps a pointer to the caller's bytes
 * after the call, unless it says so.
 *
 * Determinism. The same picture with the same parameters gives the same bytes, whatever the number
 * of threads, the batch and the pictures before it, on one engine, level and precision. Different
 * engines, levels and precisions differ in the last bits, and so may the set of keypoints.
 *
 * Not promised: that two versions of the library give the same bytes in the reduced precisions; the
 * values of scores relative to another set of weights; layout of any opaque type.
 */
#ifndef SUPERPOINT_H
#define SUPERPOINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(SP_BUILD_SHARED) && defined(__GNUC__)
#define SP_API __attribute__((visibility("default")))
#else
#define SP_API
#endif

#define SP_VERSION_MAJOR 0
#define SP_VERSION_MINOR 1
#define SP_VERSION_PATCH 0
#define SP_VERSION_STRING "0.1.0"

/* Version of the library that is linked: 0x00MMmmpp, and as text. */
SP_API uint32_t sp_version_number(void);
SP_API const char *sp_version(void);

/* Length of one descriptor, and pixels a side of one cell of the coarse map. */
#define SP_DESCRIPTOR_DIM 256
#define SP_CELL 8

/* ------------------------------------------------------------------ errors ------------------- */

/*
 * The numbers are frozen: they never change their meaning, and new ones are added at the end.
 */
typedef enum sp_status {
    SP_OK = 0,
    SP_ERR_ARGUMENT = 1,        /* a parameter is out of its range or contradicts another */
    SP_ERR_MEMORY = 2,          /* an allocation failed */
    SP_ERR_IO = 3,              /* a file cannot be opened, read or written */
    SP_ERR_IMAGE_FORMAT = 4,    /* not a picture, or of a kind that is not read here */
    SP_ERR_IMAGE_DATA = 5,      /* a picture that is broken or cut short */
    SP_ERR_IMAGE_TOO_LARGE = 6, /* a picture of more pixels than allowed */
    SP_ERR_WEIGHTS_DATA = 7,    /* a weights file that is broken or cut short */
    SP_ERR_WEIGHTS_NETWORK = 8, /* weights of another network */
    SP_ERR_NOT_FOUND = 9,       /* no such file, weights or engine */
    SP_ERR_UNAVAILABLE = 10,    /* this machine lacks what the engine needs */
    SP_ERR_ENGINE = 11,         /* the engine failed while running */
    SP_ERR_ENGINE_HUNG = 12,    /* the device does not answer */
    SP_ERR_LIMIT = 13,          /* the work is larger than a named limit */
    SP_ERR_INTERNAL = 14        /* a defect of this library */
} sp_status;

/* What went wrong, for people. `text` is always terminated, and empty when status is SP_OK. */
typedef struct sp_error {
    sp_status status;
    char text[508];
} sp_error;

/* Short constant text of a status, "ok" for SP_OK; never NULL. */
SP_API const char *sp_status_text(sp_status status);

/* The HTTP status and the process exit code that stand for a status: the one mapping that all
 * programs of this project use. */
SP_API int sp_status_http(sp_status status);
SP_API int sp_status_exit(sp_status status);

/* ------------------------------------------------------------------ parameters --------------- */

typedef enum sp_channel {
    SP_CHANNEL_RED = 0, /* channel 0 of RGB, as the published package and transformers do */
    SP_CHANNEL_LUMA = 1 /* (19595 R + 38470 G + 7471 B + 0x8000) >> 16, Pillow's mode L */
} sp_channel;

typedef enum sp_resize_mode {
    SP_RESIZE_FIXED = 0,  /* to width x height, aspect not kept (default 640 x 480) */
    SP_RESIZE_NATIVE = 1, /* as it is; padded right and below to multiples of 8 */
    SP_RESIZE_MAX = 2     /* longer side becomes `width` pixels, aspect kept; then padded as native */
} sp_resize_mode;

typedef enum sp_exif {
    SP_EXIF_IGNORE = 0, /* pixels as stored */
    SP_EXIF_APPLY = 1   /* turned as the EXIF orientation tag says; coordinates are in the turned frame */
} sp_exif;

typedef enum sp_nms {
    SP_NMS_SINGLE = 0, /* keep a pixel that equals the maximum of its (2r+1)^2 window; plateaus stay */
    SP_NMS_HF = 1      /* the rule of transformers: the same, then two rounds that recover points */
} sp_nms;

/* Where the origin of the reported coordinates lies. p is the pixel in the network's frame, s the
 * ratio original / network along that axis. */
typedef enum sp_coordinates {
    SP_COORDINATES_CORNER = 0, /* p * s, as the published package */
    SP_COORDINATES_CENTRE = 1, /* (p + 0.5) * s - 0.5: pixel centres are integers (OpenCV, hloc) */
    SP_COORDINATES_COLMAP = 2  /* (p + 0.5) * s: the first pixel's centre is (0.5, 0.5) */
} sp_coordinates;

typedef enum sp_dtype {
    SP_DTYPE_FLOAT16 = 0, /* IEEE binary16, round to nearest even */
    SP_DTYPE_FLOAT32 = 1,
    SP_DTYPE_UINT8 = 2 /* 128 + round(256 d), clamped to 0...255; see docs/architecture.md for the loss */
} sp_dtype;

/* A rectangle in pixels of the original picture; width 0 means the whole picture. */
typedef struct sp_rect {
    int32_t x, y, width, height;
} sp_rect;

#define SP_MAX_NMS_RADIUS 64
#define SP_MAX_BORDER 64
/* Largest side of a network frame, and most pixels it may have. */
#define SP_MAX_FRAME_SIDE 16384
#define SP_MAX_FRAME_PIXELS (64u << 20)
/* Most pixels that a picture may decode to unless sp_params.max_pixels says otherwise. */
#define SP_DEFAULT_MAX_PIXELS (64u << 20)
/* Longest side of a picture, of any kind: that of JPEG and GIF. */
#define SP_MAX_IMAGE_SIDE 65535
/* Most scans of a JPEG. Encoders write about ten; each further one costs a pass over the picture for a few bytes. */
#define SP_MAX_JPEG_SCANS 100

/*
 * Everything that a user may ask for. Fill it with sp_params_default() and change what differs;
 * struct_size lets later versions add fields.
 */
typedef struct sp_params {
    size_t struct_size;
    int32_t max_keypoints;      /* 1024; the best so many; -1: all above the threshold; 0: none */
    float keypoint_threshold;   /* 0.005; keep score > threshold. 0...1 is useful, any finite is taken */
    int32_t nms_radius;         /* 4; 0...SP_MAX_NMS_RADIUS, 0: no suppression */
    sp_nms nms;                 /* SP_NMS_SINGLE */
    int32_t border;             /* 4; points within so many pixels of a side are dropped */
    sp_channel channel;         /* SP_CHANNEL_RED */
    sp_resize_mode resize;      /* SP_RESIZE_FIXED */
    uint32_t width, height;     /* 640, 480; for SP_RESIZE_FIXED multiples of 8 */
    sp_exif exif;               /* SP_EXIF_IGNORE */
    sp_coordinates coordinates; /* SP_COORDINATES_CORNER */
    bool descriptors;           /* true; false leaves them out */
    sp_dtype descriptor_dtype;  /* SP_DTYPE_FLOAT16 */
    sp_rect roi;                /* empty: everywhere; else points only inside, applied before suppression */
    uint64_t max_pixels;        /* SP_DEFAULT_MAX_PIXELS; larger pictures are refused before decoding */
    bool subpixel;              /* false; true: points lie between pixels, where the scores around them peak */
} sp_params;

SP_API void sp_params_default(sp_params *params);

/* Check every field and every combination; `params` NULL means the defaults and is valid. */
SP_API sp_status sp_params_check(const sp_params *params, sp_error *err);

/* ------------------------------------------------------------------ images and frames -------- */

/* An 8-bit picture in memory: rows of `stride` bytes, pixels of 1 (grey) or 3 (RGB) bytes. */
typedef struct sp_image {
    uint32_t width, height;
    uint32_t channels;
    size_t stride;
    uint8_t *pixels;
} sp_image;

/* What a picture file says of itself. */
typedef struct sp_image_info {
    char format[8];         /* "jpeg", "png", "ppm", "bmp", "webp", "gif" */
    uint32_t width, height; /* as stored, before any orientation */
    int orientation;        /* EXIF tag 1...8; 1 when absent */
    bool multiple;          /* more pictures follow the first, which alone is read */
} sp_image_info;

/* Read the header only. Kinds are told by their first bytes, never by a name. */
SP_API sp_status sp_image_probe(const void *bytes, size_t size, sp_image_info *info, sp_error *err);

/*
 * Decode a JPEG, PNG, PPM/PGM, BMP, WebP or GIF (first frame) to RGB, byte for byte as Pillow's
 * Image.open(...).convert("RGB"); 16-bit PNG by its high byte; alpha dropped; profiles ignored.
 * `params` gives exif and max_pixels (NULL: defaults). The caller frees `image`.
 */
SP_API sp_status sp_image_decode(const void *bytes, size_t size, const sp_params *params, sp_image *image,
                                 sp_image_info *info, sp_error *err);
SP_API void sp_image_free(sp_image *image);

/*
 * Resample to width x height, byte for byte as Pillow's Image.resize((w, h), BILINEAR): a triangle
 * filter widened by the scale when shrinking, two passes with 8-bit results between them, in the
 * order that Pillow takes from 13.0 on.
 * `out` must be empty; the caller frees it.
 */
SP_API sp_status sp_image_resize(const sp_image *image, uint32_t width, uint32_t height, sp_image *out, sp_error *err);

/*
 * What the network sees: one 8-bit plane whose sides are multiples of 8, and where it came from.
 * Columns from content_width and rows from content_height on are padding (zeros): no point is
 * reported there.
 */
typedef struct sp_frame {
    uint32_t width, height;                   /* multiples of SP_CELL */
    uint32_t content_width, content_height;   /* the picture's part of the frame */
    uint32_t original_width, original_height; /* the picture, turned if EXIF was applied */
    double scale_x, scale_y;                  /* original / content */
    size_t stride;                            /* bytes from row to row */
    uint8_t *pixels;                          /* height rows */
    uint8_t *mask;                            /* NULL, or width * height bytes, 0 = no point here */
} sp_frame;

/* Channel, size and padding as `params` say (NULL: defaults). The caller frees `frame`. */
SP_API sp_status sp_frame_from_image(const sp_image *image, const sp_params *params, sp_frame *frame, sp_error *err);

/* sp_image_decode and sp_frame_from_image in one, decoding no more than the frame needs. `info` may be NULL. */
SP_API sp_status sp_frame_decode(const void *bytes, size_t size, const sp_params *params, sp_frame *frame,
                                 sp_image_info *info, sp_error *err);

/* Forbid points where `mask` (any size, grey or the channel 0 of RGB; sampled by nearest pixel) is 0. */
SP_API sp_status sp_frame_set_mask(sp_frame *frame, const sp_image *mask, sp_error *err);
SP_API void sp_frame_free(sp_frame *frame);

/* ------------------------------------------------------------------ weights ------------------ */

typedef struct sp_model sp_model;

typedef struct sp_model_info {
    const char *path;     /* file that was read */
    const char *id;       /* Hub id "org/name", or the file's name without its suffix */
    const char *revision; /* Hub commit, or "" */
    const char *sha256;   /* of the whole file, 64 hexadecimal digits */
    const char *licence;  /* from the file's metadata or known for the id, else "unknown" */
    uint64_t parameters;  /* 1,300,865 */
} sp_model_info;

typedef struct sp_model_options {
    size_t struct_size;
    const char *hub_cache; /* folder of the Hugging Face hub cache; NULL: HF_HUB_CACHE, HF_HOME or the default */
} sp_model_options;

/*
 * Open weights. `weights` is a safetensors file, or "owner/name[@revision]" that lies in the local
 * Hugging Face cache (nothing is fetched). Tensors are those of the transformers checkpoint, in
 * float32, float16 or bfloat16; every name, shape, offset and size is checked. `options` may be
 * NULL. The caller frees the model after the last engine made from it.
 */
SP_API sp_status sp_model_open(const char *weights, const sp_model_options *options, sp_model **model, sp_error *err);

/* The same from bytes in memory, which are copied. `name` is for messages and sp_model_info.id. */
SP_API sp_status sp_model_from_memory(const void *bytes, size_t size, const char *name, sp_model **model,
                                      sp_error *err);
SP_API void sp_model_free(sp_model *model);

/* Lives as long as the model. */
SP_API const sp_model_info *sp_model_get_info(const sp_model *model);

/* ------------------------------------------------------------------ engines ------------------ */

typedef enum sp_precision {
    SP_PRECISION_AUTO = 0, /* the fastest that holds the accuracy gates on this machine */
    SP_PRECISION_FP32 = 1,
    SP_PRECISION_BF16 = 2,
    SP_PRECISION_INT8 = 3, /* mixed: layers whose error matters stay in a wider type */
    SP_PRECISION_FP16 = 4
} sp_precision;

typedef struct sp_engine_options {
    size_t struct_size;
    const char *engine;     /* "auto", "cpu", "blackhole", "reference"; NULL: "auto" */
    sp_precision precision; /* SP_PRECISION_AUTO */
    const char *level;      /* CPU level to force: "c", "avx2", "avx512", "avx512vnni", "amx", "neon"; NULL: the
                               environment's SUPERPOINT_CPU, else the best */
    uint32_t threads;       /* 0: one for each CPU that this process may use */
    uint32_t width, height; /* frame to prepare for; others work too; 0: 640 x 480 */
    int32_t nms_radius;     /* radius to prepare for engines that suppress on the device: 4 */
    bool legacy;            /* run stage by stage with suppression on the host (TT_FUSED=0) */
} sp_engine_options;

SP_API void sp_engine_options_default(sp_engine_options *options);

typedef struct sp_engine sp_engine;

/* What an engine is; constant over its life. Strings live as long as the engine. */
typedef struct sp_engine_info {
    const char *engine;     /* "cpu", "blackhole", "reference" */
    const char *device;     /* processor or card, as it names itself */
    const char *level;      /* instruction set level, or firmware version */
    sp_precision precision; /* what AUTO became */
    uint32_t threads;
    bool traced;     /* the whole dense graph runs as one prepared program */
    bool device_nms; /* the engine suppresses, for the radius below */
    int32_t nms_radius;
    const char *fused_stages; /* stages that run on the device, separated by commas */
} sp_engine_info;

SP_API const char *sp_precision_text(sp_precision precision);

/*
 * Make an engine from weights. This may allocate, pack weights and start threads or a device; the
 * first run is then as fast as the next. `options` may be NULL. The model must outlive the engine.
 */
SP_API sp_status sp_engine_create(const sp_model *model, const sp_engine_options *options, sp_engine **engine,
                                  sp_error *err);
SP_API void sp_engine_free(sp_engine *engine);
SP_API const sp_engine_info *sp_engine_get_info(const sp_engine *engine);

/* Engines of this build, in the order in which "auto" asks them; the list ends with NULL. */
SP_API const char *const *sp_engine_names(void);

/* Whether an engine can run on this machine: SP_OK, or SP_ERR_UNAVAILABLE with the reason. */
SP_API sp_status sp_engine_probe(const char *engine, sp_error *err);

/* CPU levels for this architecture from plain to best, ended by NULL, and whether this machine has one. */
SP_API const char *const *sp_cpu_levels(void);
SP_API bool sp_cpu_level_available(const char *level);

/*
 * Multiply-adds a second that `threads` cores do at a level and precision when they do nothing else:
 * the bound that a forward pass at that level can be held against. Measured anew at each call, in
 * about 3 ms; take the best of several. SP_ERR_UNAVAILABLE where there are no such kernels.
 */
SP_API sp_status sp_cpu_measure_peak(const char *level, sp_precision precision, uint32_t threads, double *rate,
                                     sp_error *err);

/* Multiply-adds of one forward pass by the definition of the network: 26.05e9 for 640 x 480. */
SP_API uint64_t sp_forward_multiplications(uint32_t width, uint32_t height);

/* CPUs that this process may run on, by its affinity mask: what `threads` 0 stands for. */
SP_API uint32_t sp_cpu_count(void);

/* The processor's name for itself, at most `size` bytes with its end. */
SP_API void sp_cpu_describe(char *name, size_t size);

/*
 * The network's two dense results for one frame of width x height pixels, row by row.
 * Made by sp_maps_alloc, written by sp_engine_run, which grows or shrinks them as it needs.
 */
typedef struct sp_maps {
    uint32_t width, height;
    float *scores;      /* [height][width], softmax with the dustbin dropped, cells unfolded */
    float *suppressed;  /* [height][width] or NULL: scores after the engine's own suppression, 0 where dropped */
    int32_t nms_radius; /* radius of `suppressed` */
    float *descriptors; /* [height/8][width/8][256], each of length 1 */
    double forward_ms;  /* time that the engine took */
    size_t capacity;    /* bytes held; private */
    void *memory;       /* private */
} sp_maps;

/* Prepare for frames up to width x height (multiples of 8). Free with sp_maps_free. */
SP_API sp_status sp_maps_alloc(uint32_t width, uint32_t height, sp_maps *maps, sp_error *err);
SP_API void sp_maps_free(sp_maps *maps);

/*
 * Run the network over n frames, maps[i] for frames[i]. Frames may differ in size. One call at a
 * time per engine.
 */
SP_API sp_status sp_engine_run(sp_engine *engine, const sp_frame *const *frames, size_t n, sp_maps *maps,
                               sp_error *err);

/* ------------------------------------------------------------------ estimates and checks ----- */

/* Units of an accelerator whose work is counted. */
typedef enum sp_unit {
    SP_UNIT_MATRIX = 0,
    SP_UNIT_VECTOR = 1,
    SP_UNIT_UNPACK = 2, /* memory to matrix unit */
    SP_UNIT_PACK = 3,   /* and back */
    SP_UNIT_SCALAR = 4, /* control processor */
    SP_UNIT_TAIL = 5,   /* processor of softmax and suppression */
    SP_UNIT_NETWORK = 6,
    SP_UNIT_MEMORY = 7,
    SP_UNITS = 8
} sp_unit;

SP_API const char *sp_unit_text(sp_unit unit);

/* What one stage of a frame costs by counting instructions and bytes: a prediction, not a measurement. */
typedef struct sp_estimate {
    const char *stage;     /* a layer's name, or what else is done; constant text */
    sp_unit limit;         /* unit that the stage waits for longest */
    double cycles;         /* that the stage adds to the frame */
    double unit[SP_UNITS]; /* cycles of each unit by itself, on the busiest part of the device */
} sp_estimate;

#define SP_MAX_ESTIMATES 24

typedef struct sp_frame_estimate {
    double clock_mhz;
    double frame_ms; /* sum of the stages' cycles at that clock */
    char layout[64]; /* how the frame is spread over the device */
    size_t count;
    sp_estimate stage[SP_MAX_ESTIMATES];
} sp_frame_estimate;

/*
 * Predict a frame of width x height on the device of the engine named in the options, which need not be
 * at hand. SP_ERR_UNAVAILABLE for engines that do not count (all but "blackhole").
 */
SP_API sp_status sp_engine_estimate(const sp_engine_options *options, sp_frame_estimate *estimate, sp_error *err);

/* One step of a device's bring-up, as it is reported. */
typedef struct sp_check_step {
    const char *name;
    sp_status status; /* SP_OK: passed */
    double ms;
    const char *text; /* what was seen, or what went wrong; valid during the call only */
} sp_check_step;

typedef void sp_check_report(void *context, const sp_check_step *step);

/*
 * Bring up the device of an engine from the bottom: each step needs more of it than the one before, and the first that
 * fails ends the check with its status. `reset` resets the device first, which takes seconds. SP_ERR_UNAVAILABLE for
 * engines without a device of their own.
 */
SP_API sp_status sp_engine_check(const sp_model *model, const sp_engine_options *options, bool reset,
                                 sp_check_report *report, void *context, sp_error *err);

/* ------------------------------------------------------------------ features ----------------- */

/*
 * Keypoints by descending score, ties by y, then x. All pointers are NULL when count is 0. Owned by
 * the features; freed by sp_features_free.
 */
typedef struct sp_features {
    size_t count;
    float *keypoints;  /* [count][2]: x, y in the original picture, in the coordinates asked for */
    float *scores;     /* [count] */
    void *descriptors; /* [count][256] of descriptor_dtype, each of length 1; NULL when not asked for */
    sp_dtype descriptor_dtype;
    uint16_t *pixels;  /* [count][2]: x, y in the network's frame: the pixel of the peak, also with subpixel */
    bool device_nms;   /* the engine's own suppression was used */
    double extract_ms; /* time that suppression, selection and sampling took */
    void *memory;      /* private */
} sp_features;

/*
 * Suppress, select and sample: mask and region, non-maximum suppression, threshold, border,
 * padding, order, cut, refinement, descriptors (docs/architecture.md states each step). `params` NULL: defaults.
 */
SP_API sp_status sp_features_extract(const sp_maps *maps, const sp_frame *frame, const sp_params *params,
                                     sp_features *features, sp_error *err);
SP_API void sp_features_free(sp_features *features);

/* Bytes of one element of a dtype. */
SP_API size_t sp_dtype_size(sp_dtype dtype);

/* Decode, run and extract. Allocates its maps anew at each call. */
SP_API sp_status sp_detect(sp_engine *engine, const void *bytes, size_t size, const sp_params *params,
                           sp_features *features, sp_error *err);

/* ------------------------------------------------------------------ matching ----------------- */

/* `count` descriptors of 256 elements one after the other, as in sp_features. They are of length 1,
 * but for uint8, which is scaled back to it. The caller's; only read. */
typedef struct sp_descriptors {
    const void *data;
    size_t count;
    sp_dtype dtype;
} sp_descriptors;

/* Most descriptors in one set. */
#define SP_MAX_MATCH_DESCRIPTORS (1 << 22)

typedef struct sp_match_options {
    size_t struct_size;
    bool mutual;        /* true: each has to be the other's nearest; false: the nearest in b for each in a */
    float max_ratio;    /* 1 (off); keep when distance <= max_ratio * distance to the second nearest, in
                           both directions when mutual. Lowe's test; above 0 */
    float max_distance; /* 2 (off); keep when the distance of the unit vectors, 0...2, is at most this */
    const char *level;  /* CPU level to force, as in sp_engine_options */
    uint32_t threads;   /* 0: one for each CPU that this process may use */
} sp_match_options;

SP_API void sp_match_options_default(sp_match_options *options);

/* Pairs in rising order of the index in a. Owned by the matches; freed by sp_matches_free. */
typedef struct sp_matches {
    size_t count;
    uint32_t *pairs;     /* [count][2]: index in a, index in b */
    float *similarities; /* [count]: dot product s; the distance is sqrt(2 - 2 s) */
    void *memory;        /* private */
} sp_matches;

/* Threads and working memory for matching. One call at a time per matcher. */
typedef struct sp_matcher sp_matcher;

/* `options` may be NULL. The caller frees the matcher. */
SP_API sp_status sp_matcher_create(const sp_match_options *options, sp_matcher **matcher, sp_error *err);
SP_API void sp_matcher_free(sp_matcher *matcher);

/*
 * Nearest neighbours by exhaustive search in float32: each of a against each of b. Of equally near
 * ones the first is taken. The two sets may differ in size and dtype, and either may be empty; they
 * have to come from the same weights, which is for the caller to see to.
 */
SP_API sp_status sp_match(sp_matcher *matcher, const sp_descriptors *a, const sp_descriptors *b, sp_matches *matches,
                          sp_error *err);
SP_API void sp_matches_free(sp_matches *matches);

#ifdef __cplusplus
}
#endif
#endif
