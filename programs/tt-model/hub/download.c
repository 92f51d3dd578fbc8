#include "download.h"

#include "base/fs.h"
#include "base/hash.h"
#include "base/paths.h"
#include "base/ui.h"
#include "cache.h"
#include "fetch.h"
#include "parts.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Files above two segments are fetched in segments, several at once. The size is fixed (it can be set
 * for tests), so that parts that an earlier run left behind fit. */
enum {
    DEFAULT_JOBS = 8,
    MAX_JOBS = 64,
    DEFAULT_SEGMENT = 64 << 20,
    MIN_SEGMENT = 4096,
    MAX_SEGMENT = 1 << 30,
    /* Beyond what is fetched, the disk keeps this much. */
    SPACE_RESERVE = 64 << 20,
};

typedef struct file_job {
    const tm_hub_file *file;
    char *etag, *blob, *incomplete;
    int64_t size;
    tm_lock lock;
    atomic_int open_segments;
    bool retried; /* its digest was wrong once already */
} file_job;

/* A piece of work: a whole file to be planned, or one range of it to be fetched. */
typedef struct task {
    file_job *job;
    int64_t begin, end; /* of the range; begin < 0: plan the file */
    bool to_prefix;     /* the range continues <etag>.incomplete, else it has a file of its own */
} task;

typedef struct pool {
    tm_hub *hub;
    const tm_hub_repo *repo;
    int64_t segment;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    task *tasks;
    size_t count, cap, running;
    atomic_bool stop;
    atomic_ullong done, fetched, resumed;
    atomic_bool waiting, waiting_told;
    tm_error error;
} pool;

const char *tm_file_etag(const tm_hub_file *f) {
    return f->sha256 ? f->sha256 : f->blob_id;
}

static void push(pool *p, task t) {
    pthread_mutex_lock(&p->mutex);
    if (p->count == p->cap) {
        p->cap = p->cap ? p->cap * 2 : 64;
        p->tasks = tm_realloc(p->tasks, p->cap, sizeof *p->tasks);
    }
    p->tasks[p->count++] = t;
    pthread_cond_signal(&p->changed);
    pthread_mutex_unlock(&p->mutex);
}

static void fail(pool *p, const tm_error *e) {
    pthread_mutex_lock(&p->mutex);
    if (!atomic_exchange(&p->stop, true))
        p->error = *e;
    pthread_cond_broadcast(&p->changed);
    pthread_mutex_unlock(&p->mutex);
}

static bool stopped(void *arg) {
    pool *p = arg;
    return atomic_load(&p->stop) || tm_interrupted();
}

static void on_lock_wait(void *arg) {
    atomic_store(&((pool *)arg)->waiting, true);
}

static void on_bytes(void *arg, size_t n) {
    pool *p = arg;
    atomic_fetch_add(&p->done, n);
    atomic_fetch_add(&p->fetched, n);
}

static tm_parts parts_of(const pool *p, const file_job *j) {
    return (tm_parts){.incomplete = j->incomplete, .size = j->size, .segment = p->segment};
}

/* The digest that the name of the blob stands for. Names of another form promise nothing to check. */
static int check_digest(const file_job *j, bool *good, tm_error *e) {
    char hex[65];
    int rc = TM_OK;
    *good = true;
    if (tm_is_hex(j->etag, 64))
        rc = tm_sha256_file(j->incomplete, hex, e);
    else if (tm_is_hex(j->etag, 40))
        rc = tm_git_blob_file(j->incomplete, hex, e);
    else
        return TM_OK;
    if (!rc && strcmp(hex, j->etag) != 0) {
        *good = false;
        tm_fail(e, TM_ERROR, "%s came with the wrong bytes, twice", j->file->path);
        tm_why(e, "Its digest should be %s, and is %s. Nothing of it was kept.", j->etag, hex);
        tm_next(e, "Run the same command again; if it stays so, the server (or a proxy before it) is broken.");
    }
    return rc;
}

/* All ranges are there: check and give the file its name. */
static int finish_file(pool *p, file_job *j, tm_error *e) {
    tm_parts parts = parts_of(p, j);
    int rc = tm_parts_absorb(&parts, e);
    if (rc)
        return rc;
    if (j->size == 0 && !tm_exists(j->incomplete))
        rc = tm_write_file(j->incomplete, "", 0, e);
    int64_t have = tm_file_size(j->incomplete);
    if (!rc && have != j->size)
        rc = tm_fail(e, TM_ERROR, "%s is %lld bytes instead of %lld", j->file->path, (long long)have,
                     (long long)j->size);
    bool good = false;
    if (!rc)
        rc = check_digest(j, &good, e);
    if (!rc && !good) {
        tm_parts_remove(&parts, true);
        if (j->retried)
            return e->code;
        j->retried = true;
        atomic_fetch_sub(&p->done, (unsigned long long)j->size);
        tm_unlock(&j->lock);
        push(p, (task){.job = j, .begin = -1});
        return TM_OK;
    }
    if (!rc)
        rc = tm_rename_synced(j->incomplete, j->blob, e);
    if (!rc)
        tm_parts_remove(&parts, false);
    if (!rc)
        rc = tm_cache_link(p->repo, j->file->path, j->etag, e);
    tm_unlock(&j->lock);
    return rc;
}

/* Cut what is missing of a file into ranges. The caller holds the lock. */
static int plan_ranges(pool *p, file_job *j, tm_error *e) {
    tm_parts parts = parts_of(p, j);
    int rc = tm_mkdirs_for(j->incomplete, e);
    if (!rc && tm_file_size(j->incomplete) > j->size)
        tm_parts_remove(&parts, true);
    if (!rc)
        rc = tm_parts_absorb(&parts, e);
    if (rc)
        return rc;
    int64_t have = tm_file_size(j->incomplete);
    if (have < 0)
        have = 0;
    atomic_fetch_add(&p->done, (unsigned long long)have);
    atomic_fetch_add(&p->resumed, (unsigned long long)have);

    task list[1024];
    int count = 0;
    int64_t step = j->size > 2 * p->segment ? p->segment : j->size;
    /* The prefix may end inside a segment: that one is continued in place, the later ones stand alone. */
    for (int64_t at = have; at < j->size;) {
        int64_t end = step == j->size ? j->size : (at / step + 1) * step;
        if (end > j->size || count == 1023)
            end = j->size;
        list[count] = (task){.job = j, .begin = at, .end = end, .to_prefix = count == 0};
        if (count > 0) {
            char *part = tm_part_path(&parts, at);
            int64_t size = tm_file_size(part);
            if (size > end - at) {
                unlink(part);
            } else if (size > 0) {
                atomic_fetch_add(&p->done, (unsigned long long)size);
                atomic_fetch_add(&p->resumed, (unsigned long long)size);
            }
            free(part);
        }
        count++;
        at = end;
    }
    if (count == 0)
        return finish_file(p, j, e);
    atomic_store(&j->open_segments, count);
    for (int i = count - 1; i >= 0; i--) /* the last one pushed is the first one taken */
        push(p, list[i]);
    return TM_OK;
}

static int plan_file(pool *p, file_job *j, tm_http_session *session, tm_error *e) {
    int rc = TM_OK;
    if (!j->etag) {
        rc = tm_fetch_head(p->hub, session, p->repo, j->file, &j->etag, &j->size, e);
        if (rc)
            return rc;
    }
    char *dir = tm_cache_repo_dir(p->repo->type, p->repo->id);
    free(j->blob);
    free(j->incomplete);
    j->blob = tm_fmt("%s/blobs/%s", dir, j->etag);
    j->incomplete = tm_fmt("%s.incomplete", j->blob);
    free(dir);
    char *lock = tm_cache_lock(p->repo->type, p->repo->id, j->etag);
    rc = tm_lock_file(lock, stopped, on_lock_wait, p, &j->lock, e);
    free(lock);
    if (rc)
        return rc;
    atomic_store(&p->waiting, false);
    if (tm_file_size(j->blob) == j->size) {
        atomic_fetch_add(&p->done, (unsigned long long)j->size);
        rc = tm_cache_link(p->repo, j->file->path, j->etag, e);
        tm_unlock(&j->lock);
        return rc;
    }
    rc = plan_ranges(p, j, e);
    if (rc)
        tm_unlock(&j->lock);
    return rc;
}

static int run_range(pool *p, const task *t, tm_http_session *session, tm_error *e) {
    file_job *j = t->job;
    tm_parts parts = parts_of(p, j);
    char *own = t->to_prefix ? NULL : tm_part_path(&parts, t->begin);
    tm_fetch_range range = {.path = own ? own : j->incomplete,
                            .path_offset = own ? t->begin : 0,
                            .begin = t->begin,
                            .end = t->end,
                            .size = j->size,
                            .etag = j->etag,
                            .on_bytes = on_bytes,
                            .cancelled = stopped,
                            .arg = p};
    int rc = tm_fetch_file_range(p->hub, session, p->repo, j->file, &range, e);
    free(own);
    if (!rc && atomic_fetch_sub(&j->open_segments, 1) == 1)
        rc = finish_file(p, j, e);
    return rc;
}

static void *worker(void *arg) {
    pool *p = arg;
    tm_http_session *session = tm_http_session_new();
    tm_error e = {0};
    pthread_mutex_lock(&p->mutex);
    while (!atomic_load(&p->stop) && (p->count || p->running)) {
        if (!p->count) {
            pthread_cond_wait(&p->changed, &p->mutex);
            continue;
        }
        task t = p->tasks[--p->count];
        p->running++;
        pthread_mutex_unlock(&p->mutex);
        int rc = t.begin < 0 ? plan_file(p, t.job, session, &e) : run_range(p, &t, session, &e);
        if (rc)
            fail(p, &e);
        pthread_mutex_lock(&p->mutex);
        p->running--;
        pthread_cond_broadcast(&p->changed);
    }
    pthread_mutex_unlock(&p->mutex);
    tm_http_session_free(session);
    return NULL;
}

/* Draw until every worker has ended. */
static void watch(pool *p, uint64_t total) {
    pthread_mutex_lock(&p->mutex);
    while ((p->count || p->running) && !atomic_load(&p->stop)) {
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += 100000000;
        if (until.tv_nsec >= 1000000000) {
            until.tv_sec++;
            until.tv_nsec -= 1000000000;
        }
        pthread_cond_timedwait(&p->changed, &p->mutex, &until);
        pthread_mutex_unlock(&p->mutex);
        if (atomic_load(&p->waiting) && !atomic_exchange(&p->waiting_told, true))
            tm_note("•", "another program is downloading %s; waiting for it", p->repo->id);
        tm_step_progress(atomic_load(&p->done), total, true);
        if (tm_interrupted()) {
            tm_error e;
            tm_fail(&e, TM_INTERRUPTED, "interrupted");
            fail(p, &e);
        }
        pthread_mutex_lock(&p->mutex);
    }
    pthread_mutex_unlock(&p->mutex);
}

static bool selected(const tm_hub_file *f, const tm_download_options *o) {
    return tm_pattern_selects(f->path, o->allow, o->ignore);
}

/* A job for each file that is asked for; files of the same bytes share one. */
static size_t make_jobs(pool *p, const tm_download_options *options, file_job *files, tm_download_stats *stats) {
    json_t *seen = json_object();
    size_t count = 0;
    for (size_t i = 0; i < p->repo->count; i++) {
        const tm_hub_file *f = &p->repo->files[i];
        const char *etag = f->size >= 0 ? tm_file_etag(f) : NULL;
        if (!selected(f, options))
            continue;
        stats->files++;
        if (etag && json_object_get(seen, etag))
            continue;
        if (etag)
            json_object_set_new(seen, etag, json_true());
        stats->total += f->size > 0 ? (uint64_t)f->size : 0;
        file_job *j = &files[count++];
        *j = (file_job){.file = f, .size = f->size, .lock = {-1}, .etag = etag ? tm_strdup(etag) : NULL};
        push(p, (task){.job = j, .begin = -1});
    }
    json_decref(seen);
    return count;
}

/* The links of the files that share the bytes of another. */
static int link_all(const tm_hub_repo *repo, const tm_download_options *options, tm_error *e) {
    int rc = TM_OK;
    for (size_t i = 0; i < repo->count && !rc; i++) {
        const tm_hub_file *f = &repo->files[i];
        if (selected(f, options) && f->size >= 0 && tm_file_etag(f))
            rc = tm_cache_link(repo, f->path, tm_file_etag(f), e);
    }
    return rc;
}

static int cmp_order(const void *a, const void *b) {
    const task *x = a, *y = b; /* taken from the end: the large ones first */
    return x->job->size < y->job->size ? -1 : x->job->size > y->job->size;
}

/* All tasks, on `jobs` threads; what was counted goes into `stats`. */
static int run_pool(pool *p, long jobs, tm_download_stats *stats, tm_error *e) {
    pthread_t threads[MAX_JOBS];
    int started = 0;
    if (p->count)
        qsort(p->tasks, p->count, sizeof *p->tasks, cmp_order);
    while (started < jobs && pthread_create(&threads[started], NULL, worker, p) == 0)
        started++;
    if (!started)
        return tm_fail(e, TM_ERROR, "cannot start a thread");
    watch(p, stats->total);
    for (int i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
    tm_step_progress(atomic_load(&p->done), stats->total, true);
    stats->fetched = atomic_load(&p->fetched);
    stats->resumed = atomic_load(&p->resumed);
    if (!atomic_load(&p->stop) || !p->error.code)
        return TM_OK;
    if (e)
        *e = p->error;
    if (p->error.code == TM_INTERRUPTED)
        tm_next(e, "Run the same command again: it goes on where it stopped.");
    return p->error.code;
}

int tm_download(tm_hub *hub, const tm_hub_repo *repo, const tm_download_options *options, tm_download_stats *stats,
                tm_error *e) {
    static const tm_download_options none;
    if (!options)
        options = &none;
    *stats = (tm_download_stats){0};
    long jobs, segment;
    int rc = tm_env_int("TT_MODEL_DOWNLOAD_JOBS", 1, MAX_JOBS, DEFAULT_JOBS, &jobs, e);
    if (!rc)
        rc = tm_env_int("TT_MODEL_DOWNLOAD_SEGMENT", MIN_SEGMENT, MAX_SEGMENT, DEFAULT_SEGMENT, &segment, e);
    if (!rc)
        rc = tm_cache_write_tree(repo, e);
    if (rc)
        return rc;

    pool p = {.hub = hub, .repo = repo, .segment = segment};
    pthread_mutex_init(&p.mutex, NULL);
    pthread_cond_init(&p.changed, NULL);
    file_job *files = tm_alloc((repo->count + 1) * sizeof *files);
    const size_t made = make_jobs(&p, options, files, stats);
    rc = run_pool(&p, jobs, stats, e);
    if (!rc)
        rc = link_all(repo, options, e);
    for (size_t i = 0; i < made; i++) {
        tm_unlock(&files[i].lock);
        free(files[i].etag);
        free(files[i].blob);
        free(files[i].incomplete);
    }
    free(files);
    free(p.tasks);
    pthread_cond_destroy(&p.changed);
    pthread_mutex_destroy(&p.mutex);
    return rc;
}

int tm_download_check_space(const tm_hub_repo *repo, const tm_download_options *options, uint64_t *need, tm_error *e) {
    static const tm_download_options none;
    if (!options)
        options = &none;
    char *dir = tm_cache_repo_dir(repo->type, repo->id);
    uint64_t missing = 0, partial = tm_cache_partial_bytes(repo->type, repo->id), available = 0;
    for (size_t i = 0; i < repo->count; i++) {
        const tm_hub_file *f = &repo->files[i];
        if (!selected(f, options) || f->size <= 0 || !tm_file_etag(f))
            continue;
        char *blob = tm_fmt("%s/blobs/%s", dir, tm_file_etag(f));
        if (tm_file_size(blob) != f->size)
            missing += (uint64_t)f->size;
        free(blob);
    }
    missing -= partial < missing ? partial : missing;
    if (need)
        *need = missing;
    int rc = TM_OK;
    if (missing && tm_free_bytes(dir, &available) == 0 && available < missing + SPACE_RESERVE) {
        char a[32], b[32];
        tm_fail(e, TM_ERROR, "not enough disk space for %s", repo->id);
        tm_why(e, "%s are needed, %s are free on the disk of %s.", tm_human_bytes((double)missing, a),
               tm_human_bytes((double)available, b), dir);
        tm_next(e, "Free space there, or point HF_HOME at a larger disk, and run the same command again.");
        rc = e ? e->code : TM_ERROR;
    }
    free(dir);
    return rc;
}
