#include "daemon.h"

#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "common/fail.h"
#include "common/input.h"
#include "http.h"

/* Of all that the library says only that it is going to refuse something matters, and with which status. */
static void on_library_message(void *context, const char *format, va_list args) {
    server *s = context;
    if (strstr(format, "HTTP response code is %u"))
        gate_refuse_for_library(s->gate, (int)va_arg(args, unsigned));
}

static void *session_of(const server *s, struct MHD_Connection *mhd) {
    const union MHD_ConnectionInfo *info =
        s->config.tls_certificate ? MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_GNUTLS_SESSION) : NULL;
    return info ? info->tls_session : NULL;
}

static void on_connection(void *context, struct MHD_Connection *mhd, void **socket_context,
                          enum MHD_ConnectionNotificationCode what) {
    server *s = context;
    if (what == MHD_CONNECTION_NOTIFY_STARTED) {
        const union MHD_ConnectionInfo *info = MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CONNECTION_FD);
        *socket_context = gate_opened(s->gate, info->connect_fd, session_of(s, mhd));
    } else if (*socket_context) {
        gate_closed(*socket_context);
        *socket_context = NULL;
    }
}

/* The library would unescape targets in its own way; target.c does it. */
static size_t leave_escaped(void *context, struct MHD_Connection *mhd, char *text) {
    (void)context;
    (void)mhd;
    return strlen(text);
}

static sp_status read_pem(const char *path, char **text, sp_error *err) {
    void *bytes;
    size_t size;
    sp_status status = sp_input_read(path, 1 << 20, &bytes, &size, err);
    *text = NULL;
    if (status != SP_OK)
        return status;
    *text = realloc(bytes, size + 1);
    if (!*text) {
        free(bytes);
        return fail(err, SP_ERR_MEMORY, "%s: out of memory", path);
    }
    (*text)[size] = '\0';
    return SP_OK;
}

static bool prepare_no_memory(server *s) {
    static const char text[] = "{\"detail\": \"out of memory\"}\n";
    s->no_memory = MHD_create_response_from_buffer(sizeof text - 1, (void *)(uintptr_t)text, MHD_RESPMEM_PERSISTENT);
    return s->no_memory && MHD_add_response_header(s->no_memory, "Content-Type", "application/json") == MHD_YES &&
           MHD_add_response_header(s->no_memory, "Retry-After", "1") == MHD_YES;
}

sp_status daemon_start(server *s, sp_error *err) {
    static char priorities[] = "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2";
    char *certificate = NULL, *key = NULL;
    sp_status status = SP_OK;
    if (s->config.tls_certificate) {
        status = read_pem(s->config.tls_certificate, &certificate, err);
        if (status == SP_OK)
            status = read_pem(s->config.tls_key, &key, err);
    }
    if (status == SP_OK && !prepare_no_memory(s))
        status = fail(err, SP_ERR_MEMORY, "out of memory");
    if (status == SP_OK) {
        /* The library's own limit of connections must never be reached: 0.9.75 then returns with its lock
         * held. The gate counts. */
        const unsigned never = INT_MAX;
        /* Room for the headers, the parsed form of the longest of them, and a piece of the body. */
        size_t memory = (size_t)s->config.limits.max_header_bytes * 2 + 65536;
        struct MHD_OptionItem tls[] = {{MHD_OPTION_HTTPS_MEM_CERT, 0, certificate},
                                       {MHD_OPTION_HTTPS_MEM_KEY, 0, key},
                                       {MHD_OPTION_HTTPS_PRIORITIES, 0, priorities},
                                       {MHD_OPTION_END, 0, NULL}};
        struct MHD_OptionItem none[] = {{MHD_OPTION_END, 0, NULL}};
        unsigned flags = MHD_USE_EPOLL_INTERNAL_THREAD | MHD_USE_ITC | MHD_USE_NO_LISTEN_SOCKET |
                         MHD_ALLOW_SUSPEND_RESUME | MHD_USE_TURBO | MHD_USE_ERROR_LOG |
                         (certificate ? MHD_USE_TLS : 0u);
        s->daemon = MHD_start_daemon(flags, 0, NULL, NULL, http_on_request, s, MHD_OPTION_EXTERNAL_LOGGER,
                                     on_library_message, s, MHD_OPTION_URI_LOG_CALLBACK, http_on_target, s,
                                     MHD_OPTION_NOTIFY_COMPLETED, http_on_completed, s, MHD_OPTION_NOTIFY_CONNECTION,
                                     on_connection, s, MHD_OPTION_UNESCAPE_CALLBACK, leave_escaped, NULL,
                                     MHD_OPTION_CONNECTION_MEMORY_LIMIT, memory, MHD_OPTION_CONNECTION_LIMIT, never,
                                     MHD_OPTION_ARRAY, certificate ? tls : none, MHD_OPTION_END);
        if (!s->daemon)
            status = fail(err, SP_ERR_IO,
                          certificate ? "cannot start HTTPS: the certificate or its key may be wrong"
                                      : "cannot start the HTTP library");
    }
    free(certificate);
    free(key);
    return status;
}

void daemon_add(server *s, int fd, const struct sockaddr *address, socklen_t size) {
    MHD_add_connection(s->daemon, fd, address, size);
}

void daemon_stop(server *s) {
    if (s->daemon)
        MHD_stop_daemon(s->daemon);
    if (s->no_memory)
        MHD_destroy_response(s->no_memory);
    s->daemon = NULL;
    s->no_memory = NULL;
}
