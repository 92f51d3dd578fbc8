/* Pictures: limits, broken and cut files, orientation, and what frames are made of. Equality with Pillow is tested by
 * tests/golden/image_golden.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <jpeglib.h>

#include "image/codec.h"
#include "image/exif.h"
#include "superpoint.h"

#define FOLDER "tests/golden/image/"

typedef struct file {
    uint8_t *bytes;
    size_t size;
} file;

static file load(const char *name) {
    char path[256];
    snprintf(path, sizeof path, FOLDER "%s", name);
    FILE *f = fopen(path, "rb");
    if (!f)
        fail_msg("%s cannot be read", path);
    file out = {malloc(1 << 20), 0};
    assert_non_null(out.bytes);
    out.size = fread(out.bytes, 1, 1 << 20, f);
    fclose(f);
    return out;
}

static sp_status decode(const void *bytes, size_t size, const sp_params *params, sp_error *err) {
    sp_image image;
    sp_status status = sp_image_decode(bytes, size, params, &image, NULL, err);
    assert_true((status == SP_OK) == (image.pixels != NULL));
    assert_true((status == SP_OK) == (err->text[0] == '\0'));
    sp_image_free(&image);
    return status;
}

/* ------------------------------------------------------------------ what is not a picture ---- */

static void test_not_a_picture(void **state) {
    (void)state;
    static const char *const texts[] = {"", "x", "<svg></svg>", "%PDF-1.7", "BM", "GIF89b", "P7\n", "\xff\xd8"};
    sp_error err;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        sp_status status = decode(texts[i], strlen(texts[i]), NULL, &err);
        assert_int_equal(status, strcmp(texts[i], "BM") ? SP_ERR_IMAGE_FORMAT : SP_ERR_IMAGE_DATA);
    }
    assert_int_equal(decode(NULL, 0, NULL, &err), SP_ERR_IMAGE_FORMAT);
    assert_non_null(strstr(err.text, "empty"));
}

static void test_arguments(void **state) {
    (void)state;
    sp_error err;
    sp_image image = {0};
    sp_frame frame = {0};
    assert_int_equal(sp_image_probe("x", 1, NULL, &err), SP_ERR_ARGUMENT);
    assert_int_equal(sp_image_decode("x", 1, NULL, NULL, NULL, &err), SP_ERR_ARGUMENT);
    assert_int_equal(sp_frame_decode("x", 1, NULL, NULL, NULL, &err), SP_ERR_ARGUMENT);
    assert_int_equal(sp_image_resize(&image, 1, 1, &image, &err), SP_ERR_ARGUMENT);
    assert_int_equal(sp_frame_from_image(&image, NULL, &frame, &err), SP_ERR_ARGUMENT);
    assert_int_equal(sp_frame_set_mask(&frame, &image, &err), SP_ERR_ARGUMENT);
    sp_params params;
    sp_params_default(&params);
    params.width = 641;
    assert_int_equal(sp_frame_decode("x", 1, &params, &frame, NULL, &err), SP_ERR_ARGUMENT);
    sp_image_free(NULL);
    sp_image_free(&image);
    sp_frame_free(NULL);
    sp_frame_free(&frame);
}

/* One of each kind. */
static const struct {
    const char *name, *title;
    bool needs_all; /* no byte at the end can be missed */
} kinds[] = {
    {"jpeg-s2x2-15x17-optimized.jpg", "JPEG", true},
    {"jpeg-s2x2-7x8-progressive.jpg", "JPEG", true},
    {"png-c2-d8-5x9.png", "PNG", false},
    {"png-c3-d4-interlaced-5x9.png", "PNG", false},
    {"gif-pillow.gif", "GIF", false},
    {"webp-lossy-80-16x16.webp", "WebP", true},
    {"webp-lossless-16x16.webp", "WebP", true},
    {"bmp-24-h40-18x9.bmp", "BMP", true},
    {"bmp-rle8-18x9.bmp", "BMP", false},
    {"ppm-p6-255-16x7.pnm", "PPM", true},
    {"ppm-p3-255-16x7.pnm", "PPM", false},
};

static void test_cut_at_every_byte(void **state) {
    (void)state;
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
        file f = load(kinds[k].name);
        sp_error err;
        assert_int_equal(decode(f.bytes, f.size, NULL, &err), SP_OK);
        size_t failed = 0;
        for (size_t size = 12; size < f.size; size++) {
            uint8_t *copy = malloc(size); /* a sanitizer sees what is read behind it */
            assert_non_null(copy);
            memcpy(copy, f.bytes, size);
            sp_status status = decode(copy, size, NULL, &err);
            free(copy);
            if (status == SP_OK) {
                assert_false(kinds[k].needs_all);
                continue;
            }
            failed++;
            assert_int_equal(status, SP_ERR_IMAGE_DATA);
            if (!strstr(err.text, kinds[k].title))
                fail_msg("%s cut to %zu: %s", kinds[k].name, size, err.text);
        }
        assert_true(failed > (f.size - 12) / 2);
        decode(f.bytes, f.size / 2, NULL, &err);
        if (!strstr(err.text, "cut short"))
            fail_msg("%s cut in the middle: %s", kinds[k].name, err.text);
        free(f.bytes);
    }
}

static void test_kinds_not_read(void **state) {
    (void)state;
    file f = load("jpeg-s2x2-15x17-optimized.jpg");
    sp_error err;
    uint8_t *sof = memmem(f.bytes, f.size, "\xff\xc0", 2);
    assert_non_null(sof);
    sof[1] = 0xC3;
    assert_int_equal(decode(f.bytes, f.size, NULL, &err), SP_ERR_IMAGE_FORMAT);
    assert_non_null(strstr(err.text, "lossless"));
    sof[1] = 0xC0;
    sof[4] = 12;
    assert_int_equal(decode(f.bytes, f.size, NULL, &err), SP_ERR_IMAGE_FORMAT);
    assert_non_null(strstr(err.text, "12 bits"));
    free(f.bytes);
    f = load("bmp-24-h40-18x9.bmp");
    f.bytes[30] = 4; /* JPEG inside */
    assert_int_equal(decode(f.bytes, f.size, NULL, &err), SP_ERR_IMAGE_FORMAT);
    f.bytes[30] = 0;
    f.bytes[28] = 2; /* bits a pixel */
    assert_int_equal(decode(f.bytes, f.size, NULL, &err), SP_ERR_IMAGE_FORMAT);
    free(f.bytes);
}

static void test_broken_png(void **state) {
    (void)state;
    file f = load("png-c2-d8-5x9.png");
    sp_error err;
    uint8_t *idat = memmem(f.bytes, f.size, "IDAT", 4);
    assert_non_null(idat);
    idat[9] ^= 0x40; /* the checksum of the chunk no longer fits */
    assert_int_equal(decode(f.bytes, f.size, NULL, &err), SP_ERR_IMAGE_DATA);
    idat[9] ^= 0x40;
    memset(f.bytes + 16, 0, 4); /* width 0 */
    assert_int_equal(decode(f.bytes, f.size, NULL, &err), SP_ERR_IMAGE_DATA);
    free(f.bytes);
}

/* ------------------------------------------------------------------ limits ------------------- */

static void test_size_is_judged_before_pixels(void **state) {
    (void)state;
    sp_error err;
    sp_params params;
    sp_params_default(&params);
    /* Headers only: had anything been decoded, they would be cut short. */
    static const char huge_ppm[] = "P6 60000 60000 255\n", wide_ppm[] = "P5 65536 1 255\n";
    assert_int_equal(decode(huge_ppm, sizeof huge_ppm - 1, &params, &err), SP_ERR_IMAGE_TOO_LARGE);
    assert_non_null(strstr(err.text, "60000 x 60000"));
    assert_int_equal(decode(wide_ppm, sizeof wide_ppm - 1, &params, &err), SP_ERR_IMAGE_TOO_LARGE);
    file f = load("png-c2-d8-5x9.png");
    memcpy(f.bytes + 16, "\x7f\xff\xff\xff\0\0\0\1", 8);
    assert_int_equal(decode(f.bytes, f.size, &params, &err), SP_ERR_IMAGE_TOO_LARGE);
    free(f.bytes);
    f = load("jpeg-s2x2-15x17-optimized.jpg");
    params.max_pixels = 254;
    assert_int_equal(decode(f.bytes, f.size, &params, &err), SP_ERR_IMAGE_TOO_LARGE);
    params.max_pixels = 255;
    assert_int_equal(decode(f.bytes, f.size, &params, &err), SP_OK);
    free(f.bytes);
}

/* A progressive JPEG whose coefficients come one by one, each with its refinements: 3 * 63 * 2 scans and more. */
static size_t make_scan_bomb(uint8_t **out, int bands) {
    struct jpeg_compress_struct c;
    struct jpeg_error_mgr errors;
    jpeg_scan_info scans[1 + 3 * 63];
    unsigned long size = 0;
    c.err = jpeg_std_error(&errors);
    jpeg_create_compress(&c);
    jpeg_mem_dest(&c, out, &size);
    c.image_width = c.image_height = 16;
    c.input_components = 3;
    c.in_color_space = JCS_RGB;
    jpeg_set_defaults(&c);
    int n = 0;
    scans[n++] = (jpeg_scan_info){.comps_in_scan = 3, .component_index = {0, 1, 2}};
    for (int component = 0; component < 3; component++)
        for (int k = 1; k <= bands; k++)
            scans[n++] = (jpeg_scan_info){
                .comps_in_scan = 1, .component_index = {component}, .Ss = k, .Se = k == bands ? 63 : k};
    c.scan_info = scans;
    c.num_scans = n;
    jpeg_start_compress(&c, TRUE);
    uint8_t row[48] = {1, 90, 200};
    JSAMPROW rows[1] = {row};
    while (c.next_scanline < c.image_height)
        jpeg_write_scanlines(&c, rows, 1);
    jpeg_finish_compress(&c);
    jpeg_destroy_compress(&c);
    return size;
}

static void test_number_of_scans(void **state) {
    (void)state;
    sp_error err;
    uint8_t *bytes = NULL;
    size_t size = make_scan_bomb(&bytes, 63);
    assert_int_equal(decode(bytes, size, NULL, &err), SP_ERR_LIMIT);
    assert_non_null(strstr(err.text, "100 scans"));
    free(bytes);
    bytes = NULL;
    size = make_scan_bomb(&bytes, 33); /* 1 + 3 * 33 is the most */
    assert_int_equal(decode(bytes, size, NULL, &err), SP_OK);
    free(bytes);
}

static void test_frame_limits(void **state) {
    (void)state;
    sp_error err;
    sp_frame frame;
    sp_params params;
    sp_params_default(&params);
    params.resize = SP_RESIZE_NATIVE;
    uint8_t row[20000] = {0};
    const sp_image image = {.width = 20000, .height = 1, .channels = 1, .stride = 20000, .pixels = row};
    assert_int_equal(sp_frame_from_image(&image, &params, &frame, &err), SP_ERR_LIMIT);
    assert_null(frame.pixels);
    params.resize = SP_RESIZE_MAX;
    params.width = 16384;
    assert_int_equal(sp_frame_from_image(&image, &params, &frame, &err), SP_OK);
    assert_int_equal(frame.content_height, 1);
    sp_frame_free(&frame);
}

/* ------------------------------------------------------------------ headers ------------------ */

static sp_image_info probe(const char *name) {
    file f = load(name);
    sp_image_info info;
    sp_error err;
    if (sp_image_probe(f.bytes, f.size, &info, &err) != SP_OK)
        fail_msg("%s: %s", name, err.text);
    free(f.bytes);
    return info;
}

static void test_orientation_is_found(void **state) {
    (void)state;
    char name[64];
    for (int i = 0; i <= 9; i++) {
        snprintf(name, sizeof name, "jpeg-exif-%d.jpg", i);
        assert_int_equal(probe(name).orientation, i >= 1 && i <= 8 ? i : 1);
    }
    assert_int_equal(probe("jpeg-xmp-6.jpg").orientation, 6);
    assert_int_equal(probe("png-exif-8.png").orientation, 8);
    assert_int_equal(probe("png-exif-after-8.png").orientation, 8);
    assert_int_equal(probe("webp-exif-7.webp").orientation, 7);
    assert_int_equal(probe("gif-pillow.gif").orientation, 1);
}

static void test_more_pictures_are_told(void **state) {
    (void)state;
    static const char *const more[] = {"jpeg-mpo.jpg", "png-animated.png", "png-animated-default.png",
                                       "gif-animated.gif", "webp-animated.webp"};
    static const char *const one[] = {"jpeg-exif-1.jpg", "png-c2-d8-5x9.png", "gif-pillow.gif",
                                      "webp-lossy-80-16x16.webp", "bmp-24-h40-18x9.bmp"};
    for (size_t i = 0; i < sizeof more / sizeof more[0]; i++)
        assert_true(probe(more[i]).multiple);
    for (size_t i = 0; i < sizeof one / sizeof one[0]; i++)
        assert_false(probe(one[i]).multiple);
}

static int orientation_of(const char *bytes, size_t size) {
    return sp_exif_orientation((sp_bytes){(const uint8_t *)bytes, size});
}

static void test_hostile_exif(void **state) {
    (void)state;
    static const char good[] = "MM\0*\0\0\0\x08\0\1\x01\x12\0\3\0\0\0\1\0\6\0\0\0\0\0\0";
    enum { SIZE = sizeof good - 1 };
    assert_int_equal(orientation_of(good, SIZE), 6);
    for (size_t size = 0; size < 22; size++)
        assert_int_equal(orientation_of(good, size), 0);
    char bad[SIZE];
    for (size_t at = 0; at < SIZE; at++) { /* whatever a byte says, nothing else is read */
        for (int value = 0; value < 256; value++) {
            memcpy(bad, good, SIZE);
            bad[at] = (char)value;
            int orientation = orientation_of(bad, SIZE);
            assert_true(orientation >= 0 && orientation <= 8);
        }
    }
    assert_int_equal(sp_xmp_orientation((sp_bytes){(const uint8_t *)"tiff:Orientation=\"", 18}), 0);
    assert_int_equal(sp_xmp_orientation((sp_bytes){(const uint8_t *)"tiff:Orientation>8<", 19}), 8);
}

/* ------------------------------------------------------------------ resampling --------------- */

static void test_known_resizes(void **state) {
    (void)state;
    uint8_t in[8] = {0, 0, 0, 0, 100, 100, 100, 100}, two[2] = {0, 100};
    sp_image image = {.width = 8, .height = 1, .channels = 1, .stride = 8, .pixels = in}, out;
    sp_error err;
    assert_int_equal(sp_image_resize(&image, 2, 1, &out, &err), SP_OK);
    assert_memory_equal(out.pixels, ((uint8_t[]){14, 86}), 2);
    sp_image_free(&out);
    image = (sp_image){.width = 2, .height = 1, .channels = 1, .stride = 2, .pixels = two};
    assert_int_equal(sp_image_resize(&image, 4, 1, &out, &err), SP_OK);
    assert_memory_equal(out.pixels, ((uint8_t[]){0, 25, 75, 100}), 4);
    sp_image_free(&out);
    assert_int_equal(sp_image_resize(&image, 0, 1, &out, &err), SP_ERR_ARGUMENT);
    assert_int_equal(sp_image_resize(&image, 1, 65536, &out, &err), SP_ERR_ARGUMENT);
}

static void test_flat_pictures_stay_flat(void **state) {
    (void)state;
    static uint8_t pixels[37 * 23];
    static const uint32_t sides[] = {1, 2, 5, 23, 37, 100, 257};
    sp_error err;
    for (int value = 0; value < 256; value += 51) {
        memset(pixels, value, sizeof pixels);
        const sp_image image = {.width = 37, .height = 23, .channels = 1, .stride = 37, .pixels = pixels};
        for (size_t i = 0; i < 7; i++) {
            for (size_t j = 0; j < 7; j++) {
                sp_image out;
                assert_int_equal(sp_image_resize(&image, sides[i], sides[j], &out, &err), SP_OK);
                for (size_t p = 0; p < (size_t)sides[i] * sides[j]; p++)
                    assert_int_equal(out.pixels[p], value);
                sp_image_free(&out);
            }
        }
    }
}

/* ------------------------------------------------------------------ frames ------------------- */

static void test_frame_of_rows_with_stride(void **state) {
    (void)state;
    uint8_t pixels[3 * 40];
    for (size_t i = 0; i < sizeof pixels; i++)
        pixels[i] = (uint8_t)i;
    const sp_image image = {.width = 5, .height = 3, .channels = 3, .stride = 40, .pixels = pixels};
    sp_params params;
    sp_params_default(&params);
    params.resize = SP_RESIZE_NATIVE;
    sp_frame frame;
    sp_error err;
    assert_int_equal(sp_frame_from_image(&image, &params, &frame, &err), SP_OK);
    assert_int_equal(frame.width, 8);
    assert_int_equal(frame.height, 8);
    assert_int_equal(frame.content_width, 5);
    assert_int_equal(frame.content_height, 3);
    assert_true(frame.scale_x == 1.0 && frame.scale_y == 1.0);
    for (uint32_t y = 0; y < 8; y++)
        for (uint32_t x = 0; x < 8; x++)
            assert_int_equal(frame.pixels[y * frame.stride + x], x < 5 && y < 3 ? pixels[y * 40 + 3 * x] : 0);
    sp_frame_free(&frame);
}

static void test_frame_sizes(void **state) {
    (void)state;
    static uint8_t pixels[100 * 60];
    const sp_image image = {.width = 100, .height = 60, .channels = 1, .stride = 100, .pixels = pixels};
    sp_params params;
    sp_frame frame;
    sp_error err;
    assert_int_equal(sp_frame_from_image(&image, NULL, &frame, &err), SP_OK);
    assert_int_equal(frame.width, 640);
    assert_int_equal(frame.content_height, 480);
    assert_true(frame.scale_x == 100.0 / 640 && frame.scale_y == 60.0 / 480);
    sp_frame_free(&frame);
    sp_params_default(&params);
    params.resize = SP_RESIZE_MAX;
    params.width = 33;
    assert_int_equal(sp_frame_from_image(&image, &params, &frame, &err), SP_OK);
    assert_int_equal(frame.content_width, 33);
    assert_int_equal(frame.content_height, 20); /* 19.8 */
    assert_int_equal(frame.width, 40);
    assert_int_equal(frame.height, 24);
    assert_true(frame.scale_x == 100.0 / 33 && frame.scale_y == 3.0);
    assert_int_equal(frame.original_width, 100);
    sp_frame_free(&frame);
}

static void test_turned_frames_swap_their_sides(void **state) {
    (void)state;
    file f = load("jpeg-exif-6.jpg");
    sp_params params;
    sp_params_default(&params);
    params.resize = SP_RESIZE_NATIVE;
    params.exif = SP_EXIF_APPLY;
    sp_frame frame;
    sp_image_info info;
    sp_error err;
    assert_int_equal(sp_frame_decode(f.bytes, f.size, &params, &frame, &info, &err), SP_OK);
    assert_int_equal(info.width, 20);
    assert_int_equal(info.height, 13);
    assert_int_equal(frame.original_width, 13);
    assert_int_equal(frame.original_height, 20);
    sp_frame_free(&frame);
    free(f.bytes);
}

static void test_mask(void **state) {
    (void)state;
    uint8_t pixels[5 * 4] = {0}, mask_pixels[2 * 2 * 3] = {0, 9, 9, 1, 0, 0, 255, 0, 0, 0, 1, 1};
    const sp_image image = {.width = 5, .height = 4, .channels = 1, .stride = 5, .pixels = pixels};
    const sp_image mask = {.width = 2, .height = 2, .channels = 3, .stride = 6, .pixels = mask_pixels};
    sp_params params;
    sp_params_default(&params);
    params.resize = SP_RESIZE_NATIVE;
    sp_frame frame;
    sp_error err;
    assert_int_equal(sp_frame_from_image(&image, &params, &frame, &err), SP_OK);
    for (int twice = 0; twice < 2; twice++) {
        assert_int_equal(sp_frame_set_mask(&frame, &mask, &err), SP_OK);
        for (uint32_t y = 0; y < 8; y++) {
            for (uint32_t x = 0; x < 8; x++) {
                bool inside = x < 5 && y < 4, right = 2 * x + 1 >= 5, lower = y >= 2;
                assert_int_equal(frame.mask[y * 8 + x] != 0, inside && right != lower);
            }
        }
    }
    sp_frame_free(&frame);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_not_a_picture),
        cmocka_unit_test(test_arguments),
        cmocka_unit_test(test_cut_at_every_byte),
        cmocka_unit_test(test_kinds_not_read),
        cmocka_unit_test(test_broken_png),
        cmocka_unit_test(test_size_is_judged_before_pixels),
        cmocka_unit_test(test_number_of_scans),
        cmocka_unit_test(test_frame_limits),
        cmocka_unit_test(test_orientation_is_found),
        cmocka_unit_test(test_more_pictures_are_told),
        cmocka_unit_test(test_hostile_exif),
        cmocka_unit_test(test_known_resizes),
        cmocka_unit_test(test_flat_pictures_stay_flat),
        cmocka_unit_test(test_frame_of_rows_with_stride),
        cmocka_unit_test(test_frame_sizes),
        cmocka_unit_test(test_turned_frames_swap_their_sides),
        cmocka_unit_test(test_mask),
    };
    return cmocka_run_group_tests_name("image", tests, NULL, NULL);
}
