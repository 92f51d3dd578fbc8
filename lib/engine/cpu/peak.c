/* How fast a processor can multiply and add, measured. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/pool.h"
#include "engine/cpu/kernels.h"

enum { SAMPLE_MS = 2, ROUNDS = 500 };

typedef struct measurement {
    const sp_kernels *kernels;
    double *rates; /* of each thread */
} measurement;

/* Ordinary numbers in every precision: bytes of 0x3c...0x3f and random ones make float, bf16 and
 * half-precision numbers of modest size. */
static void fill_numbers(uint8_t *bytes) {
    uint64_t state = 88172645463325252u;
    for (size_t i = 0; i < SP_PEAK_BYTES; i++) {
        state ^= state << 13; /* Marsaglia's xorshift */
        state ^= state >> 7;
        state ^= state << 17;
        bytes[i] = i % 2 ? (uint8_t)(0x3c + (state & 0x83)) : (uint8_t)state;
    }
}

static void measure(void *context, size_t first, size_t last, uint32_t thread) {
    const measurement *m = context;
    _Alignas(SP_LINE) uint8_t numbers[SP_PEAK_BYTES];
    (void)first;
    (void)last;
    fill_numbers(numbers);
    if (m->kernels->enter)
        m->kernels->enter();
    uint64_t done = 0;
    const double start = sp_now_ms();
    double elapsed;
    do
        done += m->kernels->peak(numbers, ROUNDS);
    while ((elapsed = sp_now_ms() - start) < SAMPLE_MS);
    if (m->kernels->leave)
        m->kernels->leave();
    m->rates[thread] = (double)done / elapsed * 1e3;
}

sp_status sp_cpu_measure_peak(const char *level, sp_precision precision, uint32_t threads, double *rate,
                              sp_error *err) {
    *rate = 0;
    sp_cpu_level parsed;
    if (!level || !sp_cpu_level_parse(level, &parsed))
        return sp_fail(err, SP_ERR_ARGUMENT, "level: %s is not known", level ? level : "(none)");
    const sp_kernels *kernels = sp_kernels_find(parsed, precision);
    if (!sp_cpu_has(parsed) || !kernels)
        return sp_fail(err, SP_ERR_UNAVAILABLE, "peak: no %s at level %s here", sp_precision_text(precision), level);
    measurement m = {.kernels = kernels, .rates = calloc(threads ? threads : 1, sizeof *m.rates)};
    if (!m.rates)
        return sp_fail_memory(err, "peak", threads * sizeof *m.rates);
    sp_pool *pool = NULL;
    sp_status status = sp_pool_create(threads, &pool, err);
    if (status == SP_OK)
        sp_pool_run(pool, threads, measure, &m);
    for (uint32_t i = 0; status == SP_OK && i < threads; i++)
        *rate += m.rates[i];
    sp_pool_free(pool);
    free(m.rates);
    return status == SP_OK ? sp_succeed(err) : status;
}
