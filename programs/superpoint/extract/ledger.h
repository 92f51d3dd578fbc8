/* What has become of each picture of the list, and the output that is written from it in order. */
#ifndef SUPERPOINT_EXTRACT_LEDGER_H
#define SUPERPOINT_EXTRACT_LEDGER_H

#include <pthread.h>

#include "extract/inputs.h"
#include "extract/journal.h"
#include "output/output.h"

typedef enum fate { FATE_OPEN, FATE_DONE, FATE_FAILED } fate;

typedef struct ledger {
    const input_list *inputs;
    journal *journal;
    fate *fates;
    place *places;
    size_t done, failed;
    bool ended; /* no more will be noted */
    pthread_mutex_t mutex;
    pthread_cond_t changed;
} ledger;

sp_status ledger_init(ledger *l, const input_list *inputs, journal *j, sp_error *err);
void ledger_free(ledger *l);

/* Take in what the journals hold: pictures of the list whose files have not changed since. */
sp_status ledger_scan(ledger *l, sp_error *err);

bool ledger_is_open(ledger *l, size_t index);
void ledger_note(ledger *l, size_t index, fate f, place where);
void ledger_end(ledger *l);

/*
 * Add every picture that is done to `w`, in order, waiting for those still open until ledger_end.
 * *complete: none was left open.
 */
sp_status ledger_write(ledger *l, const output_format *format, writer *w, bool *complete, sp_error *err);

#endif
