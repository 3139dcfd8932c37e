// Grouping rows for the end tables. See summary_group.h.
#include <summary_group.h>

#include <qg_axis.h>
#include <word_pool.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct keyed_row {
    const char *key; // interned
    int64_t row;
} keyed_row;

static int by_key(const void *left, const void *right) {
    const keyed_row *a = left, *b = right;
    if (a->key != b->key)
        return (uintptr_t)a->key < (uintptr_t)b->key ? -1 : 1;
    return (a->row > b->row) - (a->row < b->row);
}

static int by_format_then_order(const void *left, const void *right) {
    const summary_group *a = left, *b = right;
    if (a->format_order != b->format_order)
        return a->format_order < b->format_order ? -1 : 1;
    return (a->order > b->order) - (a->order < b->order);
}

static int by_value(const void *left, const void *right) {
    const double *a = left, *b = right;
    return (*a > *b) - (*a < *b);
}

static qg_status key_row(const summary_groups *g, qg_word_pool *pool, int64_t row, keyed_row *out) {
    char key[1024] = "";
    size_t length = 0;
    for (int i = 0; i < g->key_count && length < sizeof key; i++)
        length += (size_t)snprintf(key + length, sizeof key - length, "%s\n",
                                   qg_table_text(g->table, row, g->keys[i]));
    out->row = row;
    return qg_word_pool_keep(pool, key, &out->key);
}

static bool is_like(const summary_groups *g, const qg_case *c, int64_t row) {
    for (int i = 0; i < g->key_count; i++)
        if (strcmp(qg_axis_cell(c, g->keys[i]).text, qg_table_text(g->table, row, g->keys[i])) != 0)
            return false;
    return true;
}

// The place in the plan of the first case like the row, whether or not that case has a result: a
// part of a sweep is listed in the order of the whole.
static int64_t order_of(const summary_groups *g, const qg_plan *plan, int64_t row) {
    int64_t own = qg_table_order(g->table, row);
    for (int64_t i = 0; i < own && i < qg_plan_count(plan); i++)
        if (is_like(g, qg_plan_case(plan, i), row))
            return i;
    return own;
}

static void set_orders(summary_groups *g, const qg_plan *plan) {
    for (int64_t i = 0; i < g->count; i++)
        g->groups[i].order = g->groups[i].format_order = order_of(g, plan, g->groups[i].rows[0]);
    for (int64_t i = 0; i < g->count; i++)
        for (int64_t j = 0; j < g->count; j++)
            if (g->groups[j].order < g->groups[i].format_order &&
                strcmp(summary_group_text(g, j, QG_COLUMN_FORMAT),
                       summary_group_text(g, i, QG_COLUMN_FORMAT)) == 0)
                g->groups[i].format_order = g->groups[j].order;
}

static void cut_groups(summary_groups *g, const keyed_row *keyed, int64_t count) {
    for (int64_t i = 0; i < count; i++)
        g->rows[i] = keyed[i].row;
    for (int64_t first = 0, last; first < count; first = last) {
        for (last = first + 1; last < count && keyed[last].key == keyed[first].key; last++)
            ;
        g->groups[g->count++] = (summary_group){.rows = g->rows + first, .count = last - first};
    }
}

static qg_status group_rows(summary_groups *g, const qg_plan *plan, qg_word_pool *pool,
                            keyed_row *keyed, bool (*takes)(const qg_table *table, int64_t row)) {
    int64_t count = 0;
    for (int64_t row = 0; row < qg_table_rows(g->table); row++) {
        if (!takes(g->table, row))
            continue;
        qg_status status = key_row(g, pool, row, &keyed[count++]);
        if (status != QG_OK)
            return status;
    }
    if (count == 0)
        return QG_OK;
    qsort(keyed, (size_t)count, sizeof *keyed, by_key);
    cut_groups(g, keyed, count);
    set_orders(g, plan);
    qsort(g->groups, (size_t)g->count, sizeof *g->groups, by_format_then_order);
    return QG_OK;
}

qg_status summary_groups_make(const qg_plan *plan, const qg_table *table, const qg_column *keys,
                              int key_count, bool (*takes)(const qg_table *table, int64_t row),
                              summary_groups *out) {
    *out = (summary_groups){.table = table, .keys = keys, .key_count = key_count};
    size_t rows = (size_t)qg_table_rows(table) + 1;
    qg_word_pool *pool;
    qg_status status = qg_word_pool_create(&pool);
    if (status != QG_OK)
        return status;
    keyed_row *keyed = malloc(rows * sizeof *keyed);
    out->rows = malloc(rows * sizeof *out->rows);
    out->values = malloc(rows * sizeof *out->values);
    out->groups = malloc(rows * sizeof *out->groups);
    status = keyed && out->rows && out->values && out->groups
                 ? group_rows(out, plan, pool, keyed, takes)
                 : qg_fail(QG_ERROR_MEMORY, "no memory for the table of results");
    free(keyed);
    qg_word_pool_free(pool);
    return status;
}

void summary_groups_free(summary_groups *groups) {
    free(groups->groups);
    free(groups->rows);
    free(groups->values);
}

const char *summary_group_text(const summary_groups *g, int64_t group, qg_column column) {
    return qg_table_text(g->table, g->groups[group].rows[0], column);
}

bool summary_groups_vary(const summary_groups *g, qg_column column) {
    for (int64_t i = 1; i < g->count; i++)
        if (strcmp(summary_group_text(g, i, column), summary_group_text(g, 0, column)) != 0)
            return true;
    return false;
}

// ------------------------------------------------------------------------------------- statistics

static bool is_of(const summary_groups *g, int64_t row, summary_rows rows) {
    return strcmp(qg_table_text(g->table, row, QG_COLUMN_REFERENCE), rows.reference) == 0 &&
           (!rows.tensor ||
            strcmp(qg_table_text(g->table, row, QG_COLUMN_TENSOR), rows.tensor) == 0);
}

int64_t summary_group_cases(const summary_groups *g, int64_t group, summary_rows rows) {
    int64_t count = 0;
    for (int64_t i = 0; i < g->groups[group].count; i++)
        count += is_of(g, g->groups[group].rows[i], rows);
    return count;
}

double summary_group_median(const summary_groups *g, int64_t group, qg_column column,
                            summary_rows rows) {
    int64_t kept = 0;
    for (int64_t i = 0; i < g->groups[group].count; i++) {
        int64_t row = g->groups[group].rows[i];
        double value = qg_table_f64(g->table, row, column);
        if (!isnan(value) && is_of(g, row, rows))
            g->values[kept++] = value;
    }
    if (kept == 0)
        return NAN;
    qsort(g->values, (size_t)kept, sizeof *g->values, by_value);
    double high = g->values[kept / 2], low = g->values[(kept - 1) / 2];
    return high == low ? high : low + (high - low) / 2;
}

double summary_group_share(const summary_groups *g, int64_t group, qg_column column,
                           summary_rows rows) {
    double part = 0, whole = 0;
    for (int64_t i = 0; i < g->groups[group].count; i++) {
        int64_t row = g->groups[group].rows[i], value = qg_table_i64(g->table, row, column);
        if (value < 0 || !is_of(g, row, rows))
            continue;
        part += (double)value;
        whole += (double)qg_table_i64(g->table, row, QG_COLUMN_COUNT_N);
    }
    return whole > 0 ? part / whole : NAN;
}

int64_t summary_group_least(const summary_groups *g, int64_t group, qg_column column,
                            summary_rows rows) {
    int64_t least = -1;
    for (int64_t i = 0; i < g->groups[group].count; i++) {
        int64_t row = g->groups[group].rows[i];
        double value = qg_table_f64(g->table, row, column);
        if (!isnan(value) && is_of(g, row, rows) &&
            (least < 0 || value < qg_table_f64(g->table, least, column)))
            least = row;
    }
    return least;
}
