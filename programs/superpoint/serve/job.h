/* One request for keypoints on its way through the pipeline. */
#ifndef SP_SERVE_JOB_H
#define SP_SERVE_JOB_H

#include <stdatomic.h>

#include "common/buffer.h"
#include "superpoint.h"

typedef enum body_kind {
    BODY_JSON,
    BODY_RAW,       /* the picture itself */
    BODY_MULTIPART, /* multipart/form-data */
    BODY_GUESS,     /* no telling Content-Type: a picture by its first bytes, else JSON */
    BODY_KSERVE     /* tensors of the Open Inference Protocol */
} body_kind;

typedef enum job_outcome {
    JOB_PENDING,
    JOB_ANSWERED, /* status, answer and content_type are there */
    JOB_EXPIRED,  /* its deadline passed; the pipeline may still hold it */
    JOB_GONE,     /* its client has left */
} job_outcome;

typedef struct picture {
    uint8_t *bytes; /* encoded, inside the body */
    size_t size;
    sp_image raw; /* pixels instead of encoded bytes, inside the body */
    sp_image_info info;
    sp_frame frame;
    sp_features features;
    double forward_ms;
} picture;

/* An output tensor that a KServe client asked for. */
enum { KSERVE_OUTPUTS = 4, KSERVE_ID_LETTERS = 128 };

typedef struct kserve_request {
    char id[KSERVE_ID_LETTERS * 4 + 1];
    bool has_id, binary_default;
    bool wanted[KSERVE_OUTPUTS], binary[KSERVE_OUTPUTS];
    size_t header_bytes; /* of the JSON part; 0: all of the body */
    size_t answer_header_bytes;
} kserve_request;

typedef struct job {
    struct job *next, *all_next, *all_previous; /* lists of the pipeline */
    _Atomic int references;
    _Atomic int outcome;
    _Atomic int remaining; /* pictures that have not been through the last stage */
    atomic_bool failed;

    /* what was asked */
    body_kind kind;
    buffer body;
    char boundary[72]; /* of BODY_MULTIPART */
    bool want_npz, batch, mask_given;
    sp_params params;
    sp_image mask;
    picture *pictures;
    size_t count;
    buffer warnings; /* JSON strings, separated by commas */
    kserve_request kserve;
    const void *server; /* whose answers name engine and weights */

    /* when */
    double received_ms, deadline_ms, queued_ms; /* queued_ms: since when it waits for the next stage */
    double queue_ms, preprocess_ms;
    _Atomic uint64_t forward_us, postprocess_us;

    int fd; /* the client's socket, looked at to see whether it has left; open while PENDING */

    /* what came of it */
    int status; /* HTTP's; one that is set before an error wins over that of the error */
    buffer answer;
    const char *content_type;
    void (*done)(void *context); /* called once, from any thread, when outcome leaves JOB_PENDING */
    void *context;
} job;

/* A job with one reference, or NULL. */
job *job_new(void);
void job_release(job *j);

/* Note a sentence for "warnings". */
void job_warn(job *j, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Make the pictures' array; false when memory fails. */
bool job_pictures(job *j, size_t count);

#endif
