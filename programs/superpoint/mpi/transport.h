/*
 * What the program needs of MPI. It lies in a library of its own, superpoint-mpi.so, which is loaded
 * when mpirun started the program: so the program runs where there is no MPI. Called by one thread.
 */
#ifndef SUPERPOINT_MPI_TRANSPORT_H
#define SUPERPOINT_MPI_TRANSPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SP_MPI_TRANSPORT_VERSION 2

typedef struct sp_mpi_message {
    int peer, kind;
    uint64_t round, first, last;
} sp_mpi_message;

typedef struct sp_mpi_transport {
    int version;
    bool (*start)(int *rank, int *size);
    void (*stop)(void);
    void (*broadcast)(void *bytes, size_t size); /* from rank 0 */
    void (*sum)(uint64_t *values, int count);    /* over all ranks, to all */
    void (*send)(const sp_mpi_message *message); /* returns at once */
    bool (*poll)(sp_mpi_message *message);       /* false: none has come */
    void (*abort)(int code);                     /* end all processes of the job, those that hang too */
} sp_mpi_transport;

/* The symbol to look up. */
#define SP_MPI_TRANSPORT_SYMBOL "sp_mpi_transport_get"
typedef const sp_mpi_transport *sp_mpi_transport_getter(void);

#endif
