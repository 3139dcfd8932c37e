// Columns in memory: allocated when first set, grown together. See qg_table.h.
#include <table_internal.h>

#include <qg_bits.h>
#include <qg_size.h>

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_CAPACITY = 64 };

static qg_status no_memory(const char *what) {
    return qg_fail(QG_ERROR_MEMORY, "no memory for %s of a table of results", what);
}

static qg_histogram_pool *create_histograms(void) {
    qg_histogram_pool *pool = calloc(1, sizeof *pool);
    if (pool)
        pool->users = 1;
    return pool;
}

static void release_histograms(qg_histogram_pool *pool) {
    if (!pool || --pool->users > 0)
        return;
    free(pool->rel);
    free(pool->ulp);
    free(pool);
}

qg_status qg_table_create(qg_table **out) {
    qg_table *table = calloc(1, sizeof *table);
    *out = table;
    if (table) {
        table->texts = qg_text_pool_create();
        table->histograms = create_histograms();
    }
    if (table && table->texts && table->histograms)
        return QG_OK;
    qg_table_free(table);
    *out = NULL;
    return no_memory("the head");
}

static void free_texts(char **texts, int64_t count) {
    for (int64_t i = 0; i < count; i++)
        free(texts[i]);
    free(texts);
}

static void free_run(qg_run *run) {
    free_texts(run->keys, run->count);
    free_texts(run->values, run->count);
}

static void free_operands(qg_operand *operands, int64_t count) {
    for (int64_t i = 0; i < count; i++) {
        free(operands[i].name);
        free(operands[i].bytes);
    }
    free(operands);
}

void qg_table_free(qg_table *table) {
    if (!table)
        return;
    for (int i = 0; i < QG_COLUMN_COUNT; i++)
        free(table->columns[i]);
    free(table->order);
    qg_text_pool_release(table->texts);
    free(table->histogram_of);
    release_histograms(table->histograms);
    free_operands(table->operands, table->operand_count);
    free(table->plan);
    free_texts(table->argv, table->argv_count);
    for (int64_t i = 0; i < table->run_count; i++)
        free_run(&table->runs[i]);
    free(table->runs);
    free(table);
}

void qg_table_share_pools(qg_table *table, const qg_table *other) {
    qg_text_pool_release(table->texts);
    release_histograms(table->histograms);
    table->texts = qg_text_pool_share(other->texts);
    table->histograms = other->histograms;
    table->histograms->users++;
}

int64_t qg_table_rows(const qg_table *table) { return table->rows; }

// ------------------------------------------------------------------------------------- columns

size_t qg_column_size(qg_column_type type) {
    switch (type) {
    case QG_COLUMN_U8: return 1;
    case QG_COLUMN_TEXT: return 4;
    default: return 8;
    }
}

static void fill_missing(void *elements, const qg_column_info *info, int64_t begin, int64_t end) {
    size_t size = qg_column_size(info->type);
    if (info->type == QG_COLUMN_F64)
        for (int64_t i = begin; i < end; i++)
            ((double *)elements)[i] = (double)NAN;
    else if (info->type == QG_COLUMN_I64)
        for (int64_t i = begin; i < end; i++)
            ((int64_t *)elements)[i] = info->missing;
    else if (end > begin)
        memset((char *)elements + (size_t)begin * size, 0, (size_t)(end - begin) * size);
}

static void fill_minus_one(int64_t *elements, int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i++)
        elements[i] = -1;
}

// Makes *elements hold `count`; on failure it is as it was.
static bool resize(void **elements, int64_t count, size_t size) {
    if (count < 0 || (uint64_t)count > SIZE_MAX / 2 / size)
        return false;
    void *moved = realloc(*elements, count ? (size_t)count * size : 1);
    if (!moved)
        return false;
    *elements = moved;
    return true;
}

static qg_status grow(qg_table *table, int64_t capacity) {
    int64_t begin = table->capacity;
    void *order = table->order, *histogram_of = table->histogram_of;
    bool fits = resize(&order, capacity, sizeof *table->order);
    table->order = order;
    if (fits && histogram_of)
        fits = resize(&histogram_of, capacity, sizeof *table->histogram_of);
    table->histogram_of = histogram_of;
    for (int i = 0; fits && i < QG_COLUMN_COUNT; i++)
        if (table->columns[i])
            fits = resize(&table->columns[i], capacity,
                          qg_column_size(qg_column_describe((qg_column)i)->type));
    if (!fits)
        return no_memory("the rows");
    fill_minus_one(table->order, begin, capacity);
    if (table->histogram_of)
        fill_minus_one(table->histogram_of, begin, capacity);
    for (int i = 0; i < QG_COLUMN_COUNT; i++)
        if (table->columns[i])
            fill_missing(table->columns[i], qg_column_describe((qg_column)i), begin, capacity);
    table->capacity = capacity;
    return QG_OK;
}

qg_status qg_table_reserve(qg_table *table, int64_t rows) {
    return rows <= table->capacity ? QG_OK : grow(table, rows);
}

qg_status qg_table_append(qg_table *table, int64_t *row) {
    if (table->rows == table->capacity) {
        if (table->capacity > INT64_MAX / 2)
            return no_memory("the rows");
        qg_status status = grow(table, table->capacity ? 2 * table->capacity : FIRST_CAPACITY);
        if (status != QG_OK)
            return status;
    }
    *row = table->rows++; // the room was filled with what is missing when it was made
    return QG_OK;
}

qg_status qg_table_column(qg_table *table, qg_column column, void **out) {
    if (!table->columns[column]) {
        const qg_column_info *info = qg_column_describe(column);
        void *elements = NULL;
        if (!resize(&elements, table->capacity, qg_column_size(info->type)))
            return no_memory("a column");
        fill_missing(elements, info, 0, table->capacity);
        table->columns[column] = elements;
    }
    *out = table->columns[column];
    return QG_OK;
}

static void check(const qg_table *table, int64_t row, qg_column column, qg_column_type type) {
    assert(row >= 0 && row < table->rows);
    assert((int)column >= 0 && column < QG_COLUMN_COUNT);
    assert(qg_column_describe(column)->type == type);
    (void)table, (void)row, (void)column, (void)type;
}

// The elements to set; NULL and QG_OK where the column was never set and need not be: a row without
// a value costs nothing.
static qg_status to_set(qg_table *table, qg_column column, bool missing, void **elements) {
    *elements = table->columns[column];
    return *elements || missing ? QG_OK : qg_table_column(table, column, elements);
}

qg_status qg_table_set_f64(qg_table *table, int64_t row, qg_column column, double value) {
    check(table, row, column, QG_COLUMN_F64);
    void *elements;
    qg_status status = to_set(table, column, isnan(value), &elements);
    if (elements)
        ((double *)elements)[row] = isnan(value) ? (double)NAN : value; // one NaN, so equal files
    return status;
}

qg_status qg_table_set_i64(qg_table *table, int64_t row, qg_column column, int64_t value) {
    check(table, row, column, QG_COLUMN_I64);
    void *elements;
    bool missing = value == qg_column_describe(column)->missing;
    qg_status status = to_set(table, column, missing, &elements);
    if (elements)
        ((int64_t *)elements)[row] = value;
    return status;
}

qg_status qg_table_set_u64(qg_table *table, int64_t row, qg_column column, uint64_t value) {
    check(table, row, column, QG_COLUMN_U64);
    void *elements;
    qg_status status = to_set(table, column, value == 0, &elements);
    if (elements)
        ((uint64_t *)elements)[row] = value;
    return status;
}

qg_status qg_table_set_u8(qg_table *table, int64_t row, qg_column column, uint8_t value) {
    check(table, row, column, QG_COLUMN_U8);
    void *elements;
    qg_status status = to_set(table, column, value == 0, &elements);
    if (elements)
        ((uint8_t *)elements)[row] = value;
    return status;
}

// A copy in which bytes that are no UTF-8 (a file's name may hold them) are question marks.
static char *copy_as_utf8(const char *text) {
    size_t length = strlen(text), bad = 0;
    char *copy = malloc(length + 1);
    if (!copy)
        return NULL;
    memcpy(copy, text, length + 1);
    for (size_t at = 0; !qg_text_is_utf8(copy + at, length - at, &bad); at += bad)
        copy[at + bad] = '?';
    return copy;
}

qg_status qg_table_set_text(qg_table *table, int64_t row, qg_column column, const char *value) {
    check(table, row, column, QG_COLUMN_TEXT);
    void *elements;
    qg_status status = to_set(table, column, !*value, &elements);
    if (!elements)
        return status;
    uint32_t *last = &table->last_texts[column];
    if (strcmp(value, qg_text_at(table->texts, *last)) == 0) { // neither checked nor hashed again
        ((uint32_t *)elements)[row] = *last;
        return QG_OK;
    }
    size_t bad;
    char *copy = NULL;
    if (!qg_text_is_utf8(value, strlen(value), &bad)) {
        copy = copy_as_utf8(value);
        if (!copy)
            return no_memory("a text");
        value = copy;
    }
    status = qg_text_intern(table->texts, value, strlen(value), last);
    if (status == QG_OK)
        ((uint32_t *)elements)[row] = *last;
    free(copy);
    return status;
}

double qg_table_f64(const qg_table *table, int64_t row, qg_column column) {
    check(table, row, column, QG_COLUMN_F64);
    const double *elements = table->columns[column];
    return elements ? elements[row] : (double)NAN;
}

int64_t qg_table_i64(const qg_table *table, int64_t row, qg_column column) {
    check(table, row, column, QG_COLUMN_I64);
    const int64_t *elements = table->columns[column];
    return elements ? elements[row] : qg_column_describe(column)->missing;
}

uint64_t qg_table_u64(const qg_table *table, int64_t row, qg_column column) {
    check(table, row, column, QG_COLUMN_U64);
    const uint64_t *elements = table->columns[column];
    return elements ? elements[row] : 0;
}

uint8_t qg_table_u8(const qg_table *table, int64_t row, qg_column column) {
    check(table, row, column, QG_COLUMN_U8);
    const uint8_t *elements = table->columns[column];
    return elements ? elements[row] : 0;
}

const char *qg_table_text(const qg_table *table, int64_t row, qg_column column) {
    check(table, row, column, QG_COLUMN_TEXT);
    const uint32_t *elements = table->columns[column];
    return elements ? qg_text_at(table->texts, elements[row]) : "";
}

static bool is_missing(const void *elements, const qg_column_info *info, int64_t row) {
    switch (info->type) {
    case QG_COLUMN_F64: return isnan(((const double *)elements)[row]);
    case QG_COLUMN_I64: return ((const int64_t *)elements)[row] == info->missing;
    case QG_COLUMN_U64: return ((const uint64_t *)elements)[row] == 0;
    case QG_COLUMN_U8: return ((const uint8_t *)elements)[row] == 0;
    case QG_COLUMN_TEXT: return ((const uint32_t *)elements)[row] == 0;
    }
    return true;
}

bool qg_table_column_is_set(const qg_table *table, qg_column column) {
    if (table->columns[column])
        for (int64_t row = 0; row < table->rows; row++)
            if (!is_missing(table->columns[column], qg_column_describe(column), row))
                return true;
    return false;
}

bool qg_column_is_volatile(qg_column column) {
    return column == QG_COLUMN_RUN || column == QG_COLUMN_SECONDS ||
           column == QG_COLUMN_IMPL_USED ||
           strcmp(qg_column_describe(column)->group, "timing") == 0;
}

// --------------------------------------------------------------------------------------- order

void qg_table_set_order(qg_table *table, int64_t row, int64_t order) {
    assert(row >= 0 && row < table->rows);
    table->order[row] = order;
}

int64_t qg_table_order(const qg_table *table, int64_t row) {
    assert(row >= 0 && row < table->rows);
    return table->order[row];
}

void qg_table_derive_order(const qg_table *table, const int64_t *rows, int64_t *order) {
    for (int64_t i = 0; i < table->rows; i++) {
        bool same_case = i > 0 && qg_table_u64(table, rows[i], QG_COLUMN_CASE_ID) ==
                                      qg_table_u64(table, rows[i - 1], QG_COLUMN_CASE_ID);
        order[i] = i == 0 ? 0 : order[i - 1] + !same_case;
    }
}

int qg_table_compare(const qg_table *a, int64_t a_row, const qg_table *b, int64_t b_row) {
    int64_t a_order = a->order[a_row], b_order = b->order[b_row];
    if (a_order != b_order)
        return a_order < b_order ? -1 : 1;
    return strcmp(qg_table_text(a, a_row, QG_COLUMN_REFERENCE),
                  qg_table_text(b, b_row, QG_COLUMN_REFERENCE));
}

static bool is_sorted(const qg_table *table) {
    for (int64_t row = 1; row < table->rows; row++)
        if (qg_table_compare(table, row - 1, table, row) > 0)
            return false;
    return true;
}

// Merges the sorted halves [begin, middle) and [middle, end) of `rows`, through `spare`.
static void merge_halves(const qg_table *table, int64_t *rows, int64_t *spare, int64_t begin,
                         int64_t middle, int64_t end) {
    memcpy(spare + begin, rows + begin, (size_t)(end - begin) * sizeof *rows);
    int64_t left = begin, right = middle;
    for (int64_t at = begin; at < end; at++) {
        bool takes_left =
            left < middle &&
            (right == end || qg_table_compare(table, spare[left], table, spare[right]) <= 0);
        rows[at] = takes_left ? spare[left++] : spare[right++];
    }
}

qg_status qg_table_sort(const qg_table *table, int64_t *rows) {
    int64_t count = table->rows;
    for (int64_t i = 0; i < count; i++)
        rows[i] = i;
    if (is_sorted(table))
        return QG_OK;
    int64_t *spare = malloc((size_t)count * sizeof *spare);
    if (!spare)
        return no_memory("the order");
    for (int64_t width = 1; width < count; width *= 2)
        for (int64_t begin = 0; begin + width < count; begin += 2 * width) {
            int64_t end = begin + 2 * width;
            merge_halves(table, rows, spare, begin, begin + width, end < count ? end : count);
        }
    free(spare);
    return QG_OK;
}

// ---------------------------------------------------------------------------------------- sums

static bool reserve_histogram(qg_histogram_pool *pool) {
    if (pool->count < pool->capacity)
        return true;
    int64_t capacity = pool->capacity ? 2 * pool->capacity : FIRST_CAPACITY;
    void *rel = pool->rel, *ulp = pool->ulp;
    bool fits = resize(&rel, capacity, sizeof *pool->rel);
    pool->rel = rel;
    fits = fits && resize(&ulp, capacity, sizeof *pool->ulp);
    pool->ulp = ulp;
    if (fits)
        pool->capacity = capacity;
    return fits;
}

qg_status qg_table_histogram_of(qg_table *table, int64_t **out) {
    void *histogram_of = table->histogram_of;
    if (!histogram_of) {
        if (!resize(&histogram_of, table->capacity, sizeof *table->histogram_of))
            return no_memory("the histograms");
        table->histogram_of = histogram_of;
        fill_minus_one(table->histogram_of, 0, table->capacity);
    }
    *out = table->histogram_of;
    return QG_OK;
}

qg_status qg_table_set_histograms(qg_table *table, int64_t row, const int64_t *rel,
                                  const int64_t *ulp) {
    assert(row >= 0 && row < table->rows);
    qg_histogram_pool *pool = table->histograms;
    int64_t *histogram_of;
    qg_status status = qg_table_histogram_of(table, &histogram_of);
    if (status == QG_OK && !reserve_histogram(pool))
        status = no_memory("the histograms");
    if (status != QG_OK)
        return status;
    memcpy(pool->rel[pool->count], rel, sizeof *pool->rel);
    memcpy(pool->ulp[pool->count], ulp, sizeof *pool->ulp);
    histogram_of[row] = pool->count++;
    return QG_OK;
}

bool qg_table_histograms(const qg_table *table, int64_t row, const int64_t **rel,
                         const int64_t **ulp) {
    assert(row >= 0 && row < table->rows);
    if (!table->histogram_of || table->histogram_of[row] < 0)
        return false;
    *rel = table->histograms->rel[table->histogram_of[row]];
    *ulp = table->histograms->ulp[table->histogram_of[row]];
    return true;
}

typedef struct count_value {
    qg_column column;
    int64_t value;
} count_value;
typedef struct sum_value {
    qg_column column;
    double value;
} sum_value;

static qg_status set_counts(qg_table *table, int64_t row, const qg_sums *s) {
    const count_value values[] = {
        {QG_COLUMN_COUNT_N, s->n},
        {QG_COLUMN_COUNT_UNDERFLOWED, s->underflowed},
        {QG_COLUMN_COUNT_EXACT, s->exact},
        {QG_COLUMN_SUM_N_FINITE, s->n_finite},
        {QG_COLUMN_SUM_NAN_REFERENCE, s->nan_reference},
        {QG_COLUMN_SUM_NAN_OUTPUT, s->nan_output},
        {QG_COLUMN_SUM_INF_REFERENCE, s->inf_reference},
        {QG_COLUMN_SUM_INF_OUTPUT, s->inf_output},
        {QG_COLUMN_SUM_ZERO_REFERENCE, s->zero_reference},
        {QG_COLUMN_SUM_ZERO_OUTPUT, s->zero_output},
        {QG_COLUMN_SUM_SIGN_FLIPS, s->sign_flips},
        {QG_COLUMN_SUM_UNDERFLOWED, s->underflowed},
        {QG_COLUMN_SUM_EXACT, s->exact},
        {QG_COLUMN_SUM_ZERO_REFERENCE_NONZERO_ERROR, s->zero_reference_nonzero_error},
        {QG_COLUMN_SUM_MAX_ABS_E_INDEX, s->max_abs_e_index},
        {QG_COLUMN_SUM_MAX_REL_E_INDEX, s->max_rel_e_index},
    };
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        qg_status status = qg_table_set_i64(table, row, values[i].column, values[i].value);
        if (status != QG_OK)
            return status;
    }
    return QG_OK;
}

static qg_status set_sums(qg_table *table, int64_t row, const qg_sums *s) {
    const sum_value values[] = {
        {QG_COLUMN_SUM_X, qg_sum_value(s->x)},
        {QG_COLUMN_SUM_XX, qg_sum_value(s->xx)},
        {QG_COLUMN_SUM_QQ, qg_sum_value(s->qq)},
        {QG_COLUMN_SUM_XQ, qg_sum_value(s->xq)},
        {QG_COLUMN_SUM_E, qg_sum_value(s->e)},
        {QG_COLUMN_SUM_ABS_E, qg_sum_value(s->abs_e)},
        {QG_COLUMN_SUM_E_SIGN_X, qg_sum_value(s->e_sign_x)},
        {QG_COLUMN_SUM_EE, qg_sum_value(s->ee)},
        {QG_COLUMN_SUM_ABS_X, qg_sum_value(s->abs_x)},
        {QG_COLUMN_SUM_MAX_ABS_E, s->max_abs_e},
        {QG_COLUMN_SUM_MAX_REL_E, s->max_rel_e},
        {QG_COLUMN_SUM_MAX_ABS_X, s->max_abs_x},
        {QG_COLUMN_SUM_MAX_ULP, s->max_ulp},
    };
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        qg_status status = qg_table_set_f64(table, row, values[i].column, values[i].value);
        if (status != QG_OK)
            return status;
    }
    return QG_OK;
}

// The metrics' columns follow one another in the order of their own table.
static qg_status set_metrics(qg_table *table, int64_t row, const qg_sums *sums) {
    for (int i = 0; i < QG_METRIC_COUNT; i++) {
        qg_column column = (qg_column)(QG_COLUMN_METRIC_QSNR_DB + i);
        qg_status status =
            qg_table_set_f64(table, row, column, qg_metric_value(sums, (qg_metric)i));
        if (status != QG_OK)
            return status;
    }
    return QG_OK;
}

qg_status qg_table_set_sums(qg_table *table, int64_t row, const qg_sums *sums) {
    qg_status status = set_counts(table, row, sums);
    if (status == QG_OK)
        status = set_sums(table, row, sums);
    if (status == QG_OK)
        status = set_metrics(table, row, sums);
    if (status == QG_OK)
        status = qg_table_set_histograms(table, row, sums->hist_rel, sums->hist_ulp);
    return status;
}

// ------------------------------------------------------------------------------------ operands

// The first operand not before (case_id, name); *found if it is that one.
static int64_t operand_position(const qg_table *table, uint64_t case_id, const char *name,
                                bool *found) {
    int64_t begin = 0, end = table->operand_count;
    *found = false;
    while (begin < end) {
        int64_t middle = begin + (end - begin) / 2;
        const qg_operand *operand = &table->operands[middle];
        int order = operand->case_id < case_id   ? -1
                    : operand->case_id > case_id ? 1
                                                 : strcmp(operand->name, name);
        *found = *found || order == 0;
        if (order < 0)
            begin = middle + 1;
        else
            end = middle;
    }
    return begin;
}

static bool is_object_name(const char *name) {
    size_t bad;
    return name[0] && !strchr(name, '/') && strcmp(name, ".") != 0 && strcmp(name, "..") != 0 &&
           qg_text_is_utf8(name, strlen(name), &bad);
}

static bool reserve_operand(qg_table *table) {
    if (table->operand_count < table->operand_capacity)
        return true;
    int64_t capacity = table->operand_capacity ? 2 * table->operand_capacity : 16;
    void *operands = table->operands;
    if (!resize(&operands, capacity, sizeof *table->operands))
        return false;
    table->operands = operands;
    table->operand_capacity = capacity;
    return true;
}

qg_status qg_table_add_operand(qg_table *table, uint64_t case_id, const char *name,
                               const void *bytes, int64_t size) {
    if (!is_object_name(name) || size < 0)
        return qg_fail(QG_ERROR_ARGUMENT, "operand \"%s\" of %" PRId64 " bytes: not a name or size",
                       name, size);
    uint8_t *copy = malloc(size ? (size_t)size : 1);
    char *name_copy = strdup(name);
    if (!copy || !name_copy || !reserve_operand(table)) {
        free(copy);
        free(name_copy);
        return no_memory("an operand");
    }
    if (size)
        memcpy(copy, bytes, (size_t)size);
    bool found;
    int64_t at = operand_position(table, case_id, name, &found);
    qg_operand *operand = &table->operands[at];
    if (found) {
        free(operand->name);
        free(operand->bytes);
    } else {
        memmove(operand + 1, operand, (size_t)(table->operand_count - at) * sizeof *operand);
        table->operand_count++;
    }
    *operand = (qg_operand){case_id, name_copy, copy, size};
    return QG_OK;
}

// -------------------------------------------------------------------------------- plan and runs

qg_status qg_table_set_plan(qg_table *table, const char *text) {
    char *copy = copy_as_utf8(text);
    if (!copy)
        return no_memory("the plan");
    free(table->plan);
    table->plan = copy;
    return QG_OK;
}

const char *qg_table_plan(const qg_table *table) { return table->plan ? table->plan : ""; }

static qg_status add_text(char ***texts, int64_t count, const char *text) {
    void *moved = *texts;
    if (!resize(&moved, count + 1, sizeof **texts))
        return no_memory("a text");
    *texts = moved;
    (*texts)[count] = copy_as_utf8(text);
    return (*texts)[count] ? QG_OK : no_memory("a text");
}

qg_status qg_table_add_argv(qg_table *table, const char *command_line) {
    qg_status status = add_text(&table->argv, table->argv_count, command_line);
    if (status == QG_OK)
        table->argv_count++;
    return status;
}

qg_status qg_table_add_run(qg_table *table, int64_t *run) {
    void *runs = table->runs;
    if (!resize(&runs, table->run_count + 1, sizeof *table->runs))
        return no_memory("a run");
    table->runs = runs;
    table->runs[table->run_count] = (qg_run){0};
    *run = table->run_count++;
    return QG_OK;
}

void qg_table_drop_last_run(qg_table *table) { free_run(&table->runs[--table->run_count]); }

static int64_t run_key(const qg_run *run, const char *key) {
    for (int64_t i = 0; i < run->count; i++)
        if (strcmp(run->keys[i], key) == 0)
            return i;
    return -1;
}

// Moves the last pair to its place among the sorted ones before it.
static void sink_last_key(qg_run *run) {
    for (int64_t i = run->count - 1; i > 0 && strcmp(run->keys[i - 1], run->keys[i]) > 0; i--) {
        char *key = run->keys[i], *value = run->values[i];
        run->keys[i] = run->keys[i - 1];
        run->values[i] = run->values[i - 1];
        run->keys[i - 1] = key;
        run->values[i - 1] = value;
    }
}

qg_status qg_table_set_run(qg_table *table, int64_t index, const char *key, const char *value) {
    assert(index >= 0 && index < table->run_count);
    if (!is_object_name(key))
        return qg_fail(QG_ERROR_ARGUMENT, "\"%s\" is no key of a run", key);
    qg_run *run = &table->runs[index];
    int64_t at = run_key(run, key);
    if (at >= 0) {
        char *copy = copy_as_utf8(value);
        if (!copy)
            return no_memory("a run");
        free(run->values[at]);
        run->values[at] = copy;
        return QG_OK;
    }
    qg_status status = add_text(&run->keys, run->count, key);
    if (status != QG_OK)
        return status;
    status = add_text(&run->values, run->count, value);
    if (status != QG_OK) {
        free(run->keys[run->count]);
        return status;
    }
    run->count++;
    sink_last_key(run);
    return QG_OK;
}

int64_t qg_table_runs(const qg_table *table) { return table->run_count; }

const char *qg_table_run_value(const qg_table *table, int64_t index, const char *key) {
    assert(index >= 0 && index < table->run_count);
    int64_t at = run_key(&table->runs[index], key);
    return at < 0 ? NULL : table->runs[index].values[at];
}
