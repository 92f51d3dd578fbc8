#include "extract/journal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "common/fail.h"
#include "common/output.h"
#include "extract/identity.h"

/* A journal is a heading, whose payload is the identity, and records; each a head and its payload. */
enum { MAGIC_HEADING = 0x314a5053, MAGIC_RECORD = 0x314b5053 }; /* "SPJ1", "SPK1" */
enum { MAX_NAME = 4096, MAX_IDENTITY = 1 << 20, MAX_FILES = 4096 };
#define MAX_COUNT ((uint64_t)1 << 26)

typedef struct head {
    uint32_t magic;
    uint32_t checksum; /* CRC-32 of the head behind this field, and of the payload */
    uint64_t payload;  /* bytes that follow: name, keypoints, scores, descriptors, without gaps */
    uint64_t count;
    uint64_t file_size;
    int64_t file_time;
    double scale_x, scale_y;
    uint32_t width, height, frame_width, frame_height;
    uint32_t name_size, dtype, described, reserved;
} head;

_Static_assert(sizeof(head) == 88, "without padding, the same everywhere");

struct journal {
    char *folder;
    char *identity;
    uint32_t own;
    int *files; /* by number; -1 where there is none */
    uint32_t count;
    off_t end; /* of our own */
    buffer scratch;
};

static sp_status failed(const char *folder, sp_error *err) {
    return fail(err, SP_ERR_IO, "%.300s: %s", folder, strerror(errno));
}

sp_status journal_lock(const char *output, char **folder, int *lock, sp_error *err) {
    char path[PATH_MAX];
    size_t length = strlen(output);
    while (length > 1 && output[length - 1] == '/')
        length--;
    *lock = -1;
    *folder = NULL;
    if ((size_t)snprintf(path, sizeof path, "%.*s.partial", (int)length, output) >= sizeof path - 16)
        return fail(err, SP_ERR_ARGUMENT, "%.300s: the path is too long", output);
    if (mkdir(path, 0777) != 0 && errno != EEXIST)
        return failed(path, err);
    *folder = strdup(path);
    if (!*folder)
        return fail(err, SP_ERR_MEMORY, "%.300s: out of memory", path);
    *lock = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (*lock >= 0 && flock(*lock, LOCK_EX | LOCK_NB) == 0)
        return SP_OK;
    sp_status status = errno == EWOULDBLOCK
                           ? fail(err, SP_ERR_IO, "%.300s: another process is writing this output", output)
                           : failed(path, err);
    if (*lock >= 0)
        close(*lock);
    free(*folder);
    *folder = NULL;
    *lock = -1;
    return status;
}

/* ------------------------------------------------------------------ heads -------------------- */

static uint32_t checksum_of(const head *h, const uint8_t *payload) {
    uLong crc = crc32_z(0, (const Bytef *)h + 8, sizeof *h - 8);
    return (uint32_t)crc32_z(crc, payload, h->payload);
}

static bool expected_payload(const head *h, uint64_t *payload) {
    if (h->count > MAX_COUNT || h->name_size > MAX_NAME || h->dtype > SP_DTYPE_UINT8)
        return false;
    const uint64_t each = 12 + (h->described ? SP_DESCRIPTOR_DIM * sp_dtype_size((sp_dtype)h->dtype) : 0);
    *payload = h->name_size + 1 + (4 - (h->name_size + 1) % 4) % 4 + h->count * each;
    return true;
}

static bool read_all(int fd, void *to, size_t size, off_t at) {
    for (char *p = to; size > 0;) {
        ssize_t n = pread(fd, p, size, at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        p += n;
        at += n;
        size -= (size_t)n;
    }
    return true;
}

/* The record at `at`, checked; false where there is no whole one. */
static bool read_record(int fd, off_t at, uint32_t magic, buffer *memory, head *h) {
    uint64_t payload;
    if (!read_all(fd, h, sizeof *h, at) || h->magic != magic)
        return false;
    if (magic == MAGIC_HEADING ? h->payload > MAX_IDENTITY : !expected_payload(h, &payload) || payload != h->payload)
        return false;
    buffer_clear(memory);
    uint8_t *to = buffer_room(memory, h->payload + 1);
    if (!to || !read_all(fd, to, h->payload, at + (off_t)sizeof *h) || checksum_of(h, to) != h->checksum)
        return false;
    to[h->payload] = '\0';
    return true;
}

static void unpack(const head *h, const uint8_t *payload, record *r) {
    const uint8_t *p = payload + (h->name_size + 1 + 3) / 4 * 4;
    *r = (record){.name = (const char *)payload,
                  .width = h->width,
                  .height = h->height,
                  .frame_width = h->frame_width,
                  .frame_height = h->frame_height,
                  .scale_x = h->scale_x,
                  .scale_y = h->scale_y,
                  .file_size = h->file_size,
                  .file_time = h->file_time,
                  .count = h->count,
                  .dtype = (sp_dtype)h->dtype,
                  .described = h->described != 0,
                  .keypoints = (const float *)p,
                  .scores = (const float *)(p + h->count * 8)};
    r->descriptors = p + h->count * 12;
}

/* ------------------------------------------------------------------ writing ------------------ */

/* `scratch` holds a head and its payload. What was written of it is taken back on failure. */
static sp_status append(journal *j, sp_error *err) {
    head *h = (head *)j->scratch.data;
    if (j->scratch.failed)
        return fail(err, SP_ERR_MEMORY, "%.300s: out of memory", j->folder);
    h->checksum = checksum_of(h, j->scratch.data + sizeof *h);
    if (sp_output_all(j->files[j->own], j->scratch.data, j->scratch.size)) {
        j->end += (off_t)j->scratch.size;
        return SP_OK;
    }
    sp_status status = failed(j->folder, err);
    if (ftruncate(j->files[j->own], j->end) != 0 || lseek(j->files[j->own], j->end, SEEK_SET) < 0)
        return status; /* the next run cuts it off */
    return status;
}

sp_status journal_append(journal *j, const record *r, place *where, sp_error *err) {
    head h = {.magic = MAGIC_RECORD,
              .count = r->count,
              .file_size = r->file_size,
              .file_time = r->file_time,
              .scale_x = r->scale_x,
              .scale_y = r->scale_y,
              .width = r->width,
              .height = r->height,
              .frame_width = r->frame_width,
              .frame_height = r->frame_height,
              .name_size = (uint32_t)strlen(r->name),
              .dtype = r->dtype,
              .described = r->described};
    if (strlen(r->name) > MAX_NAME || !expected_payload(&h, &h.payload))
        return fail(err, SP_ERR_LIMIT, "%.300s: too long a name or too many keypoints", r->name);
    buffer_clear(&j->scratch);
    buffer_put(&j->scratch, &h, sizeof h);
    buffer_put(&j->scratch, r->name, h.name_size + 1);
    buffer_put(&j->scratch, "\0\0\0", (4 - (h.name_size + 1) % 4) % 4);
    buffer_put(&j->scratch, r->keypoints, r->count * 8);
    buffer_put(&j->scratch, r->scores, r->count * 4);
    if (r->described)
        buffer_put(&j->scratch, r->descriptors, r->count * SP_DESCRIPTOR_DIM * sp_dtype_size(r->dtype));
    *where = (place){j->own, j->end, j->scratch.size};
    return append(j, err);
}

/* ------------------------------------------------------------------ opening ------------------ */

static sp_status begin_own(journal *j, sp_error *err) {
    const int fd = j->files[j->own];
    head h = {.magic = MAGIC_HEADING, .payload = strlen(j->identity)};
    j->end = 0;
    if (ftruncate(fd, 0) != 0 || lseek(fd, 0, SEEK_SET) < 0)
        return failed(j->folder, err);
    buffer_clear(&j->scratch);
    buffer_put(&j->scratch, &h, sizeof h);
    buffer_text(&j->scratch, j->identity);
    return append(j, err);
}

/* Numbers of the journals in the folder go into `count`, the largest plus one. */
static sp_status count_journals(journal *j, sp_error *err) {
    DIR *folder = opendir(j->folder);
    if (!folder)
        return failed(j->folder, err);
    j->count = j->own + 1;
    for (struct dirent *e; (e = readdir(folder)) != NULL;) {
        unsigned number;
        if (sscanf(e->d_name, "journal-%u", &number) == 1 && number < MAX_FILES && number >= j->count)
            j->count = number + 1;
    }
    closedir(folder);
    return SP_OK;
}

static sp_status open_journals(journal *j, sp_error *err) {
    j->files = malloc(j->count * sizeof *j->files);
    if (!j->files)
        return fail(err, SP_ERR_MEMORY, "%.300s: out of memory", j->folder);
    for (uint32_t i = 0; i < j->count; i++)
        j->files[i] = -1;
    for (uint32_t i = 0; i < j->count; i++) {
        char path[PATH_MAX];
        snprintf(path, sizeof path, "%s/journal-%u", j->folder, i);
        j->files[i] = open(path, (i == j->own ? O_RDWR | O_CREAT : O_RDONLY) | O_CLOEXEC, 0666);
        if (j->files[i] < 0 && (i == j->own || errno != ENOENT))
            return failed(path, err);
    }
    return SP_OK;
}

sp_status journal_open(const char *folder, uint32_t own, const char *identity, journal **out, sp_error *err) {
    journal *j = calloc(1, sizeof *j);
    *out = NULL;
    if (!j)
        return fail(err, SP_ERR_MEMORY, "%.300s: out of memory", folder);
    j->own = own;
    j->folder = strdup(folder);
    j->identity = strdup(identity);
    sp_status status = !j->folder || !j->identity ? fail(err, SP_ERR_MEMORY, "%.300s: out of memory", folder)
                       : own >= MAX_FILES         ? fail(err, SP_ERR_LIMIT, "more than %d processes", MAX_FILES)
                                                  : count_journals(j, err);
    if (status == SP_OK)
        status = open_journals(j, err);
    if (status != SP_OK) {
        journal_close(j);
        return status;
    }
    *out = j;
    return SP_OK;
}

static sp_status scan_one(journal *j, uint32_t number, journal_found *found, void *context, sp_error *err) {
    buffer memory = {0};
    head h;
    const int fd = j->files[number];
    if (!read_record(fd, 0, MAGIC_HEADING, &memory, &h)) { /* killed before the heading was whole */
        buffer_free(&memory);
        return number == j->own ? begin_own(j, err) : SP_OK;
    }
    sp_status status = identity_compare(j->folder, (const char *)memory.data, j->identity, err);
    off_t at = (off_t)(sizeof h + h.payload);
    while (status == SP_OK && read_record(fd, at, MAGIC_RECORD, &memory, &h)) {
        record r;
        unpack(&h, memory.data, &r);
        const size_t size = sizeof h + h.payload;
        status = found(context, &r, (place){number, at, size}, err);
        at += (off_t)size;
    }
    buffer_free(&memory);
    if (status == SP_OK && number == j->own) {
        j->end = at;
        if (ftruncate(fd, at) != 0 || lseek(fd, at, SEEK_SET) < 0)
            status = failed(j->folder, err);
    }
    return status;
}

sp_status journal_scan(journal *j, journal_found *found, void *context, sp_error *err) {
    sp_status status = SP_OK;
    for (uint32_t i = 0; status == SP_OK && i < j->count; i++)
        if (j->files[i] >= 0)
            status = scan_one(j, i, found, context, err);
    return status;
}

sp_status journal_read(journal *j, place where, buffer *memory, record *r, sp_error *err) {
    head h;
    if (where.file >= j->count || !read_record(j->files[where.file], where.offset, MAGIC_RECORD, memory, &h))
        return fail(err, SP_ERR_IO, "%.300s: a record that was whole is no longer", j->folder);
    unpack(&h, memory->data, r);
    return SP_OK;
}

void journal_close(journal *j) {
    if (!j)
        return;
    for (uint32_t i = 0; j->files && i < j->count; i++)
        if (j->files[i] >= 0)
            close(j->files[i]);
    free(j->files);
    free(j->folder);
    free(j->identity);
    buffer_free(&j->scratch);
    free(j);
}

void journal_remove(const char *folder) {
    DIR *listing = opendir(folder);
    if (!listing)
        return;
    for (struct dirent *e; (e = readdir(listing)) != NULL;)
        if (strncmp(e->d_name, "journal-", 8) == 0)
            unlinkat(dirfd(listing), e->d_name, 0);
    closedir(listing);
    rmdir(folder);
}
