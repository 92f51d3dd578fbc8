#include "extract/extract.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "command.h"
#include "common/fail.h"
#include "extract/group.h"
#include "extract/identity.h"
#include "extract/interrupt.h"
#include "extract/ledger.h"
#include "extract/pipeline.h"
#include "extract/place.h"
#include "extract/progress.h"
#include "extract/work.h"

#define PLURAL(count) ((count) == 1 ? "" : "s")

typedef struct extraction {
    const extraction_options *o;
    group *group; /* the processes that share the work; NULL when alone */
    input_list inputs;
    sp_model *model;
    sp_engine *engine;
    char *identity;
    char *folder; /* of journals */
    int lock;
    journal *journal;
    ledger ledger;
    bool ledger_made;
    size_t *pending; /* indices still to be done */
    size_t pending_count;
    work work;
    progress *progress;
    size_t done_here; /* pictures, by this process */
    bool interrupted;
    int exit_code;
} extraction;

/* ------------------------------------------------------------------ the pipeline's events ----- */

static bool next_picture(void *context, size_t *index) {
    extraction *x = context;
    for (size_t item;;) {
        if (interrupt_asked()) {
            x->interrupted = true;
            work_stop(&x->work);
        }
        if (!work_take(&x->work, &item))
            return false;
        *index = x->pending[item];
        if (ledger_is_open(&x->ledger, *index))
            return true;
        work_finish(&x->work, true); /* done in an earlier round, by whomever */
    }
}

static sp_status picture_done(void *context, size_t index, const record *r, sp_error *err) {
    extraction *x = context;
    place where;
    sp_status status = journal_append(x->journal, r, &where, err);
    if (status != SP_OK)
        return status;
    ledger_note(&x->ledger, index, FATE_DONE, where);
    work_finish(&x->work, true);
    x->done_here++;
    progress_add(x->progress, 1, 0);
    return SP_OK;
}

static void picture_bad(void *context, size_t index, const sp_error *err) {
    extraction *x = context;
    progress_say(x->progress, "%s: %s", x->inputs.items[index].path, err->text);
    ledger_note(&x->ledger, index, FATE_FAILED, (place){0});
    work_finish(&x->work, false);
    progress_add(x->progress, 0, 1);
    if (x->o->fail_fast)
        work_stop(&x->work);
}

/* ------------------------------------------------------------------ steps -------------------- */

/* Whether the output is there already; *same: made by these settings from these pictures. */
static sp_status look_at_output(extraction *x, bool *finished, size_t *failed, sp_error *err) {
    const char *output = x->o->output;
    char *there = NULL;
    bool same = false;
    struct stat st;
    *finished = false;
    if (stat(output, &st) != 0)
        return SP_OK;
    if (S_ISDIR(st.st_mode) != x->o->format->folder)
        return fail(err, SP_ERR_ARGUMENT, "%.300s: is there already and is %s", output,
                    S_ISDIR(st.st_mode) ? "a folder" : "no folder");
    sp_status status = x->o->format->identity(output, &there, err);
    if (x->o->overwrite && (status == SP_OK || !S_ISDIR(st.st_mode))) {
        free(there);
        return SP_OK;
    }
    if (x->o->overwrite) /* a folder is replaced with all that is in it: only when we made it */
        return fail(err, SP_ERR_ARGUMENT, "%.300s: is a folder that this program did not make; it is not replaced",
                    output);
    if (status != SP_OK)
        return fail(err, SP_ERR_ARGUMENT, "%.300s: is there already; --overwrite replaces it", output);
    status = identity_compare(output, there, x->identity, err);
    if (status == SP_OK && identity_pictures(there, &x->inputs, &same, failed) && same)
        *finished = true;
    else if (status == SP_OK)
        status =
            fail(err, SP_ERR_ARGUMENT, "%.300s: is there already, of other pictures; --overwrite replaces it", output);
    free(there);
    return status;
}

static sp_status open_journal(extraction *x, sp_error *err) {
    sp_status status = journal_open(x->folder, group_rank(x->group), x->identity, &x->journal, err);
    if (status == SP_OK) {
        status = ledger_init(&x->ledger, &x->inputs, x->journal, err);
        x->ledger_made = true;
    }
    return status == SP_OK ? ledger_scan(&x->ledger, err) : status;
}

/* Take in what the others have written since. */
static sp_status read_journals_again(extraction *x, sp_error *err) {
    journal_close(x->journal);
    x->journal = NULL;
    sp_status status = journal_open(x->folder, group_rank(x->group), x->identity, &x->journal, err);
    x->ledger.journal = x->journal;
    return status == SP_OK ? ledger_scan(&x->ledger, err) : status;
}

static void close_journal(extraction *x) {
    if (x->ledger_made)
        ledger_free(&x->ledger);
    x->ledger_made = false;
    journal_close(x->journal);
    x->journal = NULL;
}

static sp_status find_pending(extraction *x, sp_error *err) {
    x->pending = malloc(x->inputs.count * sizeof *x->pending);
    if (!x->pending)
        return fail(err, SP_ERR_MEMORY, "list of pictures: out of memory");
    for (size_t i = 0; i < x->inputs.count; i++)
        if (x->ledger.fates[i] == FATE_OPEN)
            x->pending[x->pending_count++] = i;
    return SP_OK;
}

typedef struct writing {
    extraction *x;
    writer *writer;
    bool complete;
    sp_status status;
    sp_error err;
} writing;

static void *writing_main(void *context) {
    writing *w = context;
    w->status = ledger_write(&w->x->ledger, w->x->o->format, w->writer, &w->complete, &w->err);
    return NULL;
}

/* The output depends on how many pictures failed, which is known only at the end: so its identity is
 * written as if none did, and it is written again when some did. */
static sp_status begin_output(extraction *x, size_t failed, char path[PATH_MAX], writer **w, sp_error *err) {
    snprintf(path, PATH_MAX, "%s/output", x->folder);
    place_remove(path);
    char *identity = identity_with_pictures(x->identity, &x->inputs, failed);
    if (!identity)
        return fail(err, SP_ERR_MEMORY, "out of memory");
    sp_status status = x->o->format->create(path, identity, &x->o->camera, w, err);
    free(identity);
    return status;
}

static sp_status run_pipeline(extraction *x, sp_error *err) {
    const pipeline p = {.engine = x->engine,
                        .inputs = &x->inputs,
                        .params = &x->o->params,
                        .decoders = x->o->decoders ? x->o->decoders : (uint32_t)sysconf(_SC_NPROCESSORS_ONLN),
                        .context = x,
                        .next = next_picture,
                        .done = picture_done,
                        .bad = picture_bad};
    return group_run(x->group, &x->work, &p, x->o->peer_timeout, err);
}

/* Finish the output from the journals and move it to its place. */
static sp_status finish_output(extraction *x, writer *w, const char *path, sp_error *err) {
    sp_status status = x->o->format->close(w, err);
    if (status == SP_OK)
        status = place_move(path, x->o->output, err);
    if (status == SP_OK)
        journal_remove(x->folder);
    return status;
}

/* Alone: the output is written while the pictures are done. */
static sp_status extract_alone(extraction *x, bool *complete, sp_error *err) {
    char path[PATH_MAX];
    writing w = {.x = x};
    pthread_t thread;
    sp_status status = begin_output(x, 0, path, &w.writer, err);
    if (status != SP_OK)
        return status;
    if (pthread_create(&thread, NULL, writing_main, &w) != 0) {
        x->o->format->abandon(w.writer);
        return fail(err, SP_ERR_MEMORY, "threads could not be started");
    }
    status = run_pipeline(x, err);
    ledger_end(&x->ledger);
    pthread_join(thread, NULL);
    *complete = status == SP_OK && w.complete;
    if (status == SP_OK && w.status != SP_OK) {
        *err = w.err;
        status = w.status;
    }
    if (status != SP_OK || !*complete || x->ledger.failed > 0) {
        x->o->format->abandon(w.writer);
        place_remove(path);
        return status;
    }
    return finish_output(x, w.writer, path, err);
}

/* From the journals alone, when all that could be done is done. */
static sp_status write_output(extraction *x, sp_error *err) {
    char path[PATH_MAX];
    writer *w;
    bool complete;
    sp_status status = begin_output(x, x->ledger.failed, path, &w, err);
    if (status != SP_OK)
        return status;
    ledger_end(&x->ledger);
    status = ledger_write(&x->ledger, x->o->format, w, &complete, err);
    if (status == SP_OK)
        return finish_output(x, w, path, err);
    x->o->format->abandon(w);
    place_remove(path);
    return status;
}

/* A round, and more while processes were given up in it: the rest do what those left open. */
static sp_status run_rounds(extraction *x, sp_error *err) {
    for (uint32_t lost = 0;;) {
        sp_status status = run_pipeline(x, err);
        if (status != SP_OK || group_lost_count(x->group) == lost || group_is_lost(x->group, group_rank(x->group)) ||
            work_counts(&x->work).stopped)
            return status;
        lost = group_lost_count(x->group);
        if (group_leads(x->group))
            progress_say(x->progress, "%u of %u processes finished nothing for %g s; the others do their pictures",
                         lost, group_size(x->group), x->o->peer_timeout);
        status = read_journals_again(x, err);
        if (status != SP_OK)
            return status;
        const group_range mine = group_divide(x->group, x->pending_count);
        work_refill(&x->work, mine.first, mine.last);
    }
}

/* Several processes: when all have ended, the first of them writes the output from all journals. */
static sp_status extract_shared(extraction *x, bool *complete, sp_error *err) {
    *complete = false;
    sp_status status = run_rounds(x, err);
    if (!x->o->quiet)
        progress_say(x->progress, "process %u of %u: %zu picture%s", group_rank(x->group) + 1, group_size(x->group),
                     x->done_here + x->ledger.failed, PLURAL(x->done_here + x->ledger.failed));
    const group_sum sum = group_total(x->group);
    if (status != SP_OK || !group_leads(x->group) || sum.broken)
        return status;
    status = read_journals_again(x, err);
    if (status != SP_OK)
        return status;
    const size_t missing = x->inputs.count - x->ledger.done;
    *complete = missing <= sum.failed && !sum.stopped; /* more are missing when a file has changed meanwhile */
    for (size_t i = 0; *complete && i < x->inputs.count; i++)
        if (x->ledger.fates[i] == FATE_OPEN)
            x->ledger.fates[i] = FATE_FAILED;
    x->ledger.failed = *complete ? missing : sum.failed;
    return *complete ? write_output(x, err) : SP_OK;
}

/* ------------------------------------------------------------------ the whole ---------------- */

static sp_status prepare(extraction *x, bool *finished, sp_error *err) {
    sp_status status = inputs_collect(&x->o->inputs, &x->inputs, err);
    if (status == SP_OK)
        status = sp_setup_open(&x->o->setup, &x->model, &x->engine, err);
    if (status == SP_OK) {
        x->identity = identity_text(x->model, x->engine, &x->o->params);
        status = x->identity ? SP_OK : fail(err, SP_ERR_MEMORY, "out of memory");
    }
    size_t failed = 0;
    if (status == SP_OK)
        status = look_at_output(x, finished, &failed, err);
    if (status == SP_OK && *finished && group_rank(x->group) == 0) {
        fprintf(stderr, "%s: %s: is complete already: %zu picture%s%s\n", x->o->program, x->o->output, x->inputs.count,
                PLURAL(x->inputs.count), failed ? ", of which some could not be read; --overwrite tries again" : "");
        x->exit_code = failed ? EXIT_FAILED : EXIT_OK;
    }
    return status;
}

static sp_status begin(extraction *x, sp_error *err) {
    sp_status status = SP_OK;
    if (group_rank(x->group) == 0)
        status = journal_lock(x->o->output, &x->folder, &x->lock, err);
    if (status == SP_OK && group_rank(x->group) == 0 && x->o->restart) {
        journal_remove(x->folder);
        close(x->lock);
        free(x->folder);
        status = journal_lock(x->o->output, &x->folder, &x->lock, err);
    }
    status = group_share_path(x->group, status, &x->folder, err);
    if (status == SP_OK)
        status = open_journal(x, err);
    if (status == SP_OK)
        status = find_pending(x, err);
    return group_agree(x->group, status, err);
}

static void report(extraction *x, bool complete, double seconds, size_t before) {
    const size_t now = x->ledger.done + x->ledger.failed - before;
    const char *program = x->o->program;
    if (complete)
        fprintf(stderr, "%s: %zu picture%s, %zu failed, %.1f s", program, x->inputs.count, PLURAL(x->inputs.count),
                x->ledger.failed, seconds);
    else
        fprintf(stderr, "%s: stopped after %zu of %zu picture%s, %zu failed", program, before + now, x->inputs.count,
                PLURAL(x->inputs.count), x->ledger.failed);
    if (complete && now > 0 && seconds > 0)
        fprintf(stderr, ", %.1f/s", (double)now / seconds);
    fprintf(stderr, complete ? ": %s\n" : "; the same command goes on from there\n", x->o->output);
}

static sp_status extract(extraction *x, sp_error *err) {
    sp_status status = begin(x, err);
    if (status != SP_OK)
        return status;
    const size_t before = x->ledger.done;
    const group_range mine = group_divide(x->group, x->pending_count);
    work_init(&x->work, mine.first, mine.last, x->group != NULL);
    x->progress = progress_start(x->o->program, "pictures", x->group ? mine.last - mine.first : x->inputs.count,
                                 x->group ? 0 : before, x->o->quiet || group_rank(x->group) != 0);
    if (!x->progress)
        return fail(err, SP_ERR_MEMORY, "out of memory");
    if (before && group_rank(x->group) == 0 && !x->o->quiet)
        progress_say(x->progress, "going on after %zu picture%s of an earlier run", before, PLURAL(before));
    bool complete = false;
    status = x->group ? extract_shared(x, &complete, err) : extract_alone(x, &complete, err);
    /* fail-fast and signals leave the rest open; failures alone do not */
    if (status == SP_OK && !x->group && complete && x->ledger.failed > 0)
        status = write_output(x, err);
    const double seconds = progress_stop(x->progress);
    if (status == SP_OK && group_leads(x->group) && !(x->o->quiet && complete))
        report(x, complete, seconds, before);
    const bool well = complete && x->ledger.failed == 0 && group_lost_count(x->group) == 0;
    if (x->interrupted)
        x->exit_code = EXIT_INTERRUPTED;
    else /* of several processes the first one's counts */
        x->exit_code = well || !group_leads(x->group) ? EXIT_OK : EXIT_FAILED;
    work_free(&x->work);
    return status;
}

static void release(extraction *x) {
    close_journal(x);
    free(x->pending);
    if (x->lock >= 0)
        close(x->lock);
    free(x->folder);
    free(x->identity);
    sp_engine_free(x->engine);
    sp_model_free(x->model);
    inputs_free(&x->inputs);
    group_leave(x->group, x->exit_code);
}

int extraction_run(const extraction_options *o) {
    extraction x = {.o = o, .lock = -1};
    sp_error err = {0};
    bool finished = false;
    interrupt_catch();
    sp_status status = group_join(&x.group, &err);
    if (status == SP_OK)
        status = group_agree(x.group, prepare(&x, &finished, &err), &err);
    if (status == SP_OK && !finished)
        status = extract(&x, &err);
    if (status != SP_OK) {
        if (err.text[0])
            fprintf(stderr, "%s: %s\n", o->program, err.text);
        x.exit_code = sp_status_exit(status);
        if (group_rank(x.group) != 0 && !err.text[0])
            x.exit_code = EXIT_OK; /* the one that failed says it */
    }
    release(&x);
    return x.exit_code;
}
