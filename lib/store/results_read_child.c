// The child process that reads a result file first, and what it tells: attributes of the root and
// the runs. HDF5 itself (1.10.8) loops for ever or overruns its buffers on some damaged files,
// mostly where it reads variable-length texts. So what kills the child is not read in this process;
// and it tells the variable-length texts, so that they are not read here at all.
#include <child_process_internal.h>
#include <results_read_internal.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct answer {
    int status;
    bool complete;
    char plan_digest[QG_RESULTS_DIGEST_SIZE], content_digest[QG_RESULTS_DIGEST_SIZE];
    char detail[512];
    int64_t runs_size; // of what follows: of each run its keys and values and an empty text,
                       // all terminated by zeros
} answer;

enum { LARGEST_RUNS = 1 << 26 };

static bool send_text(int to, const char *text) {
    return qg_child_send(to, text, strlen(text) + 1);
}

static int64_t size_of_runs(const qg_table *table) {
    int64_t size = 0;
    for (int64_t r = 0; r < table->run_count; r++) {
        const qg_run *run = &table->runs[r];
        for (int64_t i = 0; i < run->count; i++)
            size += (int64_t)(strlen(run->keys[i]) + strlen(run->values[i]) + 2);
        size++;
    }
    return size;
}

static void send_runs(int to, const qg_table *table) {
    for (int64_t r = 0; r < table->run_count; r++) {
        const qg_run *run = &table->runs[r];
        for (int64_t i = 0; i < run->count; i++)
            if (!send_text(to, run->keys[i]) || !send_text(to, run->values[i]))
                return;
        send_text(to, "");
    }
}

static void read_in_child(void *context, int to) {
    qg_reader r = {.path = context};
    answer a = {0};
    a.status = (int)qg_reader_file(&r);
    a.complete = r.complete;
    memcpy(a.plan_digest, r.plan_digest, QG_RESULTS_DIGEST_SIZE);
    memcpy(a.content_digest, r.content_digest, QG_RESULTS_DIGEST_SIZE);
    snprintf(a.detail, sizeof a.detail, "%s", qg_detail());
    a.runs_size = a.status == QG_OK ? size_of_runs(r.table) : 0;
    if (qg_child_send(to, &a, sizeof a) && a.status == QG_OK)
        send_runs(to, r.table);
}

// The text at *at, and *at behind it; NULL past the end. The last byte is a zero.
static const char *next_text(const char *texts, int64_t size, int64_t *at) {
    if (*at >= size)
        return NULL;
    const char *text = texts + *at;
    *at += (int64_t)strlen(text) + 1;
    return text;
}

static qg_status unpack_runs(qg_reader *r, const char *texts, int64_t size) {
    qg_status status = QG_OK;
    for (int64_t at = 0; at < size && status == QG_OK;) {
        int64_t run;
        const char *key, *value = "";
        status = qg_table_add_run(r->table, &run);
        while (status == QG_OK && value && (key = next_text(texts, size, &at)) && *key) {
            value = next_text(texts, size, &at);
            if (value)
                status = qg_table_set_run(r->table, run, key, value);
        }
    }
    return status == QG_ERROR_ARGUMENT ? qg_reader_bad(r, "runs", "damaged") : status;
}

// The child's memory may have been damaged before it answered: its words are checked again.
static qg_status take_answer(qg_reader *r, const qg_child *child) {
    answer a;
    if (!qg_child_take(child, &a, sizeof a) || a.runs_size < 0 || a.runs_size > LARGEST_RUNS)
        return qg_fail(QG_ERROR_DATA, "%s: damaged: HDF5 does not survive reading it", r->path);
    if (a.status != QG_OK)
        return qg_fail((qg_status)a.status, "%.500s", a.detail);
    r->told = true;
    r->complete = a.complete;
    memcpy(r->plan_digest, a.plan_digest, QG_RESULTS_DIGEST_SIZE);
    memcpy(r->content_digest, a.content_digest, QG_RESULTS_DIGEST_SIZE);
    r->plan_digest[QG_RESULTS_DIGEST_SIZE - 1] = r->content_digest[QG_RESULTS_DIGEST_SIZE - 1] = 0;
    char *texts = calloc((size_t)a.runs_size + 1, 1);
    if (!texts)
        return qg_reader_no_memory(r);
    qg_status status =
        qg_child_take(child, texts, (size_t)a.runs_size)
            ? unpack_runs(r, texts, a.runs_size)
            : qg_reader_bad(r, "runs", "damaged: HDF5 does not survive reading them");
    free(texts);
    return status;
}

qg_status qg_reader_ask_child(qg_reader *r) {
    qg_status status = qg_reader_find_size(r->path, &r->file_size);
    char *path = status == QG_OK ? strdup(r->path) : NULL;
    if (!path)
        return status == QG_OK ? qg_reader_no_memory(r) : status;
    qg_child child;
    unsigned cpu_seconds = 5 + (unsigned)(r->file_size >> 19); // many times what whole files take
    status = qg_child_start(read_in_child, path, cpu_seconds, &child);
    free(path);
    if (status != QG_OK)
        return status;
    status = take_answer(r, &child);
    qg_child_end(&child);
    return status;
}
