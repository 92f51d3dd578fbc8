/* From the bytes of a request to frames. */
#ifndef SP_SERVE_INPUT_H
#define SP_SERVE_INPUT_H

#include "common/json.h"
#include "config.h"
#include "job.h"

/*
 * One parameter from the query string: `value` is terminated. An unknown name is noted in the job's
 * warnings and taken; a wrong value fails.
 */
sp_status input_parameter(job *j, const char *name, const char *value, sp_error *err);

/* Parse the body by its kind: parameters into the job, pictures as spans of the body, which is changed. */
sp_status input_read(job *j, const config_limits *limits, sp_error *err);

/* Decode the pictures into frames. */
sp_status input_decode(job *j, const config_limits *limits, sp_error *err);

/* The parts of input_read, each the target of a fuzzer. */
sp_status input_json(job *j, const config_limits *limits, sp_error *err);
sp_status input_multipart(job *j, const config_limits *limits, sp_error *err);
sp_status input_kserve(job *j, const config_limits *limits, sp_error *err);

/* Read the first `size` bytes of the body as a JSON object and let `take` have it. */
typedef sp_status input_taker(job *j, const json_value *object, const config_limits *limits, sp_error *err);
sp_status input_object(job *j, size_t size, input_taker *take, const config_limits *limits, sp_error *err);

/* A base64 string, decoded in place: a "data:…;base64," prefix is skipped. `what` is for messages. */
sp_status input_base64(const char *what, uint8_t *text, size_t size, uint8_t **bytes, size_t *decoded, sp_error *err);

#endif
