// See table_cell.h.
#include <table_cell.h>

qg_cell qg_table_cell(const void *row, qg_column column) {
    const qg_table_row *r = row;
    qg_cell cell = {0};
    switch (qg_column_describe(column)->type) {
    case QG_COLUMN_TEXT: cell.text = qg_table_text(r->table, r->row, column); break;
    case QG_COLUMN_F64: cell.f64 = qg_table_f64(r->table, r->row, column); break;
    case QG_COLUMN_I64: cell.i64 = qg_table_i64(r->table, r->row, column); break;
    case QG_COLUMN_U64: cell.u64 = qg_table_u64(r->table, r->row, column); break;
    case QG_COLUMN_U8: cell.u64 = qg_table_u8(r->table, r->row, column); break;
    }
    return cell;
}

int qg_table_columns(size_t i) { return i < QG_COLUMN_COUNT ? (int)i : -1; }
