// Cells of one row of a table, set one after another: the first failure stays, later cells are then
// not written. An empty or missing text is left as it is.
#ifndef ROW_WRITER_H
#define ROW_WRITER_H

#include <qg_table.h>

typedef struct row_writer {
    qg_table *table;
    int64_t row;
    qg_status status;
} row_writer;

static inline void set_text(row_writer *w, qg_column column, const char *value) {
    if (w->status == QG_OK && value && value[0])
        w->status = qg_table_set_text(w->table, w->row, column, value);
}

static inline void set_i64(row_writer *w, qg_column column, int64_t value) {
    if (w->status == QG_OK)
        w->status = qg_table_set_i64(w->table, w->row, column, value);
}

static inline void set_u64(row_writer *w, qg_column column, uint64_t value) {
    if (w->status == QG_OK)
        w->status = qg_table_set_u64(w->table, w->row, column, value);
}

static inline void set_f64(row_writer *w, qg_column column, double value) {
    if (w->status == QG_OK)
        w->status = qg_table_set_f64(w->table, w->row, column, value);
}

#endif
