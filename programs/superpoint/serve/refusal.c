#include "refusal.h"

#include <gnutls/gnutls.h>
#include <stdio.h>
#include <sys/socket.h>

static const char *reason_of(int status) {
    switch (status) {
    case 400:
        return "Bad Request";
    case 408:
        return "Request Timeout";
    case 413:
        return "Content Too Large";
    case 414:
        return "URI Too Long";
    case 431:
        return "Request Header Fields Too Large";
    case 503:
        return "Service Unavailable";
    case 505:
        return "HTTP Version Not Supported";
    default:
        return "Error";
    }
}

void refusal_send(int fd, void *tls_session, int status, const char *text) {
    char body[256], answer[640];
    int length = snprintf(body, sizeof body, "{\"detail\": \"%.200s\"}\n", text);
    int size = snprintf(answer, sizeof answer,
                        "HTTP/1.1 %d %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n%s"
                        "Connection: close\r\n\r\n%s",
                        status, reason_of(status), length, status == 503 ? "Retry-After: 1\r\n" : "", body);
    /* The socket is new, or between answers, so its buffer has room for this. */
    ssize_t sent = tls_session ? gnutls_record_send(tls_session, answer, (size_t)size)
                               : send(fd, answer, (size_t)size, MSG_NOSIGNAL | MSG_DONTWAIT);
    (void)sent;
}
