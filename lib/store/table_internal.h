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

typedef int64_t qg_rel_bins[QG_HIST_LOG2_BINS];
typedef int64_t qg_ulp_bins[QG_HIST_ULP_BINS];

// Histograms, more than half of what tables hold: never changed, and shared by merged tables.
typedef struct qg_histogram_pool {
    int64_t users, count, capacity;
    qg_rel_bins *rel;
    qg_ulp_bins *ulp;
} qg_histogram_pool;

struct qg_table {
    int64_t rows, capacity;
    void *columns[QG_COLUMN_COUNT]; // NULL: never set. Texts: uint32_t indices into the pool
    int64_t *order;
    qg_text_pool *texts;
    uint32_t last_texts[QG_COLUMN_COUNT]; // the text set last in each column: most repeat it
    qg_histogram_pool *histograms;
    int64_t *histogram_of; // (rows) index into the pool, -1; NULL: no row has any
    qg_operand *operands; // sorted by case id and name
    int64_t operand_count, operand_capacity;
    char *plan;
    char **argv;
    int64_t argv_count;
    qg_run *runs;
    int64_t run_count;
    bool has_dump_digest; // read from a file that holds dumps of the tables
    uint64_t dump_digest;
};

// Bytes of an element of a column in memory.
size_t qg_column_size(qg_column_type type);

// Room for `rows` rows in all. QG_ERROR_MEMORY.
qg_status qg_table_reserve(qg_table *table, int64_t rows);
// The column's elements, allocated (and missing everywhere) if they are not yet.
qg_status qg_table_column(qg_table *table, qg_column column, void **out);
// From now on the table, which has no rows, adds its texts and histograms to the other's.
void qg_table_share_pools(qg_table *table, const qg_table *other);
// Where each row's histograms lie in the pool: allocated if it is not yet. QG_ERROR_MEMORY.
qg_status qg_table_histogram_of(qg_table *table, int64_t **out);
// Copies the histograms of a row, replacing what it had. They must not be of the same pool.
qg_status qg_table_set_histograms(qg_table *table, int64_t row, const int64_t *rel,
                                  const int64_t *ulp);
// Whether any row has a value in the column.
bool qg_table_column_is_set(const qg_table *table, qg_column column);

void qg_table_drop_last_run(qg_table *table);
// Frees operands, plan, command lines and runs.
void qg_table_free_records(qg_table *table);

// QG_ERROR_MEMORY; `what` of a table it was for.
qg_status qg_table_no_memory(const char *what);
// Makes *elements hold `count`; on failure it is as it was.
bool qg_table_resize(void **elements, int64_t count, size_t size);

// Rows in plan order: by order, then reference, then position. `rows` has room for all.
qg_status qg_table_sort(const qg_table *table, int64_t *rows);
// Compares two rows, also of different tables: < 0, 0, > 0.
int qg_table_compare(const qg_table *a, int64_t a_row, const qg_table *b, int64_t b_row);

// The order that rows in plan order have where no case is missing: rows of one case share it.
// `order` has room for all.
void qg_table_derive_order(const qg_table *table, const int64_t *rows, int64_t *order);

// As qg_table_content_digest, of rows that qg_table_sort has put in plan order.
qg_status qg_table_content_digest_sorted(const qg_table *table, const int64_t *rows,
                                         uint64_t *out);

// Columns that depend on the run and not on plan and version alone.
bool qg_column_is_volatile(qg_column column);

#endif
