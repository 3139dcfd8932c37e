// The end table and what follows it. See summary.h.
#include <summary.h>

#include <qg_axis.h>
#include <qg_plan_build.h>
#include <qg_table.h>
#include <text_grid.h>
#include <word_pool.h>

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_FAILURES = 10, MOST_REASONS = 10, REPRO_SIZE = 16384 };

static const char *text_of(const qg_table *table, int64_t row, qg_column column) {
    return qg_table_text(table, row, column);
}

static qg_case_status status_of(const qg_table *table, int64_t row) {
    return qg_case_status_find(text_of(table, row, QG_COLUMN_STATUS));
}

static bool is_failure(qg_case_status status) {
    return status == QG_CASE_FAILED || status == QG_CASE_CRASHED || status == QG_CASE_TIMEOUT;
}

// ----------------------------------------------------------------------------------------- groups

// Rows of equal format, layout, rule, rounding and backend.
typedef struct group {
    int64_t first_row;
    int64_t order, format_order; // of the plan's first case like it, and of its format
    int64_t cases;
    double qsnr_db, rel_frobenius; // medians
    double saturated, underflowed; // shares
    double gb_per_s;               // median, NaN without timing
} group;

static const qg_column KEYS[] = {QG_COLUMN_FORMAT, QG_COLUMN_LAYOUT, QG_COLUMN_SCALE_RULE,
                                 QG_COLUMN_ROUNDING, QG_COLUMN_BACKEND};
enum { KEY_COUNT = sizeof KEYS / sizeof KEYS[0] };

typedef struct keyed_row {
    const char *key, *format; // interned
    int64_t row;
} keyed_row;

static int by_key(const void *left, const void *right) {
    const keyed_row *a = left, *b = right;
    if (a->key != b->key)
        return (uintptr_t)a->key < (uintptr_t)b->key ? -1 : 1;
    return (a->row > b->row) - (a->row < b->row);
}

static int by_format_then_order(const void *left, const void *right) {
    const group *a = left, *b = right;
    if (a->format_order != b->format_order)
        return a->format_order < b->format_order ? -1 : 1;
    return (a->order > b->order) - (a->order < b->order);
}

static int by_value(const void *left, const void *right) {
    const double *a = left, *b = right;
    return (*a > *b) - (*a < *b);
}

// Of what is not NaN; NaN if nothing is left. Sorts the values.
static double median(double *values, int64_t count) {
    int64_t kept = 0;
    for (int64_t i = 0; i < count; i++)
        if (!isnan(values[i]))
            values[kept++] = values[i];
    if (kept == 0)
        return NAN;
    qsort(values, (size_t)kept, sizeof *values, by_value);
    double high = values[kept / 2], low = values[(kept - 1) / 2];
    return high == low ? high : low + (high - low) / 2;
}

static double median_of(const qg_table *table, const keyed_row *rows, int64_t count,
                        qg_column column, double *values) {
    for (int64_t i = 0; i < count; i++)
        values[i] = qg_table_f64(table, rows[i].row, column);
    return median(values, count);
}

static double share_of(const qg_table *table, const keyed_row *rows, int64_t count,
                       qg_column column) {
    double part = 0, whole = 0;
    for (int64_t i = 0; i < count; i++) {
        int64_t value = qg_table_i64(table, rows[i].row, column);
        if (value >= 0) {
            part += (double)value;
            whole += (double)qg_table_i64(table, rows[i].row, QG_COLUMN_COUNT_N);
        }
    }
    return whole > 0 ? part / whole : NAN;
}

static group make_group(const qg_table *table, const keyed_row *rows, int64_t count,
                        double *values) {
    group g = {.first_row = rows[0].row, .cases = count};
    g.qsnr_db = median_of(table, rows, count, QG_COLUMN_METRIC_QSNR_DB, values);
    g.rel_frobenius = median_of(table, rows, count, QG_COLUMN_METRIC_REL_FROBENIUS, values);
    g.gb_per_s = median_of(table, rows, count, QG_COLUMN_TIMING_GB_PER_S, values);
    g.saturated = share_of(table, rows, count, QG_COLUMN_COUNT_SATURATED);
    g.underflowed = share_of(table, rows, count, QG_COLUMN_COUNT_UNDERFLOWED);
    return g;
}

static qg_status key_row(qg_word_pool *pool, const qg_table *table, int64_t row, keyed_row *out) {
    char key[512] = "";
    size_t length = 0;
    for (int i = 0; i < KEY_COUNT && length < sizeof key; i++)
        length += (size_t)snprintf(key + length, sizeof key - length, "%s\n",
                                   text_of(table, row, KEYS[i]));
    out->row = row;
    qg_status status = qg_word_pool_keep(pool, key, &out->key);
    return status ? status
                  : qg_word_pool_keep(pool, text_of(table, row, QG_COLUMN_FORMAT), &out->format);
}

static bool is_measured(const qg_table *table, int64_t row) {
    return qg_table_i64(table, row, QG_COLUMN_COUNT_N) > 0 ||
           !isnan(qg_table_f64(table, row, QG_COLUMN_TIMING_GB_PER_S));
}

static bool is_like(const qg_case *c, const qg_table *table, int64_t row) {
    for (int i = 0; i < KEY_COUNT; i++)
        if (strcmp(qg_axis_cell(c, KEYS[i]).text, text_of(table, row, KEYS[i])) != 0)
            return false;
    return true;
}

// The place in the plan of the first case like the row, whether or not that case has a result: a
// part of a sweep is listed in the order of the whole.
static int64_t order_of(const qg_plan *plan, const qg_table *table, int64_t row) {
    int64_t own = qg_table_order(table, row);
    for (int64_t i = 0; i < own && i < qg_plan_count(plan); i++)
        if (is_like(qg_plan_case(plan, i), table, row))
            return i;
    return own;
}

static void set_orders(group *groups, int64_t count, const qg_plan *plan, const qg_table *table) {
    for (int64_t i = 0; i < count; i++)
        groups[i].order = groups[i].format_order = order_of(plan, table, groups[i].first_row);
    for (int64_t i = 0; i < count; i++)
        for (int64_t j = 0; j < count; j++)
            if (groups[j].order < groups[i].format_order &&
                strcmp(text_of(table, groups[j].first_row, QG_COLUMN_FORMAT),
                       text_of(table, groups[i].first_row, QG_COLUMN_FORMAT)) == 0)
                groups[i].format_order = groups[j].order;
}

// Fills `groups`, which has room for one per row; returns how many there are.
static int64_t group_rows(const qg_plan *plan, const qg_table *table, keyed_row *rows,
                          int64_t count, double *values, group *groups) {
    int64_t found = 0;
    if (count > 0)
        qsort(rows, (size_t)count, sizeof *rows, by_key);
    for (int64_t first = 0, last; first < count; first = last) {
        for (last = first + 1; last < count && rows[last].key == rows[first].key; last++)
            ;
        groups[found++] = make_group(table, rows + first, last - first, values);
    }
    set_orders(groups, found, plan, table);
    if (found > 0)
        qsort(groups, (size_t)found, sizeof *groups, by_format_then_order);
    return found;
}

// ------------------------------------------------------------------------------------------ table

typedef enum table_column {
    FORMAT,
    LAYOUT,
    RULE,
    ROUNDING,
    BACKEND,
    CASES,
    QSNR,
    ERROR,
    SATURATED,
    UNDERFLOWED,
    SPEED,
    TABLE_COLUMNS
} table_column;

static const char *const TITLES[TABLE_COLUMNS] = {"format",  "layout",    "rule",    "rounding",
                                                  "backend", "cases",     "QSNR dB", "error %",
                                                  "satur %", "underfl %", "GB/s"};

typedef struct end_table {
    const qg_table *table;
    const group *groups;
    int64_t count;
    table_column columns[TABLE_COLUMNS];
    int column_count;
} end_table;

static void print_percent(double share, char text[QG_CELL_SIZE]) {
    if (isnan(share))
        snprintf(text, QG_CELL_SIZE, "-");
    else if (share == 0)
        snprintf(text, QG_CELL_SIZE, "0");
    else if (share < 0.00005)
        snprintf(text, QG_CELL_SIZE, "<0.01");
    else
        snprintf(text, QG_CELL_SIZE, "%.2f", 100 * share);
}

static void print_number(double value, const char *format, char text[QG_CELL_SIZE]) {
    if (isnan(value))
        snprintf(text, QG_CELL_SIZE, "-");
    else if (strcmp(format, "%.2f") == 0)
        snprintf(text, QG_CELL_SIZE, "%.2f", value);
    else
        snprintf(text, QG_CELL_SIZE, "%.3g", value);
}

static void table_cell(const void *context, int64_t row, int column, char text[QG_CELL_SIZE]) {
    const end_table *t = context;
    const group *g = &t->groups[row];
    switch (t->columns[column]) {
    case CASES: snprintf(text, QG_CELL_SIZE, "%" PRId64, g->cases); break;
    case QSNR: print_number(g->qsnr_db, "%.2f", text); break;
    case ERROR: print_percent(g->rel_frobenius, text); break;
    case SATURATED: print_percent(g->saturated, text); break;
    case UNDERFLOWED: print_percent(g->underflowed, text); break;
    case SPEED: print_number(g->gb_per_s, "%.3g", text); break;
    default:
        snprintf(text, QG_CELL_SIZE, "%s",
                 text_of(t->table, g->first_row, KEYS[t->columns[column]]));
        break;
    }
}

static bool key_varies(const end_table *t, qg_column column) {
    for (int64_t i = 1; i < t->count; i++)
        if (strcmp(text_of(t->table, t->groups[i].first_row, column),
                   text_of(t->table, t->groups[0].first_row, column)) != 0)
            return true;
    return false;
}

static bool is_wanted(const end_table *t, table_column column) {
    if (column == ROUNDING || column == BACKEND)
        return key_varies(t, KEYS[column]);
    if (column != SPEED)
        return true;
    for (int64_t i = 0; i < t->count; i++)
        if (!isnan(t->groups[i].gb_per_s))
            return true;
    return false;
}

static void fill_grid(end_table *t, bool with_cases, qg_text_grid *grid) {
    t->column_count = 0;
    for (int c = 0; c < TABLE_COLUMNS; c++)
        if (is_wanted(t, (table_column)c) && (with_cases || c != CASES)) {
            grid->title[t->column_count] = TITLES[c];
            grid->right[t->column_count] = c >= CASES;
            t->columns[t->column_count++] = (table_column)c;
        }
    grid->columns = t->column_count;
}

static void print_groups(const qg_summary *s, const group *groups, int64_t count, FILE *stream) {
    end_table t = {.table = s->outcome->table, .groups = groups, .count = count};
    qg_text_grid grid = {.rows = count, .cell = table_cell, .context = &t, .width = s->width};
    if (count == 0) {
        fprintf(stream, "nothing was measured\n");
        return;
    }
    fill_grid(&t, true, &grid);
    if (qg_text_grid_width(&grid) > s->width)
        fill_grid(&t, false, &grid);
    qg_text_grid_print(&grid, stream);
    fprintf(stream, "QSNR and relative error: medians over the cases; shares: of all elements\n");
}

static void print_table(const qg_summary *s, FILE *stream) {
    const qg_table *table = s->outcome->table;
    size_t rows = (size_t)qg_table_rows(table) + 1;
    qg_word_pool *pool = NULL;
    qg_status status = qg_word_pool_create(&pool);
    keyed_row *keyed = malloc(rows * sizeof *keyed);
    double *values = malloc(rows * sizeof *values);
    group *groups = malloc(rows * sizeof *groups);
    int64_t count = 0;
    bool ready = !status && keyed && values && groups;
    for (int64_t row = 0; ready && !status && row < qg_table_rows(table); row++)
        if (is_measured(table, row))
            status = key_row(pool, table, row, &keyed[count++]);
    if (ready && !status)
        print_groups(s, groups, group_rows(s->plan, table, keyed, count, values, groups), stream);
    free(keyed);
    free(values);
    free(groups);
    qg_word_pool_free(pool);
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
        if (status_of(table, row) == status)
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

static void count_statuses(const qg_table *table, int64_t counts[QG_CASE_STATUS_COUNT + 1]) {
    memset(counts, 0, (QG_CASE_STATUS_COUNT + 1) * sizeof *counts);
    for (int64_t row = 0; row < qg_table_rows(table); row++)
        counts[status_of(table, row)]++;
}

// "24 cases: 20 RAN, 4 FAILED", without a line end.
static void print_counts(const qg_summary *s, FILE *stream) {
    int64_t counts[QG_CASE_STATUS_COUNT + 1], rows = qg_table_rows(s->outcome->table);
    count_statuses(s->outcome->table, counts);
    fprintf(stream, "%" PRId64 " case%s", rows, rows == 1 ? "" : "s");
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
        if (!is_failure(status_of(table, row)))
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
    print_table(s, stream);
    print_statuses(s, stream);
    print_failures(s, stream);
    print_next(s, stream);
}
