// What a table holds: known to the files of this folder that write, read, merge and digest tables.
#ifndef QG_TABLE_INTERNAL_H
#define QG_TABLE_INTERNAL_H

#include <qg_table.h>
#include <text_table_internal.h>

// Bytes of operand `name` of a failing case.
typedef struct qg_operand {
    uint64_t case_id;
    char *name;
    uint8_t *bytes;
    int64_t size;
} qg_operand;

// One process that measured rows: pairs of texts, sorted by key.
typedef struct qg_run {
    char **keys, **values;
    int64_t count;
} qg_run;

typedef struct qg_histogram {
    int64_t rel[QG_HIST_LOG2_BINS], ulp[QG_HIST_ULP_BINS];
} qg_histogram;

struct qg_table {
    int64_t rows, capacity;
    void *columns[QG_COLUMN_COUNT]; // NULL: never set. Texts: uint32_t indices into the pool
    int64_t *order;
    qg_text_pool texts;
    int64_t *histogram_of;       // (rows) index into histograms, -1; NULL: no row has any
    qg_histogram **histograms;   // each its own allocation, so that addresses stay
    int64_t histogram_count, histogram_capacity;
    qg_operand *operands; // sorted by case id and name
    int64_t operand_count, operand_capacity;
    char *plan;
    char **argv;
    int64_t argv_count;
    qg_run *runs;
    int64_t run_count;
    bool has_dump_digest; // read from a file that holds dumps of formats and recipes
    uint64_t dump_digest;
};

// Bytes of an element of a column in memory.
size_t qg_column_size(qg_column_type type);

// Room for `rows` rows in all. QG_ERROR_MEMORY.
qg_status qg_table_reserve(qg_table *table, int64_t rows);
// The column's elements, allocated (and missing everywhere) if they are not yet.
qg_status qg_table_column(qg_table *table, qg_column column, void **out);
// Zeroed histograms of a row, replacing what it had.
qg_status qg_table_add_histogram(qg_table *table, int64_t row, qg_histogram **out);
// Whether any row has a value in the column.
bool qg_table_column_is_set(const qg_table *table, qg_column column);

void qg_table_drop_last_run(qg_table *table);

// Rows in plan order: by order, then reference, then position. `rows` has room for all.
qg_status qg_table_sort(const qg_table *table, int64_t *rows);
// Compares two rows, also of different tables: < 0, 0, > 0.
int qg_table_compare(const qg_table *a, int64_t a_row, const qg_table *b, int64_t b_row);

// The order that rows in plan order have where no case is missing: rows of one case share it.
// `order` has room for all.
void qg_table_derive_order(const qg_table *table, const int64_t *rows, int64_t *order);

// Columns that depend on the run and not on plan and version alone.
bool qg_column_is_volatile(qg_column column);

#endif
