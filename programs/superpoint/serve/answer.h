/* From results to the bytes of an answer. */
#ifndef SP_SERVE_ANSWER_H
#define SP_SERVE_ANSWER_H

#include "job.h"

/* {"detail": text}; for KServe also as "error", which its clients look for. */
void answer_put_error(buffer *out, bool kserve, const char *text);

/* The same as the job's answer. */
void answer_error(job *j, int status, const char *text);

/* The features of all pictures, in the form that was asked for. */
sp_status answer_features(job *j, sp_error *err);

/* The KServe form, in kserve_answer.c. */
sp_status answer_kserve(job *j, sp_error *err);

#endif
