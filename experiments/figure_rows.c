// The rows of a figure: selection, cells, means over seeds. See figure.h.
#include <figure.h>
#include <figure_select.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *qg_figure_text(const qg_figure_row *row, qg_column column) {
    return qg_table_text(row->table, row->row, column);
}

double qg_figure_number(const qg_figure_row *row, qg_column column) {
    const qg_column_info *info = qg_column_describe(column);
    switch (info->type) {
    case QG_COLUMN_F64: return qg_table_f64(row->table, row->row, column);
    case QG_COLUMN_I64: {
        int64_t value = qg_table_i64(row->table, row->row, column);
        return value == info->missing && value < 0 ? NAN : (double)value;
    }
    case QG_COLUMN_U64: return (double)qg_table_u64(row->table, row->row, column);
    case QG_COLUMN_U8: return (double)qg_table_u8(row->table, row->row, column);
    default: return NAN;
    }
}

// -------------------------------------------------------------------------------------- selection

// What was measured: the rest says nothing.
static bool was_measured(const qg_figure_row *row) {
    const char *status = qg_figure_text(row, QG_COLUMN_STATUS);
    return strcmp(status, "RAN") == 0 || strcmp(status, "PASSED") == 0 ||
           strcmp(status, "MISTRUSTED") == 0 || strcmp(status, "FAILED") == 0;
}

// ---------------------------------------------------------------------------------------- repeats

typedef struct seen {
    uint64_t case_id;
    int64_t item;
} seen;

static int by_identity(const void *left, const void *right) {
    const seen *a = left, *b = right;
    if (a->case_id != b->case_id)
        return a->case_id < b->case_id ? -1 : 1;
    return (a->item > b->item) - (a->item < b->item);
}

// Of a case that several files hold the first row counts, lest a mean take it for another seed. A
// case has few rows: one per reference.
static qg_status drop_repeats(qg_figure_row *items, int64_t *count) {
    seen *order = malloc((size_t)(*count + 1) * sizeof *order);
    if (!order)
        return qg_fail(QG_ERROR_MEMORY, "no memory for the rows of a figure");
    for (int64_t i = 0; i < *count; i++)
        order[i] = (seen){qg_table_u64(items[i].table, items[i].row, QG_COLUMN_CASE_ID), i};
    qsort(order, (size_t)*count, sizeof *order, by_identity);
    for (int64_t i = 1; i < *count; i++)
        for (int64_t j = i; j > 0 && order[j - 1].case_id == order[i].case_id; j--) {
            const qg_figure_row *a = &items[order[j - 1].item], *b = &items[order[i].item];
            if (a->table && strcmp(qg_figure_text(a, QG_COLUMN_REFERENCE),
                                   qg_figure_text(b, QG_COLUMN_REFERENCE)) == 0) {
                items[order[i].item].table = NULL;
                break;
            }
        }
    free(order);
    int64_t kept = 0;
    for (int64_t i = 0; i < *count; i++)
        if (items[i].table)
            items[kept++] = items[i];
    *count = kept;
    return QG_OK;
}

qg_status qg_figure_select(const qg_figure_input *input, const char *where, qg_figure_rows *out) {
    *out = (qg_figure_rows){0};
    if (!where)
        return QG_OK;
    qg_expression *expression;
    qg_status status = qg_expression_parse(where, qg_table_columns, &expression);
    if (status != QG_OK)
        return status;
    int64_t total = 0;
    for (int t = 0; t < input->count; t++)
        total += qg_table_rows(input->tables[t]);
    qg_figure_row *items = malloc((size_t)(total > 0 ? total : 1) * sizeof *items);
    if (!items) {
        qg_expression_free(expression);
        return qg_fail(QG_ERROR_MEMORY, "no memory for the rows of a figure");
    }
    int64_t count = 0;
    for (int t = 0; t < input->count; t++)
        for (int64_t row = 0; row < qg_table_rows(input->tables[t]); row++) {
            items[count] = (qg_figure_row){input->tables[t], row};
            count += was_measured(&items[count]) &&
                     qg_expression_holds(expression, qg_table_cell, &items[count]);
        }
    qg_expression_free(expression);
    status = input->count > 1 ? drop_repeats(items, &count) : QG_OK;
    out->items = items;
    out->count = count;
    if (status != QG_OK)
        qg_figure_rows_free(out);
    return status;
}

void qg_figure_rows_free(qg_figure_rows *rows) {
    free((void *)rows->items);
    *rows = (qg_figure_rows){0};
}

// ------------------------------------------------------------------------------------------ means

// What must agree: every axis but the seed.
static const qg_column AXES[] = {QG_COLUMN_OP,         QG_COLUMN_FORMAT,       QG_COLUMN_LAYOUT,
                                 QG_COLUMN_SCALE_RULE, QG_COLUMN_ROUNDING,     QG_COLUMN_FORMAT_B,
                                 QG_COLUMN_LAYOUT_B,   QG_COLUMN_SCALE_RULE_B, QG_COLUMN_UNIT,
                                 QG_COLUMN_INPUT_TYPE, QG_COLUMN_OUT_TYPE,     QG_COLUMN_BACKEND,
                                 QG_COLUMN_DATA,       QG_COLUMN_TENSOR,       QG_COLUMN_REFERENCE};
static const qg_column SIZES[] = {QG_COLUMN_M, QG_COLUMN_N, QG_COLUMN_K, QG_COLUMN_SM_COUNT};

static int compare(const qg_figure_row *a, const qg_figure_row *b) {
    for (size_t i = 0; i < sizeof AXES / sizeof AXES[0]; i++) {
        int order = strcmp(qg_figure_text(a, AXES[i]), qg_figure_text(b, AXES[i]));
        if (order)
            return order;
    }
    for (size_t i = 0; i < sizeof SIZES / sizeof SIZES[0]; i++) {
        int64_t x = qg_table_i64(a->table, a->row, SIZES[i]);
        int64_t y = qg_table_i64(b->table, b->row, SIZES[i]);
        if (x != y)
            return x < y ? -1 : 1;
    }
    return (int)qg_table_u8(a->table, a->row, QG_COLUMN_HAS_BIAS) -
           (int)qg_table_u8(b->table, b->row, QG_COLUMN_HAS_BIAS);
}

static int by_group(const void *a, const void *b) {
    const qg_figure_row *const *x = a, *const *y = b;
    int order = compare(*x, *y);
    return order ? order : (*x > *y) - (*x < *y);
}

static int by_appearance(const void *a, const void *b) {
    const qg_figure_mean *x = a, *y = b;
    return (x->representative > y->representative) - (x->representative < y->representative);
}

// The 97.5 % quantile of Student's t with n - 1 degrees of freedom; beyond the table the expansion
// of Cornish and Fisher (1960), within 1e-3 there.
static double student_quantile(int64_t n) {
    static const double QUANTILES[] = {12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306,
                                       2.262,  2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120};
    enum { COUNT = sizeof QUANTILES / sizeof QUANTILES[0] };
    double z = 1.959964, freedom = (double)(n - 1);
    if (n < 2)
        return 0;
    if (n - 2 < COUNT)
        return QUANTILES[n - 2];
    return z + (z * z * z + z) / (4 * freedom) +
           (5 * pow(z, 5) + 16 * z * z * z + 3 * z) / (96 * freedom * freedom);
}

static qg_figure_mean mean_of(qg_figure_row *const *rows, int64_t count, qg_column column) {
    qg_figure_mean m = {.representative = rows[0], .seeds = count};
    double squares = 0;
    for (int64_t i = 0; i < count; i++)
        m.mean += qg_figure_number(rows[i], column) / (double)count;
    for (int64_t i = 0; i < count; i++) {
        double d = qg_figure_number(rows[i], column) - m.mean;
        squares += d * d;
    }
    if (count > 1 && isfinite(squares))
        m.half_width =
            student_quantile(count) * sqrt(squares / ((double)count * (double)(count - 1)));
    return m;
}

qg_status qg_figure_means(const qg_figure_rows *rows, qg_column column, qg_figure_mean **out,
                          int64_t *count) {
    *out = NULL;
    *count = 0;
    size_t room = (size_t)(rows->count > 0 ? rows->count : 1);
    const qg_figure_row **sorted = malloc(room * sizeof *sorted);
    qg_figure_mean *means = malloc(room * sizeof *means);
    if (!sorted || !means) {
        free(sorted);
        free(means);
        return qg_fail(QG_ERROR_MEMORY, "no memory for the means of a figure");
    }
    for (int64_t i = 0; i < rows->count; i++)
        sorted[i] = &rows->items[i];
    qsort(sorted, (size_t)rows->count, sizeof *sorted, by_group);
    int64_t groups = 0;
    for (int64_t first = 0, next; first < rows->count; first = next) {
        for (next = first + 1; next < rows->count && compare(sorted[first], sorted[next]) == 0;)
            next++;
        means[groups++] = mean_of((qg_figure_row *const *)(sorted + first), next - first, column);
    }
    free(sorted);
    qsort(means, (size_t)groups, sizeof *means, by_appearance);
    *out = means;
    *count = groups;
    return QG_OK;
}
