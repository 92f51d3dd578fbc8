/*
 * The journal: what makes an extraction resumable.
 *
 * While OUTPUT is being made there is a folder OUTPUT.partial. Every finished picture is appended to
 * a journal in it, with a checksum, in one write. A process that is killed leaves at most one record
 * cut short, which the next run cuts off. When all pictures are there, the output is written from the
 * journals in the order of the list, moved to its place, and the folder is removed. So the output
 * depends on the list and the features alone, not on the order of work or on where it was interrupted.
 *
 * Each process writes a journal of its own (`journal-0`, `journal-1`, ...) and reads all of them.
 */
#ifndef SUPERPOINT_EXTRACT_JOURNAL_H
#define SUPERPOINT_EXTRACT_JOURNAL_H

#include <sys/types.h>

#include "common/buffer.h"
#include "output/record.h"

typedef struct journal journal;

/* Where a record is. */
typedef struct place {
    uint32_t file; /* number of the journal */
    off_t offset;
    size_t size;
} place;

/* Called for each whole record that was found; its pointers end with the call. */
typedef sp_status journal_found(void *context, const record *r, place where, sp_error *err);

/* Make the folder and take its lock, or fail when another process holds it. Returns a descriptor to
 * close at the end, and the folder's path (the caller frees it). */
sp_status journal_lock(const char *output, char **folder, int *lock, sp_error *err);

/*
 * Read every journal in `folder`, cutting off what is not whole, and open number `own` for writing.
 * A journal with another identity than `identity` is an error that says what differs.
 */
sp_status journal_open(const char *folder, uint32_t own, const char *identity, journal **j, sp_error *err);
sp_status journal_scan(journal *j, journal_found *found, void *context, sp_error *err);

/* Append one record, whole or not at all. */
sp_status journal_append(journal *j, const record *r, place *where, sp_error *err);

/* Read one back; its pointers stay valid until `memory` is changed. */
sp_status journal_read(journal *j, place where, buffer *memory, record *r, sp_error *err);

void journal_close(journal *j);

/* Remove all journals and the folder. */
void journal_remove(const char *folder);

#endif
