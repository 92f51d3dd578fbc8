#include "match/draw_pair.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/fail.h"
#include "draw.h"

enum { GAP = 8, BACKGROUND = 24 };

/* Hues around the circle, so that neighbouring lines can be told apart; from blue to green to yellow
 * by height in the first picture. */
static void colour_of(double t, double rgb[3]) {
    static const double stops[][3] = {{64, 160, 255}, {40, 220, 160}, {255, 214, 64}, {255, 120, 90}};
    const double place = t * 3;
    const int i = place < 1 ? 0 : place < 2 ? 1 : 2;
    const double w = fmin(1, place - i);
    for (int c = 0; c < 3; c++)
        rgb[c] = stops[i][c] + w * (stops[i + 1][c] - stops[i][c]);
}

static void blend(sp_image *canvas, long x, long y, const double rgb[3], double opacity) {
    if (x < 0 || y < 0 || x >= (long)canvas->width || y >= (long)canvas->height || opacity <= 0)
        return;
    uint8_t *p = canvas->pixels + (size_t)y * canvas->stride + 3 * (size_t)x;
    for (int c = 0; c < 3; c++)
        p[c] = (uint8_t)lrint(p[c] + (rgb[c] - p[c]) * fmin(1, opacity));
}

/* One pixel step along the longer axis, two or more across it, by their distance from the line. */
static void draw_line(sp_image *canvas, double x0, double y0, double x1, double y1, double width, const double rgb[3]) {
    const double dx = x1 - x0, dy = y1 - y0, length = hypot(dx, dy);
    const bool flat = fabs(dx) >= fabs(dy);
    const double along0 = flat ? x0 : y0, along1 = flat ? x1 : y1;
    if (length < 1)
        return;
    const long from = lrint(fmin(along0, along1)), to = lrint(fmax(along0, along1)), reach = lrint(ceil(width)) + 1;
    for (long i = from; i <= to; i++) {
        const double t = ((double)i - along0) / (along1 - along0), across = flat ? y0 + t * dy : x0 + t * dx;
        for (long j = lrint(across) - reach; j <= lrint(across) + reach; j++) {
            const double distance = fabs((double)j - across) * (flat ? fabs(dx) : fabs(dy)) / length;
            blend(canvas, flat ? i : j, flat ? j : i, rgb, 0.75 * fmin(1, fmax(0, width / 2 + 0.5 - distance)));
        }
    }
}

static sp_status make_canvas(const sp_image images[2], sp_image *canvas, sp_error *err) {
    const uint32_t height = images[0].height > images[1].height ? images[0].height : images[1].height;
    *canvas = (sp_image){.width = images[0].width + GAP + images[1].width, .height = height, .channels = 3};
    canvas->stride = (size_t)canvas->width * 3;
    canvas->pixels = malloc(canvas->stride * height);
    if (!canvas->pixels)
        return fail(err, SP_ERR_MEMORY, "drawing: out of memory");
    memset(canvas->pixels, BACKGROUND, canvas->stride * height);
    for (int i = 0; i < 2; i++)
        for (uint32_t y = 0; y < images[i].height; y++)
            memcpy(canvas->pixels + y * canvas->stride + (i ? (size_t)(images[0].width + GAP) * 3 : 0),
                   images[i].pixels + y * images[i].stride, (size_t)images[i].width * 3);
    return SP_OK;
}

sp_status draw_pair(const sp_image images[2], const float *const points[2], const sp_matches *matches, const char *path,
                    sp_error *err) {
    sp_image canvas;
    sp_status status = make_canvas(images, &canvas, err);
    if (status != SP_OK)
        return status;
    const double shift = images[0].width + GAP, width = fmax(1, canvas.height / 700.0);
    for (size_t i = 0; i < matches->count; i++) {
        const float *a = points[0] + 2 * matches->pairs[2 * i], *b = points[1] + 2 * matches->pairs[2 * i + 1];
        double rgb[3];
        colour_of(fmin(1, fmax(0, a[1] / (double)images[0].height)), rgb);
        draw_line(&canvas, a[0], a[1], b[0] + shift, b[1], width, rgb);
        for (int end = 0; end < 2; end++) {
            const double x = end ? b[0] + shift : a[0], y = end ? b[1] : a[1], radius = 1.5 * width + 1;
            for (long py = lrint(y - radius); py <= lrint(y + radius); py++)
                for (long px = lrint(x - radius); px <= lrint(x + radius); px++)
                    blend(&canvas, px, py, rgb, radius - hypot((double)px - x, (double)py - y));
        }
    }
    status = draw_write_png(&canvas, path, err);
    free(canvas.pixels);
    return status;
}
