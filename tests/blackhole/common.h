/* What the tests of the Blackhole engine share. */
#ifndef TEST_BLACKHOLE_COMMON_H
#define TEST_BLACKHOLE_COMMON_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "device.h"
#include "transport.h"

/* The simulator's library, or NULL after saying that the test is skipped. */
const char *simulator_or_skip(const char *test);
enum { SKIPPED = 77 };

/* The chip of that library, or NULL after saying what went wrong. */
bh_transport *open_simulator(const char *library);

/* The project's own weights, packed, opened once for the process. Read from weights/ of the source tree. */
const sp_model *test_model(void);
const bh_weights *test_weights(void);

/* A picture with edges, corners, gradients and noise; the same for the same seed. Free with free(). */
uint8_t *test_picture(uint32_t width, uint32_t height, uint32_t seed);

/* Fail the test with the sentence in `err` unless `status` is SP_OK. */
#define assert_ok(status, err)                                                                                         \
    do {                                                                                                               \
        if ((status) != SP_OK)                                                                                         \
            fail_msg("%s", (err)->text);                                                                               \
    } while (0)

/* Upload, start, finish, collect. */
sp_status run_frame(bh_device *device, const uint8_t *pixels, float *scores, float *suppressed, float *descriptors,
                    sp_error *err);

#endif
