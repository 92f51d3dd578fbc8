/*
 * The NEON kernels against the reference, as a program of its own: it is built by a cross compiler and run
 * under an emulator, where none of the libraries are that the rest of the project needs. Weights are
 * random, of a size that keeps activations modest.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/pool.h"
#include "engine/cpu/plan.h"
#include "reference.h"

static uint64_t state = 20180415;

static float uniform(void) {
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    return (float)(state * 0x2545f4914f6cdd1dull >> 40) / (float)(1 << 24) * 2 - 1;
}

static void random_weights(sp_weights *weights) {
    for (int i = 0; i < SP_LAYERS; i++) {
        const sp_layer *layer = &sp_network[i];
        const size_t count = sp_layer_kernel_size(layer);
        float *kernel = malloc(count * sizeof *kernel), *bias = malloc(layer->out * sizeof *bias);
        if (!kernel || !bias)
            exit(1);
        const float scale = sqrtf(6.0f / (float)(count / layer->out)); /* He et al., arXiv:1502.01852 */
        for (size_t k = 0; k < count; k++)
            kernel[k] = uniform() * scale;
        for (uint32_t o = 0; o < layer->out; o++)
            bias[o] = uniform() * 0.1f;
        weights->kernel[i] = kernel;
        weights->bias[i] = bias;
    }
}

static float largest_difference(const float *a, const float *b, size_t n) {
    float largest = 0;
    for (size_t i = 0; i < n; i++)
        largest = fabsf(a[i] - b[i]) <= largest ? largest : fabsf(a[i] - b[i]);
    return largest;
}

/* True when the frame agrees with the reference. */
static bool check_frame(const sp_weights *weights, const sp_kernels *kernels, uint32_t width, uint32_t height) {
    const size_t pixels = (size_t)width * height;
    uint8_t *plane = malloc(pixels);
    float *numbers = malloc(2 * pixels * 5 * sizeof *numbers);
    if (!plane || !numbers)
        exit(1);
    for (size_t i = 0; i < pixels; i++)
        plane[i] = (uint8_t)(127.5f + 127.5f * uniform());
    sp_maps maps = {.width = width, .height = height, .scores = numbers, .descriptors = numbers + pixels};
    float *scores = numbers + 5 * pixels, *descriptors = scores + pixels;
    const sp_frame frame = {.width = width, .height = height, .stride = width, .pixels = plane};
    sp_pool *pool = NULL;
    sp_plan *plan = NULL;
    const bool ran = sp_pool_create(2, &pool, NULL) == SP_OK &&
                     sp_plan_create(weights, kernels, pool, 2, &plan, NULL) == SP_OK &&
                     sp_plan_run(plan, &frame, &maps, NULL) == SP_OK &&
                     sp_reference_forward(weights, plane, width, width, height, scores, descriptors);
    const float ds = largest_difference(maps.scores, scores, pixels);
    const float dd = largest_difference(maps.descriptors, descriptors, 4 * pixels);
    const bool ok = ran && ds < 1e-5f && dd < 1e-5f;
    printf("%s fp32 %ux%u: scores differ by %.2g, descriptors by %.2g: %s\n", sp_cpu_level_text(kernels->level), width,
           height, (double)ds, (double)dd, ok ? "passed" : "FAILED");
    sp_plan_free(plan);
    sp_pool_free(pool);
    free(numbers);
    free(plane);
    return ok;
}

int main(void) {
    sp_weights weights;
    random_weights(&weights);
    const sp_kernels *kernels = sp_kernels_find(sp_cpu_best(), SP_PRECISION_FP32);
    if (kernels->level != SP_CPU_NEON) {
        printf("FAILED: the best level here is %s\n", sp_cpu_level_text(kernels->level));
        return 1;
    }
    bool ok = check_frame(&weights, kernels, 8, 8);
    ok = check_frame(&weights, kernels, 72, 40) && ok;
    return ok ? 0 : 1;
}
