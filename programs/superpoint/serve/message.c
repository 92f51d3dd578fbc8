#include "message.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>

#include "common/clock.h"

typedef struct header_count {
    unsigned all, content_length, transfer_encoding, host;
    bool bad_name, bad_value, folded;
    const char *last_end; /* behind the last value */
} header_count;

/*
 * libmicrohttpd up to 0.9.75 takes a line that begins with a colon for the end of the headers, and adds what stands
 * on a folded line to the header's name. Both show in where its strings lie: they are in the buffer that was read,
 * in order. The last value then has more than two line ends behind it, and a name that grew has been moved.
 */
static const char last_that_reads_amiss[] = "0.9.75";

/* RFC 9110's token. */
static bool is_token(const char *text) {
    if (!*text)
        return false;
    for (; *text; text++)
        if (!isalnum((unsigned char)*text) && !strchr("!#$%&'*+-.^_`|~", *text))
            return false;
    return true;
}

static enum MHD_Result count_header(void *context, enum MHD_ValueKind kind, const char *name, const char *value) {
    header_count *n = context;
    (void)kind;
    n->all++;
    n->content_length += strcasecmp(name, "Content-Length") == 0;
    n->transfer_encoding += strcasecmp(name, "Transfer-Encoding") == 0;
    n->host += strcasecmp(name, "Host") == 0;
    n->bad_name |= !is_token(name);
    n->folded |= (uintptr_t)name > (uintptr_t)value;
    n->last_end = value ? value + strlen(value) : NULL;
    for (const unsigned char *p = (const unsigned char *)value; p && *p; p++)
        n->bad_value |= (*p < 0x20 && *p != '\t') || *p == 0x7f;
    return MHD_YES;
}

void message_take_id(request *r) {
    const char *given = http_header(r, "X-Request-Id");
    size_t length = given ? strlen(given) : 0;
    bool usable = length > 0 && length < sizeof r->id;
    for (size_t i = 0; usable && i < length; i++)
        usable = isalnum((unsigned char)given[i]) || strchr("-_.:/+=", given[i]);
    if (usable) {
        memcpy(r->id, given, length + 1);
        return;
    }
    uint64_t random = 0;
    if (getrandom(&random, sizeof random, GRND_NONBLOCK) != sizeof random)
        random = (uint64_t)(uintptr_t)r ^ (uint64_t)(now_ms() * 1e6);
    snprintf(r->id, sizeof r->id, "%016llx", (unsigned long long)random);
}

static bool read_amiss(const header_count *n, const char *method, size_t head_bytes) {
    if (strverscmp(MHD_get_version(), last_that_reads_amiss) > 0 || !n->last_end || !head_bytes)
        return false;
    return n->folded || (uintptr_t)method + head_bytes - (uintptr_t)n->last_end > strlen("\r\n\r\n");
}

int message_check(request *r, const char *method, const char *version, const char **what) {
    const config_limits *l = &r->server->config.limits;
    header_count n = {0};
    MHD_get_connection_values(r->mhd, MHD_HEADER_KIND, count_header, &n);
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(r->mhd, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
    const char *coding = http_header(r, "Transfer-Encoding"), *expect = http_header(r, "Expect");
    r->head_bytes = info ? info->header_size : 0;
    r->chunked = n.transfer_encoding > 0;
    if ((double)strlen(r->target) > l->max_target_bytes)
        return *what = "the request target is longer than max_target_bytes", 414;
    if ((double)r->head_bytes > l->max_header_bytes)
        return *what = "the headers are longer than max_header_bytes", 431;
    if ((double)n.all > l->max_headers)
        return *what = "there are more headers than max_headers", 431;
    if (read_amiss(&n, method, r->head_bytes))
        return *what = "a header has no name, or goes on in the next line", 400;
    if (n.bad_name)
        return *what = "a header's name holds what a name cannot hold", 400;
    if (n.bad_value)
        return *what = "a header's value holds a control character", 400;
    if (n.content_length > 1 || n.transfer_encoding > 1)
        return *what = "Content-Length or Transfer-Encoding is given twice", 400;
    if (n.content_length && n.transfer_encoding)
        return *what = "Content-Length and Transfer-Encoding contradict each other", 400;
    if (coding && (r->http_1_0 || strcasecmp(coding, "chunked") != 0))
        return *what = "Transfer-Encoding must be chunked, in HTTP/1.1", 400;
    if (n.host > 1 || (n.host == 0 && !r->http_1_0 && strcmp(version, "HTTP/1.1") == 0))
        return *what = "there must be one Host header", 400;
    if (expect && !r->http_1_0 && strcasecmp(expect, "100-continue") != 0)
        return *what = "Expect: only 100-continue is known", 417;
    return 0;
}

bool message_has_body(request *r) {
    return http_header(r, "Transfer-Encoding") || http_header(r, "Content-Length");
}

bool message_ends_connection(request *r) {
    const char *connection = http_header(r, "Connection");
    return r->http_1_0 || (connection && strcasestr(connection, "close"));
}
