#include "extract/ledger.h"

#include <search.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/fail.h"

sp_status ledger_init(ledger *l, const input_list *inputs, journal *j, sp_error *err) {
    *l = (ledger){.inputs = inputs, .journal = j};
    pthread_mutex_init(&l->mutex, NULL);
    pthread_cond_init(&l->changed, NULL);
    l->fates = calloc(inputs->count, sizeof *l->fates);
    l->places = calloc(inputs->count, sizeof *l->places);
    return l->fates && l->places ? SP_OK : fail(err, SP_ERR_MEMORY, "list of pictures: out of memory");
}

void ledger_free(ledger *l) {
    free(l->fates);
    free(l->places);
    pthread_cond_destroy(&l->changed);
    pthread_mutex_destroy(&l->mutex);
}

typedef struct scan {
    ledger *ledger;
    struct hsearch_data names;
} scan;

static bool unchanged(const char *path, const record *r) {
    struct stat st;
    return stat(path, &st) == 0 && (uint64_t)st.st_size == r->file_size &&
           (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec == r->file_time;
}

/* The later record of a name counts: it was made because the file had changed. */
static sp_status take_record(void *context, const record *r, place where, sp_error *err) {
    scan *s = context;
    ledger *l = s->ledger;
    ENTRY *found, entry = {.key = (char *)r->name};
    (void)err;
    if (!hsearch_r(entry, FIND, &found, &s->names))
        return SP_OK;
    const size_t index = (size_t)((input *)found->data - l->inputs->items);
    if (unchanged(l->inputs->items[index].path, r))
        ledger_note(l, index, FATE_DONE, where);
    return SP_OK;
}

sp_status ledger_scan(ledger *l, sp_error *err) {
    scan s = {.ledger = l};
    if (!hcreate_r(2 * l->inputs->count, &s.names))
        return fail(err, SP_ERR_MEMORY, "list of pictures: out of memory");
    for (size_t i = 0; i < l->inputs->count; i++) {
        ENTRY *entered, entry = {l->inputs->items[i].name, &l->inputs->items[i]};
        hsearch_r(entry, ENTER, &entered, &s.names);
    }
    sp_status status = journal_scan(l->journal, take_record, &s, err);
    hdestroy_r(&s.names);
    return status;
}

void ledger_note(ledger *l, size_t index, fate f, place where) {
    pthread_mutex_lock(&l->mutex);
    l->done += (f == FATE_DONE) - (size_t)(l->fates[index] == FATE_DONE);
    l->failed += (f == FATE_FAILED) - (size_t)(l->fates[index] == FATE_FAILED);
    l->fates[index] = f;
    l->places[index] = where;
    pthread_cond_broadcast(&l->changed);
    pthread_mutex_unlock(&l->mutex);
}

bool ledger_is_open(ledger *l, size_t index) {
    pthread_mutex_lock(&l->mutex);
    const bool open = l->fates[index] == FATE_OPEN;
    pthread_mutex_unlock(&l->mutex);
    return open;
}

void ledger_end(ledger *l) {
    pthread_mutex_lock(&l->mutex);
    l->ended = true;
    pthread_cond_broadcast(&l->changed);
    pthread_mutex_unlock(&l->mutex);
}

static fate wait_for(ledger *l, size_t index, place *where) {
    pthread_mutex_lock(&l->mutex);
    while (l->fates[index] == FATE_OPEN && !l->ended)
        pthread_cond_wait(&l->changed, &l->mutex);
    const fate f = l->fates[index];
    *where = l->places[index];
    pthread_mutex_unlock(&l->mutex);
    return f;
}

sp_status ledger_write(ledger *l, const output_format *format, writer *w, bool *complete, sp_error *err) {
    buffer memory = {0};
    sp_status status = SP_OK;
    *complete = true;
    for (size_t i = 0; status == SP_OK && i < l->inputs->count && *complete; i++) {
        place where;
        record r;
        const fate f = wait_for(l, i, &where);
        *complete = f != FATE_OPEN;
        if (f != FATE_DONE)
            continue;
        status = journal_read(l->journal, where, &memory, &r, err);
        if (status == SP_OK)
            status = format->add(w, &r, err);
    }
    buffer_free(&memory);
    return status;
}
