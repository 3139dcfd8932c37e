// Several tables into one, in plan order. See qg_results.h.
#include <qg_results.h>
#include <table_internal.h>

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

// A row of one of the tables.
typedef struct source_row {
    int64_t table, row;
} source_row;

// Neighbours of one table that stay neighbours: copied as one.
typedef struct span {
    int64_t table, row, count;
} span;

typedef struct merger {
    const qg_table *const *tables;
    int64_t count;
    qg_table *out;
    span *spans; // of the rows kept, in plan order
    int64_t span_count, row_count;
    int64_t **runs;   // runs[table][run]: its index in out
    uint32_t *texts;  // of the table under way: index in out + 1, 0 if not interned there yet
} merger;

static qg_status no_memory(void) { return qg_fail(QG_ERROR_MEMORY, "no memory to merge results"); }

static qg_status check_plans(const merger *m) {
    for (int64_t t = 1; t < m->count; t++)
        if (strcmp(qg_table_plan(m->tables[0]), qg_table_plan(m->tables[t])) != 0)
            return qg_fail(QG_ERROR_ARGUMENT,
                           "results 1 and %" PRId64 " are of different plans: they do not merge",
                           t + 1);
    return QG_OK;
}

// --------------------------------------------------------------------------------------- rows

typedef struct cursor {
    int64_t *sorted; // rows of one table in plan order
    int64_t at;
} cursor;

static void free_cursors(cursor *cursors, int64_t count) {
    for (int64_t t = 0; cursors && t < count; t++)
        free(cursors[t].sorted);
    free(cursors);
}

static qg_status sort_each(const merger *m, cursor *cursors) {
    for (int64_t t = 0; t < m->count; t++) {
        size_t rows = (size_t)qg_table_rows(m->tables[t]);
        cursors[t].sorted = malloc((rows ? rows : 1) * sizeof *cursors[t].sorted);
        if (!cursors[t].sorted)
            return no_memory();
        qg_status status = qg_table_sort(m->tables[t], cursors[t].sorted);
        if (status != QG_OK)
            return status;
    }
    return QG_OK;
}

static int compare(const merger *m, source_row a, source_row b) {
    int order = qg_table_compare(m->tables[a.table], a.row, m->tables[b.table], b.row);
    // A stable merge: the earlier table first.
    return order ? order : a.table < b.table ? -1 : a.table > b.table;
}

static source_row head(const cursor *cursors, int64_t table) {
    return (source_row){table, cursors[table].sorted[cursors[table].at]};
}

// A binary heap of tables, the one with the next row at the root.
static void sift_down(const merger *m, const cursor *cursors, int64_t *heap, int64_t count,
                      int64_t at) {
    for (;;) {
        int64_t least = at;
        for (int64_t child = 2 * at + 1; child <= 2 * at + 2 && child < count; child++)
            if (compare(m, head(cursors, heap[child]), head(cursors, heap[least])) < 0)
                least = child;
        if (least == at)
            return;
        int64_t swap = heap[at];
        heap[at] = heap[least];
        heap[least] = swap;
        at = least;
    }
}

// A row without a place in the plan (order -1) equals no other.
static bool repeats(const merger *m, source_row row) {
    if (m->row_count == 0 || qg_table_order(m->tables[row.table], row.row) < 0)
        return false;
    const span *last = &m->spans[m->span_count - 1];
    return qg_table_compare(m->tables[last->table], last->row + last->count - 1,
                            m->tables[row.table], row.row) == 0;
}

static void keep(merger *m, source_row row) {
    span *last = m->span_count ? &m->spans[m->span_count - 1] : NULL;
    if (last && last->table == row.table && last->row + last->count == row.row)
        last->count++;
    else
        m->spans[m->span_count++] = (span){row.table, row.row, 1};
    m->row_count++;
}

static void merge_sorted(merger *m, cursor *cursors, int64_t *heap) {
    int64_t count = 0;
    for (int64_t t = 0; t < m->count; t++)
        if (qg_table_rows(m->tables[t]) > 0)
            heap[count++] = t;
    for (int64_t at = count / 2; at-- > 0;)
        sift_down(m, cursors, heap, count, at);
    while (count > 0) {
        int64_t table = heap[0];
        source_row row = head(cursors, table);
        if (!repeats(m, row))
            keep(m, row);
        if (++cursors[table].at == qg_table_rows(m->tables[table]))
            heap[0] = heap[--count];
        sift_down(m, cursors, heap, count, 0);
    }
}

static qg_status choose_rows(merger *m) {
    size_t total = 0, tables = (size_t)m->count + 1;
    for (int64_t t = 0; t < m->count; t++)
        total += (size_t)qg_table_rows(m->tables[t]);
    m->spans = malloc((total + 1) * sizeof *m->spans);
    cursor *cursors = calloc(tables, sizeof *cursors);
    int64_t *heap = malloc(tables * sizeof *heap);
    qg_status status = m->spans && cursors && heap ? sort_each(m, cursors) : no_memory();
    if (status == QG_OK)
        merge_sorted(m, cursors, heap);
    free_cursors(cursors, m->count);
    free(heap);
    return status;
}

// ------------------------------------------------------------------------------- runs and argv

// Equal in all but their end: parts of one process, written while it went on.
static bool same_run(const qg_run *a, const qg_run *b) {
    if (a->count != b->count)
        return false;
    for (int64_t i = 0; i < a->count; i++)
        if (strcmp(a->keys[i], b->keys[i]) != 0 ||
            (strcmp(a->keys[i], "end") != 0 && strcmp(a->values[i], b->values[i]) != 0))
            return false;
    return true;
}

static qg_status copy_run(qg_table *out, const qg_run *run, int64_t *index) {
    qg_status status = qg_table_add_run(out, index);
    for (int64_t i = 0; i < run->count && status == QG_OK; i++)
        status = qg_table_set_run(out, *index, run->keys[i], run->values[i]);
    return status;
}

// Adds a run, or finds the one it belongs to, which then ends with the later of the two.
static qg_status unite_run(qg_table *out, const qg_run *run, int64_t *index) {
    qg_status status = copy_run(out, run, index);
    if (status != QG_OK)
        return status;
    for (int64_t i = 0; i < *index; i++) {
        if (!same_run(&out->runs[i], &out->runs[*index]))
            continue;
        const char *end = qg_table_run_value(out, *index, "end");
        if (end && strcmp(end, qg_table_run_value(out, i, "end")) > 0)
            status = qg_table_set_run(out, i, "end", end);
        qg_table_drop_last_run(out);
        *index = i;
        return status;
    }
    return QG_OK;
}

static qg_status unite_runs(merger *m) {
    m->runs = calloc((size_t)m->count + 1, sizeof *m->runs);
    if (!m->runs)
        return no_memory();
    for (int64_t t = 0; t < m->count; t++) {
        const qg_table *table = m->tables[t];
        m->runs[t] = malloc(((size_t)table->run_count + 1) * sizeof **m->runs);
        if (!m->runs[t])
            return no_memory();
        for (int64_t i = 0; i < table->run_count; i++) {
            qg_status status = unite_run(m->out, &table->runs[i], &m->runs[t][i]);
            if (status != QG_OK)
                return status;
        }
    }
    return QG_OK;
}

static bool has_argv(const qg_table *table, const char *line) {
    for (int64_t i = 0; i < table->argv_count; i++)
        if (strcmp(table->argv[i], line) == 0)
            return true;
    return false;
}

static qg_status unite_argv(merger *m) {
    for (int64_t t = 0; t < m->count; t++)
        for (int64_t i = 0; i < m->tables[t]->argv_count; i++) {
            const char *line = m->tables[t]->argv[i];
            qg_status status = has_argv(m->out, line) ? QG_OK : qg_table_add_argv(m->out, line);
            if (status != QG_OK)
                return status;
        }
    return QG_OK;
}

// ----------------------------------------------------------------------------------- contents

static bool any_has_column(const merger *m, qg_column column) {
    for (int64_t t = 0; t < m->count; t++)
        if (m->tables[t]->columns[column])
            return true;
    return false;
}

static void copy_elements(const merger *m, qg_column column, char *to, size_t size) {
    for (const span *p = m->spans; p < m->spans + m->span_count; p++) {
        const char *from = m->tables[p->table]->columns[column];
        if (from)
            memcpy(to, from + (size_t)p->row * size, (size_t)p->count * size);
        to += (size_t)p->count * size;
    }
}

static void renumber_runs(const merger *m, int64_t *to) {
    for (const span *p = m->spans; p < m->spans + m->span_count; to += p->count, p++)
        for (int64_t i = 0; i < p->count; i++)
            if (to[i] >= 0)
                to[i] = to[i] < m->tables[p->table]->run_count ? m->runs[p->table][to[i]] : -1;
}

// The index in out of text `from` of a table, interned at its first use.
static qg_status carry_text(const merger *m, const qg_table *table, uint32_t from, uint32_t *to) {
    if (m->texts[from] == 0) {
        qg_status status = qg_text_intern(m->out->texts, qg_text_at(table->texts, from),
                                          qg_text_length(table->texts, from), to);
        if (status != QG_OK)
            return status;
        m->texts[from] = *to + 1;
    }
    *to = m->texts[from] - 1;
    return QG_OK;
}

// Renumbers the texts that came from table t, of another pool.
static qg_status carry_texts_of(const merger *m, int64_t t, uint32_t *to) {
    for (const span *p = m->spans; p < m->spans + m->span_count; to += p->count, p++)
        for (int64_t i = 0; p->table == t && i < p->count; i++) {
            qg_status status = carry_text(m, m->tables[t], to[i], &to[i]);
            if (status != QG_OK)
                return status;
        }
    return QG_OK;
}

static qg_status carry_texts(merger *m, int64_t t) {
    const qg_table *table = m->tables[t];
    if (table->texts == m->out->texts)
        return QG_OK;
    m->texts = calloc((size_t)table->texts->count + 1, sizeof *m->texts);
    qg_status status = m->texts ? QG_OK : no_memory();
    for (int i = 0; i < QG_COLUMN_COUNT && status == QG_OK; i++)
        if (qg_column_describe((qg_column)i)->type == QG_COLUMN_TEXT && table->columns[i])
            status = carry_texts_of(m, t, m->out->columns[i]);
    free(m->texts);
    m->texts = NULL;
    return status;
}

static qg_status copy_columns(merger *m) {
    qg_status status = QG_OK;
    for (int i = 0; i < QG_COLUMN_COUNT && status == QG_OK; i++) {
        qg_column column = (qg_column)i;
        void *to;
        if (!any_has_column(m, column))
            continue;
        status = qg_table_column(m->out, column, &to);
        if (status == QG_OK)
            copy_elements(m, column, to, qg_column_size(qg_column_describe(column)->type));
        if (status == QG_OK && column == QG_COLUMN_RUN)
            renumber_runs(m, to);
    }
    for (int64_t t = 0; t < m->count && status == QG_OK; t++)
        status = carry_texts(m, t);
    return status;
}

static qg_status copy_histograms_of(const merger *m, const qg_table *table, int64_t from,
                                    int64_t to) {
    const int64_t *rel, *ulp;
    if (!qg_table_histograms(table, from, &rel, &ulp))
        return QG_OK;
    if (table->histograms != m->out->histograms)
        return qg_table_set_histograms(m->out, to, rel, ulp);
    m->out->histogram_of[to] = table->histogram_of[from];
    return QG_OK;
}

static qg_status copy_histograms(const merger *m) {
    int64_t row = 0, *histogram_of;
    qg_status status = qg_table_histogram_of(m->out, &histogram_of);
    for (const span *p = m->spans; p < m->spans + m->span_count; p++)
        for (int64_t i = 0; i < p->count && status == QG_OK; i++, row++)
            status = copy_histograms_of(m, m->tables[p->table], p->row + i, row);
    return status;
}

// From the last table to the first, so that the first's stays.
static qg_status copy_operands(const merger *m) {
    for (int64_t t = m->count; t-- > 0;)
        for (int64_t i = 0; i < m->tables[t]->operand_count; i++) {
            const qg_operand *o = &m->tables[t]->operands[i];
            qg_status status = qg_table_add_operand(m->out, o->case_id, o->name, o->bytes, o->size);
            if (status != QG_OK)
                return status;
        }
    return QG_OK;
}

static qg_status copy_contents(merger *m) {
    qg_status status = qg_table_reserve(m->out, m->row_count);
    if (status != QG_OK)
        return status;
    m->out->rows = m->row_count;
    int64_t *order = m->out->order;
    for (const span *p = m->spans; p < m->spans + m->span_count; order += p->count, p++)
        memcpy(order, m->tables[p->table]->order + p->row, (size_t)p->count * sizeof *order);
    status = copy_columns(m);
    if (status == QG_OK)
        status = copy_histograms(m);
    if (status == QG_OK)
        status = copy_operands(m);
    return status;
}

static void release(merger *m) {
    for (int64_t t = 0; m->runs && t < m->count; t++)
        free(m->runs[t]);
    free(m->runs);
    free(m->spans);
    qg_table_free(m->out);
}

qg_status qg_table_merge(const qg_table *const *tables, int64_t count, qg_table **out) {
    merger m = {.tables = tables, .count = count};
    *out = NULL;
    qg_status status = check_plans(&m);
    if (status == QG_OK)
        status = qg_table_create(&m.out);
    if (status == QG_OK && count > 0) // most tables share theirs already: nothing is copied
        qg_table_share_pools(m.out, tables[0]);
    if (status == QG_OK && count > 0 && tables[0]->plan)
        status = qg_table_set_plan(m.out, tables[0]->plan);
    if (status == QG_OK)
        status = choose_rows(&m);
    if (status == QG_OK)
        status = unite_runs(&m);
    if (status == QG_OK)
        status = unite_argv(&m);
    if (status == QG_OK)
        status = copy_contents(&m);
    if (status == QG_OK) {
        *out = m.out;
        m.out = NULL;
    }
    release(&m);
    return status;
}
