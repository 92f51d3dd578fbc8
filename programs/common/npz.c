#include "common/npz.h"

#include <stdio.h>
#include <string.h>
#include <zlib.h>

#include "common/fail.h"

/* NPY 1.0: magic, version, length of the header, then a Python literal padded with spaces so that
 * the data begin at a multiple of 64. */
enum { NPY_PREFIX = 10, NPY_ALIGN = 64, NPY_HEADER_MAX = 256 };

static size_t npy_header(const npz_array *array, char header[NPY_HEADER_MAX]) {
    char shape[96] = "";
    size_t length = 0;
    for (unsigned i = 0; i < array->dimensions; i++)
        length += (size_t)snprintf(shape + length, sizeof shape - length, i ? ", %zu" : "%zu", array->shape[i]);
    if (array->dimensions == 1)
        snprintf(shape + length, sizeof shape - length, ",");
    int text = snprintf(header + NPY_PREFIX, NPY_HEADER_MAX - NPY_PREFIX,
                        "{'descr': '%s', 'fortran_order': False, 'shape': (%s), }", array->dtype, shape);
    size_t total = (NPY_PREFIX + (size_t)text + 1 + NPY_ALIGN - 1) / NPY_ALIGN * NPY_ALIGN;
    memset(header + NPY_PREFIX + text, ' ', total - NPY_PREFIX - (size_t)text);
    header[total - 1] = '\n';
    memcpy(header, "\x93NUMPY\x01\x00", 8);
    header[8] = (char)((total - NPY_PREFIX) & 0xff);
    header[9] = (char)((total - NPY_PREFIX) >> 8);
    return total;
}

static void put16(uint8_t *p, unsigned v) {
    p[0] = (uint8_t)v;
    p[1] = (uint8_t)(v >> 8);
}

static void put32(uint8_t *p, uint32_t v) {
    put16(p, v & 0xffff);
    put16(p + 2, v >> 16);
}

typedef struct member {
    char name[72];
    uint32_t crc, size, offset;
} member;

/* The fields that a local header and a directory entry share, from "version needed" to the lengths.
 * The time is ZIP's earliest, 1980-01-01 00:00, so that the same arrays give the same bytes. */
static void member_fields(uint8_t p[26], const member *m) {
    memset(p, 0, 26);
    put16(p, 20);
    put16(p + 8, 1 << 5 | 1);
    put32(p + 10, m->crc);
    put32(p + 14, m->size);
    put32(p + 18, m->size);
    put16(p + 22, (unsigned)strlen(m->name));
}

static bool array_bytes(const npz_array *array, size_t *bytes) {
    *bytes = array->item_size;
    for (unsigned i = 0; i < array->dimensions; i++)
        if (__builtin_mul_overflow(*bytes, array->shape[i], bytes))
            return false;
    return true;
}

static bool put_member(buffer *out, size_t start, const npz_array *array, member *m) {
    char header[NPY_HEADER_MAX];
    uint8_t local[30];
    size_t bytes, head = npy_header(array, header);
    if (!array_bytes(array, &bytes) || bytes > UINT32_MAX - head || out->size - start > UINT32_MAX - bytes - 4096)
        return false;
    snprintf(m->name, sizeof m->name, "%.64s.npy", array->name);
    m->size = (uint32_t)(head + bytes);
    m->offset = (uint32_t)(out->size - start);
    uLong crc = crc32(0, (const Bytef *)header, (uInt)head);
    m->crc = (uint32_t)(bytes ? crc32(crc, array->data, (uInt)bytes) : crc);
    put32(local, 0x04034b50);
    member_fields(local + 4, m);
    buffer_put(out, local, sizeof local);
    buffer_text(out, m->name);
    buffer_put(out, header, head);
    buffer_put(out, array->data, bytes);
    return true;
}

static void put_directory(buffer *out, size_t start, const member *members, size_t count) {
    size_t begin = out->size - start;
    for (size_t i = 0; i < count; i++) {
        uint8_t entry[46] = {0};
        put32(entry, 0x02014b50);
        put16(entry + 4, 20);
        member_fields(entry + 6, &members[i]);
        put32(entry + 42, members[i].offset);
        buffer_put(out, entry, sizeof entry);
        buffer_text(out, members[i].name);
    }
    uint8_t end[22] = {0};
    put32(end, 0x06054b50);
    put16(end + 8, (unsigned)count);
    put16(end + 10, (unsigned)count);
    put32(end + 12, (uint32_t)(out->size - start - begin));
    put32(end + 16, (uint32_t)begin);
    buffer_put(out, end, sizeof end);
}

sp_status npz_write(buffer *out, const npz_array *arrays, size_t count, sp_error *err) {
    enum { MOST = 96 };
    member members[MOST];
    size_t start = out->size;
    if (count > MOST)
        return fail(err, SP_ERR_LIMIT, "npz: more than %d arrays", MOST);
    for (size_t i = 0; i < count; i++)
        if (!put_member(out, start, &arrays[i], &members[i]))
            return fail(err, SP_ERR_LIMIT, "npz: %s does not fit into 4 GiB", arrays[i].name);
    put_directory(out, start, members, count);
    return out->failed ? fail(err, SP_ERR_MEMORY, "npz: out of memory") : SP_OK;
}

const char *npz_dtype(sp_dtype dtype) {
    return dtype == SP_DTYPE_FLOAT16 ? "<f2" : dtype == SP_DTYPE_FLOAT32 ? "<f4" : "|u1";
}

const char *npz_dtype_name(sp_dtype dtype) {
    return dtype == SP_DTYPE_FLOAT16 ? "float16" : dtype == SP_DTYPE_FLOAT32 ? "float32" : "uint8";
}

size_t npz_features(const sp_features *f, bool descriptors, const char *const names[3], npz_array arrays[3]) {
    arrays[0] = (npz_array){names[0], "<f4", sizeof(float), 2, {f->count, 2}, f->keypoints};
    arrays[1] = (npz_array){names[1], "<f4", sizeof(float), 1, {f->count}, f->scores};
    arrays[2] = (npz_array){names[2], npz_dtype(f->descriptor_dtype), sp_dtype_size(f->descriptor_dtype),
                            2,        {f->count, SP_DESCRIPTOR_DIM},  f->descriptors};
    return descriptors ? 3 : 2;
}
