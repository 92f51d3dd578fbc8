/* Decoding, turning and resampling against what Pillow made of the files in tests/golden/image (see
 * make_image_golden.py there). Prints every file that differs. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/evp.h>

#include "superpoint.h"

#define FOLDER "tests/golden/image/"
enum { DIGEST = 16, FRAMES = 4, RESIZES = 2, DIGESTS = 2 + FRAMES + RESIZES };

typedef struct line {
    char name[128], format[8];
    unsigned width, height;
    char digests[DIGESTS][DIGEST + 1];
} line;

static void digest_rows(const uint8_t *pixels, size_t stride, size_t bytes, uint32_t rows, char out[DIGEST + 1]) {
    unsigned char md[EVP_MAX_MD_SIZE];
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();
    EVP_DigestInit_ex(ctx, EVP_sha256(), NULL);
    for (uint32_t y = 0; y < rows; y++)
        EVP_DigestUpdate(ctx, pixels + y * stride, bytes);
    EVP_DigestFinal_ex(ctx, md, NULL);
    EVP_MD_CTX_free(ctx);
    for (int i = 0; i < DIGEST / 2; i++)
        snprintf(out + 2 * i, 3, "%02x", md[i]);
}

static uint8_t *read_file(const char *path, size_t *size) {
    FILE *f = fopen(path, "rb");
    if (!f)
        return NULL;
    fseek(f, 0, SEEK_END);
    *size = (size_t)ftell(f);
    rewind(f);
    uint8_t *bytes = malloc(*size + 1);
    if (bytes && fread(bytes, 1, *size, f) != *size) {
        free(bytes);
        bytes = NULL;
    }
    fclose(f);
    return bytes;
}

static int expect(const line *l, const char *what, int which, const char *ours) {
    if (strcmp(ours, l->digests[which]) == 0)
        return 0;
    printf("%s: %s differs: %s instead of %s\n", l->name, what, ours, l->digests[which]);
    return 1;
}

static int fail(const line *l, const char *what, const sp_error *err) {
    printf("%s: %s: %s\n", l->name, what, err->text);
    return 1;
}

static int check_image(const line *l, const uint8_t *bytes, size_t size, sp_exif exif, sp_image *image) {
    sp_params params;
    sp_image_info info;
    sp_error err;
    sp_params_default(&params);
    params.exif = exif;
    if (sp_image_decode(bytes, size, &params, image, &info, &err) != SP_OK)
        return fail(l, "sp_image_decode", &err);
    char ours[DIGEST + 1];
    digest_rows(image->pixels, image->stride, (size_t)image->width * 3, image->height, ours);
    int wrong = expect(l, exif == SP_EXIF_APPLY ? "upright" : "stored", exif == SP_EXIF_APPLY, ours);
    if (strcmp(info.format, l->format) != 0 || info.width != l->width || info.height != l->height) {
        printf("%s: is said to be %s of %u x %u\n", l->name, info.format, info.width, info.height);
        wrong++;
    }
    return wrong;
}

/* As derived() in make_image_golden.py. */
static void frame_params(int which, sp_params *params) {
    sp_params_default(params);
    switch (which) {
    case 1:
        params->channel = SP_CHANNEL_LUMA;
        break;
    case 2:
        params->resize = SP_RESIZE_NATIVE;
        break;
    case 3:
        params->channel = SP_CHANNEL_LUMA;
        params->exif = SP_EXIF_APPLY;
        params->resize = SP_RESIZE_MAX;
        params->width = 50;
        break;
    default:
        break;
    }
}

/* Straight from the bytes, and by way of the whole picture. */
static int check_frame(const line *l, const uint8_t *bytes, size_t size, int which, const sp_image images[2]) {
    sp_params params;
    sp_error err;
    sp_frame frame;
    char ours[DIGEST + 1];
    frame_params(which, &params);
    if (sp_frame_decode(bytes, size, &params, &frame, NULL, &err) != SP_OK)
        return fail(l, "sp_frame_decode", &err);
    digest_rows(frame.pixels, frame.stride, frame.width, frame.height, ours);
    sp_frame_free(&frame);
    int wrong = expect(l, "streamed frame", 2 + which, ours);
    if (sp_frame_from_image(&images[params.exif == SP_EXIF_APPLY], &params, &frame, &err) != SP_OK)
        return wrong + fail(l, "sp_frame_from_image", &err);
    digest_rows(frame.pixels, frame.stride, frame.width, frame.height, ours);
    sp_frame_free(&frame);
    return wrong + expect(l, "frame", 2 + which, ours);
}

static int check_resize(const line *l, const sp_image *image, int which) {
    static const uint32_t sizes[RESIZES][2] = {{7, 5}, {200, 3}};
    sp_image out;
    sp_error err;
    if (sp_image_resize(image, sizes[which][0], sizes[which][1], &out, &err) != SP_OK)
        return fail(l, "sp_image_resize", &err);
    char ours[DIGEST + 1];
    digest_rows(out.pixels, out.stride, (size_t)out.width * 3, out.height, ours);
    sp_image_free(&out);
    return expect(l, "resized", 2 + FRAMES + which, ours);
}

static int check_file(const line *l) {
    char path[256];
    size_t size;
    snprintf(path, sizeof path, FOLDER "%s", l->name);
    uint8_t *bytes = read_file(path, &size);
    if (!bytes) {
        printf("%s: cannot be read\n", path);
        return 1;
    }
    sp_image images[2] = {{0}, {0}};
    int wrong = check_image(l, bytes, size, SP_EXIF_IGNORE, &images[0]);
    wrong += check_image(l, bytes, size, SP_EXIF_APPLY, &images[1]);
    for (int i = 0; i < FRAMES && images[0].pixels && images[1].pixels; i++)
        wrong += check_frame(l, bytes, size, i, images);
    for (int i = 0; i < RESIZES && images[0].pixels; i++)
        wrong += check_resize(l, &images[0], i);
    sp_image_free(&images[0]);
    sp_image_free(&images[1]);
    free(bytes);
    return wrong;
}

int main(void) {
    enum { FEWEST = 300 };
    FILE *f = fopen(FOLDER "digests.txt", "r");
    if (!f) {
        printf(FOLDER "digests.txt cannot be read\n");
        return 1;
    }
    line l;
    int files = 0, wrong = 0;
    while (fscanf(f, "%127s %7s %u %u %16s %16s %16s %16s %16s %16s %16s %16s", l.name, l.format, &l.width, &l.height,
                  l.digests[0], l.digests[1], l.digests[2], l.digests[3], l.digests[4], l.digests[5], l.digests[6],
                  l.digests[7]) == 4 + DIGESTS) {
        wrong += check_file(&l);
        files++;
    }
    const bool whole = feof(f) != 0;
    fclose(f);
    printf("%d files, %d differences\n", files, wrong);
    return wrong == 0 && whole && files >= FEWEST ? 0 : 1;
}
