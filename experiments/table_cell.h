// The cells of a result table for expressions: every column may be named.
#ifndef TABLE_CELL_H
#define TABLE_CELL_H

#include <expression.h>
#include <qg_table.h>

// What `row` of qg_cell_function points to.
typedef struct qg_table_row {
    const qg_table *table;
    int64_t row;
} qg_table_row;

qg_cell qg_table_cell(const void *row, qg_column column);
// The i-th column, -1 past the end.
int qg_table_columns(size_t i);

#endif
