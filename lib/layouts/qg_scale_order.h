// Storage orders of scales: where scale (i, j) of a logical (rows, columns) grid lies in memory.
//
// The logical order is row-major and unpadded; the others are what kernels and cuBLASLt read. Every
// byte of a padded buffer is written: padding is 0. Offsets and sizes count elements (scales).
// Sources: cuBLAS documentation, "1D block scaling factors layout"; torchao to_blocked; FlashInfer
// (8x4 tiles). C and CUDA. Exact.
#ifndef QG_SCALE_ORDER_H
#define QG_SCALE_ORDER_H

#include <qg_layout.h>

enum {
    QG_ORDER_ROW_MAJOR,      // (rows, columns)
    QG_ORDER_K_MAJOR,        // (columns, rows padded to a multiple of P): rows contiguous
    QG_ORDER_TILE128X4,      // 512-element tiles of 128 rows x 4 columns
    QG_ORDER_TILE8X4,        // 32-element tiles of 8 rows x 4 columns
    QG_ORDER_BLOCK128_PADDED // (rows, columns padded to a multiple of 4): cuBLASLt BLK128x128_32F
};

typedef struct qg_scale_order {
    int32_t kind;
    int32_t padding; // P of k_major; 16 by default, 1 is cuBLASLt's VEC128
} qg_scale_order;

// Elements of the padded buffer of a (rows, columns) grid of scales.
QG_HD int64_t qg_scale_order_size(qg_scale_order order, int64_t rows, int64_t columns) {
    switch (order.kind) {
    case QG_ORDER_K_MAJOR: return qg_round_up(rows, order.padding) * columns;
    case QG_ORDER_TILE128X4: return qg_round_up(rows, 128) * qg_round_up(columns, 4);
    case QG_ORDER_TILE8X4: return qg_round_up(rows, 8) * qg_round_up(columns, 4);
    case QG_ORDER_BLOCK128_PADDED: return rows * qg_round_up(columns, 4);
    default: return rows * columns;
    }
}

// Offset of scale (i, j).
QG_HD int64_t qg_scale_order_offset(qg_scale_order order, int64_t rows, int64_t columns, int64_t i,
                                    int64_t j) {
    int64_t tile_columns = qg_ceil_divide(columns, 4);
    switch (order.kind) {
    case QG_ORDER_K_MAJOR: return j * qg_round_up(rows, order.padding) + i;
    case QG_ORDER_TILE128X4:
        return (i / 128 * tile_columns + j / 4) * 512 + i % 32 * 16 + i % 128 / 32 * 4 + j % 4;
    case QG_ORDER_TILE8X4: return (i / 8 * tile_columns + j / 4) * 32 + i % 8 * 4 + j % 4;
    case QG_ORDER_BLOCK128_PADDED: return i * (tile_columns * 4) + j;
    default: return i * columns + j;
    }
}

typedef struct qg_scale_place {
    int64_t i, j; // may lie in the padding: i >= rows or j >= columns
} qg_scale_place;

// The inverse of qg_scale_order_offset, for every offset of the padded buffer.
QG_HD qg_scale_place qg_scale_order_place(qg_scale_order order, int64_t rows, int64_t columns,
                                          int64_t offset) {
    int64_t tile_columns = qg_ceil_divide(columns, 4);
    int64_t stride;
    qg_scale_place place;
    switch (order.kind) {
    case QG_ORDER_K_MAJOR:
        stride = qg_round_up(rows, order.padding);
        place.i = offset % stride;
        place.j = offset / stride;
        break;
    case QG_ORDER_TILE128X4: {
        int64_t within = offset % 512, tile = offset / 512;
        place.i = tile / tile_columns * 128 + within % 16 / 4 * 32 + within / 16;
        place.j = tile % tile_columns * 4 + within % 4;
        break;
    }
    case QG_ORDER_TILE8X4: {
        int64_t within = offset % 32, tile = offset / 32;
        place.i = tile / tile_columns * 8 + within / 4;
        place.j = tile % tile_columns * 4 + within % 4;
        break;
    }
    default:
        stride = order.kind == QG_ORDER_BLOCK128_PADDED ? tile_columns * 4 : columns;
        place.i = offset / stride;
        place.j = offset % stride;
        break;
    }
    return place;
}

// Copies logical row-major scales (rows, columns) of `bytes` bytes each into the padded buffer of
// qg_scale_order_size elements, writing every byte of it.
QG_HD void qg_scale_order_store(qg_scale_order order, int64_t rows, int64_t columns, int bytes,
                                const uint8_t *logical, uint8_t *stored) {
    int64_t size = qg_scale_order_size(order, rows, columns);
    for (int64_t offset = 0; offset < size; offset++) {
        qg_scale_place place = qg_scale_order_place(order, rows, columns, offset);
        int real = place.i < rows && place.j < columns;
        for (int b = 0; b < bytes; b++)
            stored[offset * bytes + b] =
                real ? logical[(place.i * columns + place.j) * bytes + b] : 0;
    }
}

// The inverse: padding is not read.
QG_HD void qg_scale_order_load(qg_scale_order order, int64_t rows, int64_t columns, int bytes,
                               const uint8_t *stored, uint8_t *logical) {
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++) {
            int64_t offset = qg_scale_order_offset(order, rows, columns, i, j);
            for (int b = 0; b < bytes; b++)
                logical[(i * columns + j) * bytes + b] = stored[offset * bytes + b];
        }
}

#endif
