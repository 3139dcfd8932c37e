// A table of results in memory: the columns of qg_column.h, any number of rows, and what surrounds
// them in the file (plan, runs, histograms, operands of failed cases).
#ifndef QG_TABLE_H
#define QG_TABLE_H

#include <qg_column.h>
#include <qg_status.h>
#include <stdbool.h>

typedef struct qg_table qg_table;

qg_status qg_table_create(qg_table **out);
void qg_table_free(qg_table *table); // NULL is fine
int64_t qg_table_rows(const qg_table *table);

// Appends a row in which every column is missing. *row is its index. QG_ERROR_MEMORY.
qg_status qg_table_append(qg_table *table, int64_t *row);

// Setters and getters; row and column must exist and the column be of the type (asserted).
// Texts are interned: cheap when few differ. QG_ERROR_MEMORY from setters.
qg_status qg_table_set_f64(qg_table *table, int64_t row, qg_column column, double value);
qg_status qg_table_set_i64(qg_table *table, int64_t row, qg_column column, int64_t value);
qg_status qg_table_set_u64(qg_table *table, int64_t row, qg_column column, uint64_t value);
qg_status qg_table_set_u8(qg_table *table, int64_t row, qg_column column, uint8_t value);
qg_status qg_table_set_text(qg_table *table, int64_t row, qg_column column, const char *value);
double qg_table_f64(const qg_table *table, int64_t row, qg_column column);
int64_t qg_table_i64(const qg_table *table, int64_t row, qg_column column);
uint64_t qg_table_u64(const qg_table *table, int64_t row, qg_column column);
uint8_t qg_table_u8(const qg_table *table, int64_t row, qg_column column);
const char *qg_table_text(const qg_table *table, int64_t row, qg_column column);

// A row's position in the plan: what merging sorts by. -1 until set.
void qg_table_set_order(qg_table *table, int64_t row, int64_t order);
int64_t qg_table_order(const qg_table *table, int64_t row);

// Drops the rows whose keep[row] is false; the others keep their sequence, runs and operands stay.
void qg_table_keep_rows(qg_table *table, const bool *keep);

// Fills /sums, /metrics, the histograms, and /counts n, underflowed, exact of a row from its sums.
qg_status qg_table_set_sums(qg_table *table, int64_t row, const qg_sums *sums);
// The histograms of a row: false if it has none.
bool qg_table_histograms(const qg_table *table, int64_t row, const int64_t **rel,
                         const int64_t **ulp);

// Codes and scales of a failing case, kept under /operands/<16 hex digits of the case id>/.
qg_status qg_table_add_operand(qg_table *table, uint64_t case_id, const char *name,
                               const void *bytes, int64_t size);

// The plan: its expanded text (identity of the sweep), and the command lines that ran it.
qg_status qg_table_set_plan(qg_table *table, const char *text);
const char *qg_table_plan(const qg_table *table);
qg_status qg_table_add_argv(qg_table *table, const char *command_line);

// A run: one process that measured rows. Keys and values are texts ("version", "commit", ...).
// Returns the run's index through *run; merging renumbers column `run` and drops equal runs.
qg_status qg_table_add_run(qg_table *table, int64_t *run);
qg_status qg_table_set_run(qg_table *table, int64_t run, const char *key, const char *value);
int64_t qg_table_runs(const qg_table *table);
const char *qg_table_run_value(const qg_table *table, int64_t run, const char *key); // NULL if none

#endif
