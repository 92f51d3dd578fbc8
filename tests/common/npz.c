/* The NPZ writer: its bytes are a ZIP whose sizes, offsets and checksums hold; numpy reads it in the parity tests. */
#include "common/npz.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <zlib.h>

#include <cmocka.h>

static uint32_t get32(const uint8_t *p) {
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

/* The data of a member that the directory names; checks what the directory says against the member. */
static const uint8_t *find(const buffer *b, size_t start, const char *name, size_t *size) {
    const uint8_t *zip = b->data + start, *end = b->data + b->size - 22;
    assert_int_equal(get32(end), 0x06054b50);
    const uint8_t *entry = zip + get32(end + 16);
    unsigned count = end[10];
    for (unsigned i = 0; i < count; i++) {
        assert_int_equal(get32(entry), 0x02014b50);
        unsigned length = entry[28];
        const uint8_t *local = zip + get32(entry + 42), *data = local + 30 + length;
        assert_int_equal(get32(local), 0x04034b50);
        assert_memory_equal(local + 4, entry + 6, 26);
        assert_int_equal(crc32(0, data, get32(local + 18)), get32(local + 14));
        if (length == strlen(name) && memcmp(entry + 46, name, length) == 0) {
            *size = get32(local + 18);
            return data;
        }
        entry += 46 + length;
    }
    assert_ptr_equal(entry, end);
    return NULL;
}

static void writes(size_t n) {
    static float values[2048];
    for (size_t i = 0; i < 2048; i++)
        values[i] = (float)i;
    npz_array arrays[] = {{"keypoints", "<f4", 4, 2, {n, 2}, values},
                          {"scores", "<f4", 4, 1, {n}, values},
                          {"descriptors", "<f2", 2, 2, {0, 256}, NULL}};
    buffer b = {0};
    buffer_text(&b, "before");
    assert_int_equal(npz_write(&b, arrays, 3, NULL), SP_OK);
    size_t size;
    const uint8_t *npy = find(&b, 6, "keypoints.npy", &size);
    assert_non_null(npy);
    assert_memory_equal(npy, "\x93NUMPY\x01\x00", 8);
    size_t head = 10 + npy[8] + ((size_t)npy[9] << 8);
    assert_int_equal(head % 64, 0);
    assert_int_equal(npy[head - 1], '\n');
    assert_int_equal(size, head + n * 8);
    assert_memory_equal(npy + head, values, n * 8);
    npy = find(&b, 6, "descriptors.npy", &size);
    assert_non_null(npy);
    assert_non_null(strstr((const char *)npy + 10, "'descr': '<f2', 'fortran_order': False, 'shape': (0, 256), }"));
    npy = find(&b, 6, "scores.npy", &size);
    assert_non_null(npy);
    assert_null(find(&b, 6, "absent.npy", &size));
    buffer_free(&b);
}

static void writes_archives(void **state) {
    (void)state;
    writes(0);
    writes(1);
    writes(1024);
}

static void refuses_what_does_not_fit(void **state) {
    (void)state;
    buffer b = {0};
    npz_array huge = {"huge", "<f4", 4, 2, {SIZE_MAX / 4, 8}, NULL};
    assert_int_equal(npz_write(&b, &huge, 1, NULL), SP_ERR_LIMIT);
    buffer_free(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(writes_archives),
        cmocka_unit_test(refuses_what_does_not_fit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
