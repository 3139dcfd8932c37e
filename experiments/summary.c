// The end tables and what follows them. See summary.h.
//
// What is counted are cases: the rows of one case follow one another, and the first stands for all.
#include <summary.h>

#include <qg_plan_build.h>
#include <qg_table.h>
#include <summary_tables.h>

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_FAILURES = 10, MOST_REASONS = 10, REPRO_SIZE = 16384 };

static const char *text_of(const qg_table *table, int64_t row, qg_column column) {
    return qg_table_text(table, row, column);
}

static qg_case_status status_of(const qg_table *table, int64_t row) {
    return qg_case_status_find(text_of(table, row, QG_COLUMN_STATUS));
}

// Whether the row is another reference of the case of the row before.
static bool repeats_case(const qg_table *table, int64_t row) {
    int64_t order = qg_table_order(table, row);
    return row > 0 && order >= 0 && order == qg_table_order(table, row - 1);
}

static bool is_failure(qg_case_status status) {
    return status == QG_CASE_FAILED || status == QG_CASE_CRASHED || status == QG_CASE_TIMEOUT;
}

// --------------------------------------------------------------------------------------- statuses

typedef struct reason {
    const char *text;
    int64_t count;
} reason;

static int by_count(const void *left, const void *right) {
    const reason *a = left, *b = right;
    return (a->count < b->count) - (a->count > b->count);
}

static void add_reason(reason *reasons, int64_t *count, int64_t most, const char *text) {
    for (int64_t i = 0; i < *count; i++)
        if (strcmp(reasons[i].text, text) == 0) {
            reasons[i].count++;
            return;
        }
    if (*count < most)
        reasons[(*count)++] = (reason){text, 1};
}

// Why cases have this status: the most frequent reasons.
static void print_reasons(const qg_summary *s, qg_case_status status, FILE *stream) {
    enum { MOST_DIFFERENT = 256 };
    const qg_table *table = s->outcome->table;
    reason reasons[MOST_DIFFERENT];
    int64_t count = 0;
    for (int64_t row = 0; row < qg_table_rows(table); row++)
        if (status_of(table, row) == status && !repeats_case(table, row))
            add_reason(reasons, &count, MOST_DIFFERENT, text_of(table, row, QG_COLUMN_REASON));
    if (count > 0)
        qsort(reasons, (size_t)count, sizeof *reasons, by_count);
    for (int64_t i = 0; i < count && i < MOST_REASONS; i++)
        fprintf(stream, "  %s %" PRId64 ": %s\n", qg_case_status_name(status), reasons[i].count,
                reasons[i].text);
    if (count > MOST_REASONS)
        fprintf(stream, "  %s: %" PRId64 " more reasons\n", qg_case_status_name(status),
                count - MOST_REASONS);
}

// Returns the number of cases.
static int64_t count_statuses(const qg_table *table, int64_t counts[QG_CASE_STATUS_COUNT + 1]) {
    int64_t cases = 0;
    memset(counts, 0, (QG_CASE_STATUS_COUNT + 1) * sizeof *counts);
    for (int64_t row = 0; row < qg_table_rows(table); row++) {
        if (repeats_case(table, row))
            continue;
        counts[status_of(table, row)]++;
        cases++;
    }
    return cases;
}

// "24 cases: 20 RAN, 4 FAILED", without a line end.
static void print_counts(const qg_summary *s, FILE *stream) {
    int64_t counts[QG_CASE_STATUS_COUNT + 1];
    int64_t cases = count_statuses(s->outcome->table, counts);
    fprintf(stream, "%" PRId64 " case%s", cases, cases == 1 ? "" : "s");
    const char *separator = ": ";
    for (int i = 0; i < QG_CASE_STATUS_COUNT; i++)
        if (counts[i]) {
            fprintf(stream, "%s%" PRId64 " %s", separator, counts[i],
                    qg_case_status_name((qg_case_status)i));
            separator = ", ";
        }
}

static void print_statuses(const qg_summary *s, FILE *stream) {
    print_counts(s, stream);
    fputc('\n', stream);
    print_reasons(s, QG_CASE_SKIPPED, stream);
    print_reasons(s, QG_CASE_UNAVAILABLE, stream);
    print_reasons(s, QG_CASE_MISTRUSTED, stream);
}

// --------------------------------------------------------------------------------------- failures

// The command that runs the case of a row alone, into a file of its own.
static void print_command(const qg_summary *s, int64_t row, FILE *stream) {
    char text[REPRO_SIZE];
    int64_t order = qg_table_order(s->outcome->table, row);
    bool known = order >= 0 && order < qg_plan_count(s->plan) &&
                 qg_plan_command(s->plan, qg_plan_case(s->plan, order), text, sizeof text);
    fprintf(stream, "    %s %s --out repro.h5 --overwrite\n", s->program,
            known ? text : text_of(s->outcome->table, row, QG_COLUMN_REPRO));
}

static void print_failures(const qg_summary *s, FILE *stream) {
    const qg_table *table = s->outcome->table;
    int64_t shown = 0, failures = 0;
    for (int64_t row = 0; row < qg_table_rows(table); row++) {
        if (!is_failure(status_of(table, row)) || repeats_case(table, row))
            continue;
        failures++;
        if (shown == MOST_FAILURES)
            continue;
        shown++;
        fprintf(stream, "%s: %s\n", text_of(table, row, QG_COLUMN_STATUS),
                text_of(table, row, QG_COLUMN_REASON));
        print_command(s, row, stream);
    }
    if (failures > shown)
        fprintf(stream, "%" PRId64 " more failures\n", failures - shown);
}

// ------------------------------------------------------------------------------------------- next

static void print_show(const qg_summary *s, const char *rest, FILE *stream) {
    char word[4096] = "";
    fprintf(stream, "next: %s --show %s%s\n", s->program,
            qg_shell_append(word, sizeof word, s->out) ? word : s->out, rest);
}

// The rows to look at first.
static void print_rows_to_see(const qg_summary *s, FILE *stream) {
    static const qg_case_status bad[] = {QG_CASE_FAILED, QG_CASE_CRASHED, QG_CASE_TIMEOUT};
    int64_t counts[QG_CASE_STATUS_COUNT + 1];
    char rest[160] = "";
    size_t length = 0;
    count_statuses(s->outcome->table, counts);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        if (counts[bad[i]] > 0)
            length += (size_t)snprintf(rest + length, sizeof rest - length, " --where status=%s",
                                       qg_case_status_name(bad[i]));
    if (length == 0 && counts[QG_CASE_MISTRUSTED] > 0)
        snprintf(rest, sizeof rest, " --where 'status=MISTRUSTED'");
    print_show(s, rest, stream);
}

static void print_next(const qg_summary *s, FILE *stream) {
    const qg_sweep_outcome *o = s->outcome;
    if (o->merged) {
        if (o->reused < o->cases)
            fprintf(stream, "wrote %s\n", s->out);
        print_rows_to_see(s, stream);
        return;
    }
    if (o->missing > 0)
        fprintf(stream,
                "%" PRId64 " of %" PRId64 " cases have no result yet\n"
                "next: the same command again resumes\n",
                o->missing, o->cases);
    else
        fprintf(stream, "kept in %s.parts\nnext: the same command with --merge\n", s->out);
}

// One of several that has nothing to merge. Under a launcher the others run already.
static void print_shard(const qg_summary *s, FILE *stream) {
    const qg_sweep_outcome *o = s->outcome;
    fprintf(stream, "shard %d/%d: ", s->shard->shard, s->shard->shards);
    print_counts(s, stream);
    if (o->missing > 0) {
        fprintf(stream, "; %" PRId64 " of %" PRId64 " have no result yet\n", o->missing, o->cases);
        fprintf(stream, "next: the same command again resumes\n");
        return;
    }
    fprintf(stream, "; kept in %s.parts\n", s->out);
    if (!s->shard->origin)
        fprintf(stream, "next: the other shards; the last one merges, and so does --merge\n");
}

void qg_summary_print(const qg_summary *s, FILE *stream) {
    if (!s->outcome->table || (s->merge_only && !s->outcome->merged))
        return;
    if (s->shard->shards > 1 && !s->outcome->merged) {
        print_failures(s, stream);
        print_shard(s, stream);
        return;
    }
    summary_tables_print(s->plan, s->outcome->table, s->width, stream);
    print_statuses(s, stream);
    print_failures(s, stream);
    print_next(s, stream);
}
