// Layouts: which elements of an (m, k) tensor share a scale.
//
// Every layout is a grid of blocks of rows x columns; the last block of a row or column of blocks
// may be ragged, and its amax is over real elements only. Sizes are 64 bits. C and CUDA. Exact.
#ifndef QG_LAYOUT_H
#define QG_LAYOUT_H

#include <qg_hd.h>
#include <stdint.h>

enum { QG_LAYOUT_PER_TENSOR, QG_LAYOUT_PER_ROW, QG_LAYOUT_GROUP, QG_LAYOUT_BLOCK };

// A layout by name: group:G has columns = G, block:RxC has rows = R and columns = C.
// Unused sizes are 0.
typedef struct qg_layout {
    int32_t kind;
    int32_t rows, columns;
} qg_layout;

// A layout applied to an (m, k) tensor, m and k >= 1.
typedef struct qg_blocks {
    int64_t m, k;
    int64_t rows, columns;             // of one full block
    int64_t block_rows, block_columns; // of the grid of blocks: the logical shape of the scales
} qg_blocks;

// The half-open ranges of real elements of one block.
typedef struct qg_block_range {
    int64_t row_begin, row_end, column_begin, column_end;
} qg_block_range;

QG_HD int64_t qg_ceil_divide(int64_t a, int64_t b) { return a / b + (a % b != 0); }

QG_HD int64_t qg_round_up(int64_t a, int64_t multiple) {
    return qg_ceil_divide(a, multiple) * multiple;
}

QG_HD qg_blocks qg_layout_apply(qg_layout layout, int64_t m, int64_t k) {
    qg_blocks b;
    b.m = m;
    b.k = k;
    b.rows = layout.kind == QG_LAYOUT_PER_TENSOR ? m
             : layout.kind == QG_LAYOUT_BLOCK    ? layout.rows
                                                 : 1;
    b.columns =
        layout.kind == QG_LAYOUT_GROUP || layout.kind == QG_LAYOUT_BLOCK ? layout.columns : k;
    b.block_rows = qg_ceil_divide(m, b.rows);
    b.block_columns = qg_ceil_divide(k, b.columns);
    return b;
}

QG_HD qg_block_range qg_block_at(const qg_blocks *b, int64_t block_row, int64_t block_column) {
    qg_block_range r;
    r.row_begin = block_row * b->rows;
    r.row_end = b->m - r.row_begin < b->rows ? b->m : r.row_begin + b->rows;
    r.column_begin = block_column * b->columns;
    r.column_end = b->k - r.column_begin < b->columns ? b->k : r.column_begin + b->columns;
    return r;
}

// Index of the scale of element (row, column) in the logical row-major grid of scales.
QG_HD int64_t qg_scale_index(const qg_blocks *b, int64_t row, int64_t column) {
    return row / b->rows * b->block_columns + column / b->columns;
}

#endif
