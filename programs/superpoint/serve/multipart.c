/* multipart/form-data (RFC 7578): parts are spans of the body; nothing is copied. */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "common/fail.h"
#include "common/params.h"
#include "input.h"

typedef struct part {
    char name[64]; /* "" when it has none that could mean anything here */
    bool disposed; /* it has a Content-Disposition */
    uint8_t *data;
    size_t size;
} part;

typedef struct cursor {
    uint8_t *p, *end;
    char delimiter[80]; /* CRLF "--" boundary */
    size_t delimiter_size;
} cursor;

static sp_status malformed(const char *what, sp_error *err) {
    return fail(err, SP_ERR_ARGUMENT, "body: multipart: %s", what);
}

/* The value of name="…" or name=token inside a Content-Disposition; false when there is none. */
static bool disposition_name(const char *text, size_t size, char *name, size_t room) {
    const char *end = text + size;
    for (const char *p = text; (p = memchr(p, ';', (size_t)(end - p)));) {
        for (p++; p < end && (*p == ' ' || *p == '\t'); p++)
            ;
        if (end - p < 5 || strncasecmp(p, "name=", 5) != 0)
            continue;
        p += 5;
        bool quoted = p < end && *p == '"';
        size_t length = 0;
        for (p += quoted; p < end && (quoted ? *p != '"' : *p != ';' && *p != ' '); p++) {
            if (length + 1 >= room || *p == '\0')
                return false;
            name[length++] = *p;
        }
        name[length] = '\0';
        return length > 0 && (!quoted || p < end);
    }
    return false;
}

static bool is_header(const uint8_t *line, size_t size, const char *name) {
    size_t length = strlen(name);
    return size > length && line[length] == ':' && strncasecmp((const char *)line, name, length) == 0;
}

/* One header line of a part. */
static sp_status read_header(const uint8_t *line, size_t size, part *out, sp_error *err) {
    if (is_header(line, size, "content-disposition")) {
        out->disposed = true;
        if (!disposition_name((const char *)line, size, out->name, sizeof out->name))
            out->name[0] = '\0';
    } else if (is_header(line, size, "content-transfer-encoding")) {
        if (memmem(line, size, "base64", 6) || memmem(line, size, "quoted", 6))
            return malformed("Content-Transfer-Encoding must be binary", err);
    }
    return SP_OK;
}

/* Behind a delimiter's line: headers, an empty line, data up to the next delimiter. */
static sp_status read_part(cursor *c, part *out, sp_error *err) {
    *out = (part){0};
    for (;;) {
        uint8_t *line_end = memmem(c->p, (size_t)(c->end - c->p), "\r\n", 2);
        if (!line_end)
            return malformed("ends inside the headers of a part", err);
        uint8_t *line = c->p;
        c->p = line_end + 2;
        if (line_end == line)
            break;
        sp_status status = read_header(line, (size_t)(line_end - line), out, err);
        if (status != SP_OK)
            return status;
    }
    if (!out->disposed)
        return malformed("a part has no Content-Disposition", err);
    out->data = c->p;
    /* The CRLF of the delimiter may be that of the headers' end, when the part is empty. */
    c->p -= 2;
    uint8_t *next = memmem(c->p, (size_t)(c->end - c->p), c->delimiter, c->delimiter_size);
    if (!next)
        return malformed("ends before its closing boundary", err);
    out->size = next > out->data ? (size_t)(next - out->data) : 0;
    c->p = next + c->delimiter_size;
    return SP_OK;
}

/* Behind a delimiter: *more says whether a part follows. */
static sp_status delimiter_end(cursor *c, bool *more, sp_error *err) {
    *more = false;
    if (c->end - c->p >= 2 && memcmp(c->p, "--", 2) == 0)
        return SP_OK;
    while (c->p < c->end && (*c->p == ' ' || *c->p == '\t'))
        c->p++;
    if (c->end - c->p < 2 || memcmp(c->p, "\r\n", 2) != 0)
        return malformed("a boundary is not followed by the end of its line", err);
    c->p += 2;
    *more = true;
    return SP_OK;
}

typedef struct found {
    part pictures[32];
    size_t count;
    bool batch, has_mask;
    part mask;
} found;

static sp_status take_parameter(job *j, const part *field, sp_error *err) {
    char value[128];
    if (!params_find(field->name)) {
        job_warn(j, "\"%.60s\": unknown part, ignored", field->name);
        return SP_OK;
    }
    if (field->size >= sizeof value || memchr(field->data, 0, field->size))
        return fail(err, SP_ERR_ARGUMENT, "%s: is not a value", field->name);
    memcpy(value, field->data, field->size);
    value[field->size] = '\0';
    return input_parameter(j, field->name, value, err);
}

static sp_status take_part(job *j, const part *p, found *f, const config_limits *limits, sp_error *err) {
    bool many = strcmp(p->name, "images") == 0;
    if (strcmp(p->name, "mask") == 0) {
        f->mask = *p;
        f->has_mask = true;
        return SP_OK;
    }
    if (strcmp(p->name, "image") != 0 && strcmp(p->name, "file") != 0 && !many)
        return take_parameter(j, p, err);
    f->batch = f->batch || many || f->count > 0;
    if ((double)f->count >= limits->max_batch || f->count == sizeof f->pictures / sizeof f->pictures[0])
        return fail(err, SP_ERR_LIMIT, "images: more than max_batch, %.0f", limits->max_batch);
    f->pictures[f->count++] = *p;
    return SP_OK;
}

static sp_status take_mask(job *j, const part *mask, const config_limits *limits, sp_error *err) {
    sp_params params = j->params;
    sp_error inner;
    params.max_pixels = (uint64_t)limits->max_pixels;
    params.exif = SP_EXIF_IGNORE;
    sp_status status = sp_image_decode(mask->data, mask->size, &params, &j->mask, NULL, &inner);
    if (status != SP_OK)
        return fail(err, status, "mask: %.480s", inner.text);
    j->mask_given = true;
    return SP_OK;
}

static sp_status read_parts(job *j, cursor *c, found *f, const config_limits *limits, sp_error *err) {
    bool more;
    unsigned parts = 0;
    sp_status status = delimiter_end(c, &more, err);
    while (status == SP_OK && more) {
        part p;
        if (parts++ >= limits->max_parts)
            return fail(err, SP_ERR_ARGUMENT, "body: multipart: more parts than max_parts, %.0f", limits->max_parts);
        status = read_part(c, &p, err);
        if (status == SP_OK)
            status = take_part(j, &p, f, limits, err);
        if (status == SP_OK)
            status = delimiter_end(c, &more, err);
    }
    return status;
}

sp_status input_multipart(job *j, const config_limits *limits, sp_error *err) {
    cursor c = {.p = j->body.data, .end = j->body.data + j->body.size};
    found f = {0};
    c.delimiter_size = (size_t)snprintf(c.delimiter, sizeof c.delimiter, "\r\n--%s", j->boundary);
    /* The first delimiter may stand at the very start, without its CRLF. */
    if (j->body.size >= c.delimiter_size - 2 && memcmp(c.p, c.delimiter + 2, c.delimiter_size - 2) == 0) {
        c.p += c.delimiter_size - 2;
    } else {
        uint8_t *first = memmem(c.p, j->body.size, c.delimiter, c.delimiter_size);
        if (!first)
            return malformed("does not hold its boundary", err);
        c.p = first + c.delimiter_size;
    }
    sp_status status = read_parts(j, &c, &f, limits, err);
    if (status != SP_OK)
        return status;
    if (f.count == 0)
        return fail(err, SP_ERR_ARGUMENT, "image: is missing");
    if (!job_pictures(j, f.count))
        return fail(err, SP_ERR_MEMORY, "out of memory");
    j->batch = f.batch;
    for (size_t i = 0; i < f.count; i++) {
        if (f.pictures[i].size == 0)
            return fail(err, SP_ERR_ARGUMENT, "%s: is empty", f.pictures[i].name);
        j->pictures[i].bytes = f.pictures[i].data;
        j->pictures[i].size = f.pictures[i].size;
    }
    return f.has_mask ? take_mask(j, &f.mask, limits, err) : SP_OK;
}
