#include "draw.h"

#include <errno.h>
#include <math.h>
#include <spng.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/fail.h"
#include "common/output.h"

typedef struct colour {
    double r, g, b;
} colour;

/* t = 0 weakest ... 1 strongest. Three stops that stay apart for the colour-blind, being of rising lightness. */
static colour colour_of(double t) {
    static const colour stops[] = {{124, 58, 237}, {239, 68, 68}, {255, 224, 64}};
    const double place = t * 2;
    const int i = place < 1 ? 0 : 1;
    const double w = place - i;
    return (colour){stops[i].r + w * (stops[i + 1].r - stops[i].r), stops[i].g + w * (stops[i + 1].g - stops[i].g),
                    stops[i].b + w * (stops[i + 1].b - stops[i].b)};
}

static uint8_t mix(uint8_t under, double over, double opacity) {
    return (uint8_t)lrint(under + (over - under) * opacity);
}

/* How much of a pixel at `distance` from the centre a ring covers: 1 on the line, falling to 0 within a pixel. */
static double coverage(double distance, double radius, double width) {
    return fmin(1, fmax(0, width / 2 + 0.5 - fabs(distance - radius)));
}

static void draw_ring(sp_image *image, double cx, double cy, double radius, colour ink) {
    const double line = fmax(1.2, radius * 0.45), halo = line + 1.6, reach = radius + halo;
    const long x0 = lrint(fmax(0, floor(cx - reach))), x1 = lrint(fmin(image->width - 1.0, ceil(cx + reach)));
    const long y0 = lrint(fmax(0, floor(cy - reach))), y1 = lrint(fmin(image->height - 1.0, ceil(cy + reach)));
    for (long y = y0; y <= y1; y++)
        for (long x = x0; x <= x1; x++) {
            const double distance = hypot((double)x - cx, (double)y - cy);
            const double dark = 0.55 * coverage(distance, radius, halo), bright = coverage(distance, radius, line);
            uint8_t *p = image->pixels + (size_t)y * image->stride + 3 * (size_t)x;
            const double rgb[3] = {ink.r, ink.g, ink.b};
            for (int c = 0; c < 3; c++)
                p[c] = mix(mix(p[c], 0, dark), rgb[c], bright);
        }
}

void draw_points(sp_image *image, const float *points, size_t count, double radius) {
    for (size_t i = count; i-- > 0;) /* the strongest last, on top */
        draw_ring(image, points[2 * i], points[2 * i + 1], radius,
                  colour_of(count > 1 ? 1 - (double)i / (double)(count - 1) : 1));
}

/* The PNG as bytes; the caller frees them. */
static sp_status encode_png(const sp_image *image, void **bytes, size_t *size, sp_error *err) {
    spng_ctx *png = spng_ctx_new(SPNG_CTX_ENCODER);
    uint8_t *packed = malloc((size_t)image->width * image->height * 3);
    int code = png && packed ? 0 : SPNG_EMEM;
    for (uint32_t y = 0; !code && y < image->height; y++)
        memcpy(packed + (size_t)y * image->width * 3, image->pixels + y * image->stride, (size_t)image->width * 3);
    struct spng_ihdr header = {
        .width = image->width, .height = image->height, .bit_depth = 8, .color_type = SPNG_COLOR_TYPE_TRUECOLOR};
    if (!code)
        code = spng_set_option(png, SPNG_ENCODE_TO_BUFFER, 1);
    if (!code)
        code = spng_set_ihdr(png, &header);
    if (!code)
        code = spng_encode_image(png, packed, (size_t)image->width * image->height * 3, SPNG_FMT_PNG,
                                 SPNG_ENCODE_FINALIZE);
    if (!code)
        *bytes = spng_get_png_buffer(png, size, &code);
    free(packed);
    spng_ctx_free(png);
    return code ? fail(err, SP_ERR_MEMORY, "PNG could not be encoded: %s", spng_strerror(code)) : SP_OK;
}

sp_status draw_write_png(const sp_image *image, const char *path, sp_error *err) {
    void *bytes = NULL;
    size_t size = 0;
    sp_status status = encode_png(image, &bytes, &size, err);
    if (status == SP_OK)
        status = sp_output_write(path, bytes, size, err);
    free(bytes);
    return status;
}
