/*
 * check-kernels [--bench] [--seed N] [--test NAME] [--weights FILE]
 *
 * Every kernel at every instruction set level that this machine can run, against the reference:
 * random and extreme inputs, odd tails, bytes around the outputs that must not change.
 */
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"

void check_that(check *c, bool ok, const char *format, ...) {
    if (ok) {
        c->passed++;
        return;
    }
    c->failed++;
    va_list args;
    va_start(args, format);
    fputs("FAILED: ", stdout);
    vprintf(format, args);
    putchar('\n');
    va_end(args);
}

uint32_t check_random(check *c) {
    c->seed ^= c->seed >> 12;
    c->seed ^= c->seed << 25;
    c->seed ^= c->seed >> 27;
    return (uint32_t)((c->seed * 0x2545f4914f6cdd1dull) >> 32);
}

double check_largest_difference(const float *a, const float *b, size_t n) {
    double largest = 0;
    for (size_t i = 0; i < n; i++) {
        double d = fabs((double)a[i] - b[i]);
        largest = d <= largest ? largest : d; /* not a number counts as larger */
    }
    return largest;
}

static void print_levels(void) {
    printf("levels that this machine can run:");
    for (int level = SP_CPU_C; level <= SP_CPU_NEON; level++)
        if (sp_cpu_has((sp_cpu_level)level))
            printf(" %s", sp_cpu_level_text((sp_cpu_level)level));
    printf("; not here:");
    for (int level = SP_CPU_C; level <= SP_CPU_NEON; level++)
        if (!sp_cpu_has((sp_cpu_level)level))
            printf(" %s", sp_cpu_level_text((sp_cpu_level)level));
    putchar('\n');
}

int main(int argc, char **argv) {
    check c = {.seed = 20180415};
    const char *weights = "weights/superpoint.safetensors";
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--bench") == 0)
            c.bench = true;
        else if (strcmp(argv[i], "--seed") == 0 && i + 1 < argc)
            c.seed = strtoull(argv[++i], NULL, 0);
        else if (strcmp(argv[i], "--test") == 0 && i + 1 < argc)
            c.only = argv[++i];
        else if (strcmp(argv[i], "--weights") == 0 && i + 1 < argc)
            weights = argv[++i];
        else {
            fprintf(stderr, "usage: check-kernels [--bench] [--seed N] [--test NAME] [--weights FILE]\n");
            return 2;
        }
    }
    if (c.seed == 0)
        c.seed = 1;
    print_levels();
    printf("seed %" PRIu64 "\n", c.seed);
    sp_error err;
    sp_model *model = NULL;
    if (sp_model_open(weights, NULL, &model, &err) != SP_OK) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    if (c.bench) {
        bench_kernels(&c, model);
    } else {
        check_rows(&c);
        check_layers(&c, model);
        check_int8(&c, model);
        check_engines(&c, model);
    }
    sp_model_free(model);
    printf("%u comparisons passed, %u failed\n", c.passed, c.failed);
    return c.failed ? 1 : 0;
}
