// Cases without a result: of the files' own plans, and of an explicit baseline. See gate_run.h.
// A complete file has a row for every case; where none of a plan's files is, the plan is built again
// from its text, which is a plan file.
#include <gate_run.h>

#include <qg_plan_build.h>

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static const qg_gate EVERY_CASE = {
    .id = (char *)(uintptr_t) "every-case-has-a-result",
    .kind = QG_GATE_INVARIANT,
    .metric = (char *)(uintptr_t) "cases",
    .limit = (char *)(uintptr_t) "each has a result",
    .reason = (char *)(uintptr_t) "what was not measured was not held to anything",
    .expires = (char *)(uintptr_t) ""};

// ---------------------------------------------------------------------------------- the cases there

typedef struct id_set {
    uint64_t *ids;
    int64_t count;
} id_set;

static int by_value(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static qg_status collect_ids(const qg_gate_run *run, id_set *set) {
    int64_t total = 0;
    for (int f = 0; f < run->file_count; f++)
        total += qg_table_rows(run->files[f].table);
    set->count = 0;
    set->ids = malloc((size_t)(total + 1) * sizeof *set->ids);
    if (!set->ids)
        return qg_fail(QG_ERROR_MEMORY, "no memory for the cases");
    for (int f = 0; f < run->file_count; f++)
        for (int64_t row = 0; row < qg_table_rows(run->files[f].table); row++)
            set->ids[set->count++] = qg_table_u64(run->files[f].table, row, QG_COLUMN_CASE_ID);
    qsort(set->ids, (size_t)set->count, sizeof *set->ids, by_value);
    return QG_OK;
}

static bool has_id(const id_set *set, uint64_t id) {
    return bsearch(&id, set->ids, (size_t)set->count, sizeof id, by_value) != NULL;
}

// ----------------------------------------------------------------------------------------- the plan

static qg_gate_result missing_result(const qg_gate_file *file, int64_t row, char *repro) {
    qg_gate_result result = {.gate = &EVERY_CASE, .file = file, .row = row, .repro = repro};
    result.verdict = QG_VERDICT_MISSING;
    result.value = result.limit = result.used = (double)NAN;
    return result;
}

static qg_status build_plan(const char *text, qg_plan **out) {
    qg_plan_request *request = NULL;
    char path[64];
    size_t size = strlen(text);
    int file = memfd_create("plan", MFD_CLOEXEC);
    *out = NULL;
    if (file < 0)
        return qg_fail(QG_ERROR_IO, "no memory file for the plan");
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    qg_status status = write(file, text, size) == (ssize_t)size
                           ? qg_plan_request_create(&request)
                           : qg_fail(QG_ERROR_IO, "no room for the plan");
    if (status == QG_OK)
        status = qg_plan_request_file(request, path);
    if (status == QG_OK)
        status = qg_plan_build(request, out);
    qg_plan_request_free(request);
    close(file);
    return status;
}

static qg_status add_case(qg_gate_run *run, const qg_gate_file *file, const qg_plan *plan,
                          const qg_case *c) {
    char repro[4096];
    bool fits = qg_plan_repro(plan, c, repro, sizeof repro);
    qg_gate_result result = missing_result(file, -1, fits ? strdup(repro) : NULL);
    return qg_gate_add(run, &result,
                       "case %016" PRIx64 " (%s %s %s %s m=%" PRId64 " k=%" PRId64
                       ") of the plan of %s has no result",
                       c->id, c->op->name, c->format, c->layout, c->data ? c->data : "", c->m, c->k,
                       file->path);
}

static qg_status check_plan(qg_gate_run *run, const qg_gate_file *file, const id_set *there) {
    qg_plan *plan;
    qg_status status = build_plan(qg_table_plan(file->table), &plan);
    if (status == QG_ERROR_MEMORY)
        return status;
    if (status != QG_OK) {
        qg_gate_result result = missing_result(file, -1, NULL);
        return qg_gate_add(run, &result,
                           "%s is not complete; which cases are missing is not known: its plan "
                           "cannot be built here: %.200s",
                           file->path, qg_detail());
    }
    status = QG_OK;
    for (int64_t i = 0; i < qg_plan_count(plan) && status == QG_OK; i++)
        if (!has_id(there, qg_plan_case(plan, i)->id))
            status = add_case(run, file, plan, qg_plan_case(plan, i));
    qg_plan_free(plan);
    return status;
}

static bool same_plan(const qg_gate_file *a, const qg_gate_file *b) {
    return strcmp(qg_table_plan(a->table), qg_table_plan(b->table)) == 0;
}

// Of several files of a plan the first stands for all.
static bool stands_for_plan(const qg_gate_run *run, int f) {
    for (int other = 0; other < run->file_count; other++)
        if (same_plan(&run->files[other], &run->files[f]) &&
            (run->files[other].complete || other < f))
            return false;
    return true;
}

// ----------------------------------------------------------------------------- rows without a result

static qg_status check_rows(qg_gate_run *run, const qg_gate_file *file) {
    qg_status status = QG_OK;
    for (int64_t row = 0; row < qg_table_rows(file->table) && status == QG_OK; row++) {
        const char *word = qg_table_text(file->table, row, QG_COLUMN_STATUS);
        if (strcmp(word, "TIMEOUT") != 0 && strcmp(word, "UNAVAILABLE") != 0)
            continue;
        qg_gate_result result = missing_result(file, row, NULL);
        status = qg_gate_add(run, &result, "%s: %.300s", word,
                             qg_table_text(file->table, row, QG_COLUMN_REASON));
    }
    return status;
}

static qg_status check_baseline(qg_gate_run *run, const id_set *there) {
    qg_status status = QG_OK;
    for (int64_t i = 0; i < qg_baseline_rows(run->baseline); i++) {
        const qg_baseline_row *row = qg_baseline_row_at(run->baseline, i);
        char axes[512];
        size_t length = 0;
        for (const char *c = row->axes; *c && length + 1 < sizeof axes; c++)
            if (*c != '\t' || (length && axes[length - 1] != ' '))
                axes[length++] = *c == '\t' ? ' ' : *c;
        axes[length] = '\0';
        for (int j = 0; j < row->count && status == QG_OK; j++) {
            if (has_id(there, row->cases[j]))
                continue;
            qg_gate_result result = missing_result(NULL, -1, NULL);
            status = qg_gate_add(run, &result,
                                 "case %016" PRIx64 " of the baseline (%s seed %" PRIu64
                                 ") is in no file",
                                 row->cases[j], axes, row->seeds[j]);
        }
    }
    return status;
}

qg_status qg_gate_run_missing(qg_gate_run *run) {
    id_set there;
    qg_status status = collect_ids(run, &there);
    for (int f = 0; f < run->file_count && status == QG_OK; f++) {
        if (stands_for_plan(run, f))
            status = check_plan(run, &run->files[f], &there);
        if (status == QG_OK)
            status = check_rows(run, &run->files[f]);
    }
    if (status == QG_OK && run->baseline && run->baseline_is_explicit)
        status = check_baseline(run, &there);
    free(there.ids);
    return status;
}
