// Columns in memory: allocated when first set, grown together; and the order of their rows. Knows
// nothing of sums, operands and runs. See qg_table.h.
#include <table_internal.h>

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_CAPACITY = 64 };

qg_status qg_table_no_memory(const char *what) {
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
    return qg_table_no_memory("the head");
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
    qg_table_free_records(table);
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

bool qg_table_resize(void **elements, int64_t count, size_t size) {
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
    bool fits = qg_table_resize(&order, capacity, sizeof *table->order);
    table->order = order;
    if (fits && histogram_of)
        fits = qg_table_resize(&histogram_of, capacity, sizeof *table->histogram_of);
    table->histogram_of = histogram_of;
    for (int i = 0; fits && i < QG_COLUMN_COUNT; i++)
        if (table->columns[i])
            fits = qg_table_resize(&table->columns[i], capacity,
                                   qg_column_size(qg_column_describe((qg_column)i)->type));
    if (!fits)
        return qg_table_no_memory("the rows");
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
            return qg_table_no_memory("the rows");
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
        if (!qg_table_resize(&elements, table->capacity, qg_column_size(info->type)))
            return qg_table_no_memory("a column");
        fill_missing(elements, info, 0, table->capacity);
        table->columns[column] = elements;
    }
    *out = table->columns[column];
    return QG_OK;
}

qg_status qg_table_histogram_of(qg_table *table, int64_t **out) {
    void *histogram_of = table->histogram_of;
    if (!histogram_of) {
        if (!qg_table_resize(&histogram_of, table->capacity, sizeof *table->histogram_of))
            return qg_table_no_memory("the histograms");
        table->histogram_of = histogram_of;
        fill_minus_one(table->histogram_of, 0, table->capacity);
    }
    *out = table->histogram_of;
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
        copy = qg_text_copy_as_utf8(value);
        if (!copy)
            return qg_table_no_memory("a text");
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
        return qg_table_no_memory("the order");
    for (int64_t width = 1; width < count; width *= 2)
        for (int64_t begin = 0; begin + width < count; begin += 2 * width) {
            int64_t end = begin + 2 * width;
            merge_halves(table, rows, spare, begin, begin + width, end < count ? end : count);
        }
    free(spare);
    return QG_OK;
}
