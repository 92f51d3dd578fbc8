#include "mpi/transport.h"

#include <mpi.h>
#include <stdlib.h>
#include <string.h>

enum { TAG = 7, FIELDS = 4 };

/* Messages under way: their memory is MPI's until it is done with them. */
typedef struct sending {
    struct sending *next;
    MPI_Request request;
    uint64_t fields[FIELDS];
} sending;

static sending *under_way;

static bool start(int *rank, int *size) {
    int provided;
    return MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &provided) == MPI_SUCCESS &&
           provided >= MPI_THREAD_FUNNELED && MPI_Comm_rank(MPI_COMM_WORLD, rank) == MPI_SUCCESS &&
           MPI_Comm_size(MPI_COMM_WORLD, size) == MPI_SUCCESS;
}

static void sweep(bool wait) {
    for (sending **at = &under_way; *at;) {
        sending *s = *at;
        int done = 0;
        if (wait)
            done = MPI_Wait(&s->request, MPI_STATUS_IGNORE) == MPI_SUCCESS;
        else
            MPI_Test(&s->request, &done, MPI_STATUS_IGNORE);
        if (done || wait) {
            *at = s->next;
            free(s);
        } else {
            at = &s->next;
        }
    }
}

static void stop(void) {
    sweep(true);
    MPI_Finalize();
}

static void broadcast(void *bytes, size_t size) {
    MPI_Bcast(bytes, (int)size, MPI_BYTE, 0, MPI_COMM_WORLD);
}

static void sum(uint64_t *values, int count) {
    MPI_Allreduce(MPI_IN_PLACE, values, count, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
}

static void send_message(const sp_mpi_message *m) {
    sending *s = malloc(sizeof *s);
    if (!s)
        MPI_Abort(MPI_COMM_WORLD, 1); /* a peer would wait for ever */
    s->fields[0] = (uint64_t)m->kind;
    s->fields[1] = m->round;
    s->fields[2] = m->first;
    s->fields[3] = m->last;
    MPI_Isend(s->fields, FIELDS, MPI_UINT64_T, m->peer, TAG, MPI_COMM_WORLD, &s->request);
    s->next = under_way;
    under_way = s;
}

static bool poll_message(sp_mpi_message *m) {
    int there = 0;
    uint64_t fields[FIELDS];
    MPI_Status status;
    sweep(false);
    if (MPI_Iprobe(MPI_ANY_SOURCE, TAG, MPI_COMM_WORLD, &there, &status) != MPI_SUCCESS || !there)
        return false;
    MPI_Recv(fields, FIELDS, MPI_UINT64_T, status.MPI_SOURCE, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    *m = (sp_mpi_message){status.MPI_SOURCE, (int)fields[0], fields[1], fields[2], fields[3]};
    return true;
}

static void abort_all(int code) {
    MPI_Abort(MPI_COMM_WORLD, code);
}

sp_mpi_transport_getter sp_mpi_transport_get;

const sp_mpi_transport *sp_mpi_transport_get(void) {
    static const sp_mpi_transport transport = {
        SP_MPI_TRANSPORT_VERSION, start, stop, broadcast, sum, send_message, poll_message, abort_all};
    return &transport;
}
