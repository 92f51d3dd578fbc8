/* Writing JSON into a buffer. */
#ifndef SP_COMMON_JSONOUT_H
#define SP_COMMON_JSONOUT_H

#include "common/buffer.h"
#include "superpoint.h"

/* A quoted string; what is not UTF-8 becomes U+FFFD. */
void json_put_string(buffer *out, const char *text);
void json_put_string_n(buffer *out, const char *text, size_t size);

/* The fewest digits that read back as the same float32, always with a point or an exponent: 610.0,
 * 0.609375, 1e-09. What is not finite becomes null. */
void json_put_float(buffer *out, float value);

/* The same for double precision. */
void json_put_double(buffer *out, double value);

/* With three digits behind the point, for times. */
void json_put_ms(buffer *out, double ms);

/* `"num_keypoints": …, "keypoints": […], "scores": […]`, without braces around. */
void json_put_points(buffer *out, const sp_features *features);

#endif
