// All gates over all files. See gate_run.h.
#include <gate_run.h>

#include <table_cell.h>

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// ------------------------------------------------------------------------------------------- rows

bool qg_gate_where_holds(const qg_gate *gate, const qg_table *table, int64_t row) {
    qg_table_row r = {table, row};
    return !gate->where || qg_expression_holds(gate->where, qg_table_cell, &r);
}

static bool is_measured(const qg_table *table, int64_t row) {
    const char *status = qg_table_text(table, row, QG_COLUMN_STATUS);
    return strcmp(status, "RAN") == 0 || strcmp(status, "PASSED") == 0 ||
           strcmp(status, "FAILED") == 0 || strcmp(status, "MISTRUSTED") == 0 ||
           strcmp(status, "CRASHED") == 0;
}

bool qg_gate_is_mistrusted(const qg_gate_file *file, int64_t row) {
    return strcmp(qg_table_text(file->table, row, QG_COLUMN_STATUS), "MISTRUSTED") == 0;
}

bool qg_gate_takes(const qg_gate_run *run, const qg_gate *gate, const qg_gate_file *file,
                   int64_t row) {
    if (run->has_explained && qg_table_u64(file->table, row, QG_COLUMN_CASE_ID) != run->explained)
        return false;
    return is_measured(file->table, row) && qg_gate_where_holds(gate, file->table, row);
}

void qg_gate_describe(const qg_table *table, int64_t row, char *text, size_t size) {
    static const qg_column WORDS[] = {QG_COLUMN_OP,         QG_COLUMN_FORMAT,   QG_COLUMN_LAYOUT,
                                      QG_COLUMN_SCALE_RULE, QG_COLUMN_FORMAT_B, QG_COLUMN_UNIT,
                                      QG_COLUMN_BACKEND,    QG_COLUMN_DATA,     QG_COLUMN_TENSOR,
                                      QG_COLUMN_REFERENCE};
    size_t at = 0;
    text[0] = '\0';
    for (size_t i = 0; i < sizeof WORDS / sizeof WORDS[0] && at < size; i++) {
        const char *word = qg_table_text(table, row, WORDS[i]);
        if (*word)
            at += (size_t)snprintf(text + at, size - at, "%s%s", at ? " " : "", word);
    }
    if (at < size)
        snprintf(text + at, size - at, " m=%" PRId64 " k=%" PRId64 " seed %" PRIu64,
                 qg_table_i64(table, row, QG_COLUMN_M), qg_table_i64(table, row, QG_COLUMN_K),
                 qg_table_u64(table, row, QG_COLUMN_SEED));
}

// ---------------------------------------------------------------------------------------- results

qg_status qg_gate_add(qg_gate_run *run, const qg_gate_result *result, const char *format, ...) {
    if (run->count == run->room) {
        int64_t room = run->room ? 2 * run->room : 1024;
        qg_gate_result *results = realloc(run->results, (size_t)room * sizeof *results);
        if (!results)
            return qg_fail(QG_ERROR_MEMORY, "no memory for the verdicts");
        run->results = results;
        run->room = room;
    }
    qg_gate_result *r = &run->results[run->count];
    *r = *result;
    r->detail = NULL;
    if (*format) {
        va_list words;
        va_start(words, format);
        int length = vasprintf(&r->detail, format, words);
        va_end(words);
        if (length < 0)
            return qg_fail(QG_ERROR_MEMORY, "no memory for the verdicts");
        if (length == 0) {
            free(r->detail);
            r->detail = NULL;
        }
    }
    run->count++;
    return QG_OK;
}

void qg_gate_run_free(qg_gate_run *run) {
    for (int64_t i = 0; i < run->count; i++) {
        free(run->results[i].detail);
        free(run->results[i].repro);
    }
    free(run->results);
    qg_gate_names_free(run->names);
    run->results = NULL;
    run->names = NULL;
    run->count = run->room = 0;
}

static int64_t count_of(const qg_gate_run *run, qg_verdict verdict) {
    int64_t count = 0;
    for (int64_t i = 0; i < run->count; i++)
        count += run->results[i].verdict == verdict;
    return count;
}

// NEW of a baseline alone has gated nothing.
static bool something_applied(const qg_gate_run *run) {
    for (int64_t i = 0; i < run->count; i++)
        if (run->results[i].verdict != QG_VERDICT_NEW &&
            run->results[i].verdict != QG_VERDICT_MISSING && run->results[i].row >= 0)
            return true;
    return false;
}

int qg_gate_run_exit_code(const qg_gate_run *run) {
    if (count_of(run, QG_VERDICT_FAIL) || count_of(run, QG_VERDICT_XPASS))
        return 1;
    if (!run->allow_missing && count_of(run, QG_VERDICT_MISSING))
        return 3;
    return something_applied(run) ? 0 : 4;
}

const char *qg_gate_run_verdict(const qg_gate_run *run) {
    switch (qg_gate_run_exit_code(run)) {
    case 0: return "PASS";
    case 1: return "FAIL";
    case 3: return "MISSING";
    default: return "NOTHING GATED";
    }
}

// ------------------------------------------------------------------------------------------ kinds

static qg_status run_one(qg_gate_run *run, const qg_gate *gate) {
    switch (gate->kind) {
    case QG_GATE_BITS:
        return gate->value ? qg_gate_run_limits(run, gate) : qg_gate_run_bits(run, gate);
    case QG_GATE_CONSISTENCY: return qg_gate_run_consistency(run, gate);
    case QG_GATE_PERF: return run->perf ? qg_gate_run_limits(run, gate) : QG_OK;
    case QG_GATE_KNOWN: return QG_OK;
    default: return qg_gate_run_limits(run, gate);
    }
}

qg_status qg_gate_run_all(qg_gate_run *run) {
    qg_status status = qg_gate_names_create(&run->names);
    for (int i = 0; i < run->gates->count && status == QG_OK; i++)
        status = run_one(run, &run->gates->items[i]);
    if (status == QG_OK && !run->has_explained)
        status = qg_gate_run_missing(run);
    for (int i = 0; i < run->gates->count && status == QG_OK; i++)
        if (run->gates->items[i].kind == QG_GATE_KNOWN)
            status = qg_gate_run_known(run, &run->gates->items[i]);
    return status;
}
