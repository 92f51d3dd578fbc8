/*
 * The safetensors format: 8 bytes little-endian length of a JSON header, the header, the data.
 * https://github.com/huggingface/safetensors (README, "Format").
 *
 * Everything is checked when a file is opened: lengths against the file, types, shapes against byte
 * ranges, and that the ranges follow each other without hole or overlap up to the file's end.
 */
#ifndef SP_MODEL_SAFETENSORS_H
#define SP_MODEL_SAFETENSORS_H

#include <stdbool.h>

#include "superpoint.h"

enum {
    SP_SAFETENSORS_MAX_HEADER = 1 << 20, /* bytes; ours has 24 tensors in about 3 KiB */
    SP_SAFETENSORS_MAX_TENSORS = 1024,
    SP_SAFETENSORS_MAX_RANK = 8
};

typedef enum sp_tensor_type {
    SP_TENSOR_F32,
    SP_TENSOR_F16,
    SP_TENSOR_BF16,
    SP_TENSOR_I8,
    SP_TENSOR_OTHER
} sp_tensor_type;

typedef struct sp_tensor {
    const char *name;
    sp_tensor_type type;
    unsigned rank;
    uint64_t shape[SP_SAFETENSORS_MAX_RANK];
    uint64_t elements;
    const unsigned char *data; /* into the caller's bytes, not aligned */
} sp_tensor;

typedef struct sp_safetensors sp_safetensors;

/* `bytes` must stay until close. `name` is for messages. */
sp_status sp_safetensors_open(const void *bytes, size_t size, const char *name, sp_safetensors **file, sp_error *err);
void sp_safetensors_close(sp_safetensors *file);

size_t sp_safetensors_count(const sp_safetensors *file);
const sp_tensor *sp_safetensors_find(const sp_safetensors *file, const char *name);
const sp_tensor *sp_safetensors_at(const sp_safetensors *file, size_t index);

/* A value of __metadata__, or NULL. */
const char *sp_safetensors_metadata(const sp_safetensors *file, const char *key);

/* Whether it is float32, float16 or bfloat16. */
bool sp_tensor_is_float(const sp_tensor *tensor);

/* All elements as float32 into `out`; only of such a tensor. */
void sp_tensor_to_float(const sp_tensor *tensor, float *out);

#endif
