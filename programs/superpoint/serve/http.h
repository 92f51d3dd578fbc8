/* Requests and answers on top of libmicrohttpd. */
#ifndef SP_SERVE_HTTP_H
#define SP_SERVE_HTTP_H

#include "server.h"

typedef struct route route;

typedef struct request {
    server *server;
    gate_connection *connection;
    struct MHD_Connection *mhd;
    const route *route;
    enum { REQUEST_NEW, REQUEST_READING, REQUEST_WAITING, REQUEST_REFUSED, REQUEST_ANSWERED } stage;
    char *target;      /* as sent, for the log */
    char *path_memory; /* a copy that is taken apart */
    char *path, *query;
    char id[80];
    char method[16];
    bool http_1_0, chunked;
    bool ends; /* the connection, with the answer */
    job *job;  /* of routes that run the network; NULL else */
    size_t head_bytes, body_bytes;
    double started_ms;
    int status;
    size_t sent_bytes;
    unsigned retry_s;
    sp_error error; /* why the pipeline refused it */
} request;

/* One path of the service. */
struct route {
    const char *path;
    const char *methods; /* for Allow */
    bool open;           /* needs no token */
    bool always;         /* is answered while starting */
    /* Answers a request without a body, or NULL for those that run the network. */
    enum MHD_Result (*answer)(request *r);
    body_kind kind; /* BODY_KSERVE, or what Content-Type says */
};

/* The route of a path; the last, with path NULL, stands for all others. */
const route *route_find(const char *path);
const char *route_name(unsigned index);
unsigned route_index(const route *r);

/* Answers. A buffer's memory is taken over. */
enum MHD_Result http_answer(request *r, int status, const char *type, buffer *body);
enum MHD_Result http_answer_static(request *r, int status, const char *type, const void *bytes, size_t size);
enum MHD_Result http_error(request *r, int status, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* A header's value, or NULL. */
const char *http_header(request *r, const char *name);

/* Callbacks of libmicrohttpd: the line of a request has come, the request goes on, and is over. */
void *http_on_target(void *context, const char *target, struct MHD_Connection *mhd);
enum MHD_Result http_on_request(void *context, struct MHD_Connection *mhd, const char *url, const char *method,
                                const char *version, const char *upload, size_t *upload_size, void **state);
void http_on_completed(void *context, struct MHD_Connection *mhd, void **state, enum MHD_RequestTerminationCode why);

/* Decides from the headers whether a body is wanted, and makes the job for it. MHD_YES with r->status 0 to
 * go on, or what an error answer returned. In predict.c. */
enum MHD_Result predict_begin(request *r);

#endif
