// Names of layouts and scale orders, and size checks at the border.
#ifndef QG_LAYOUT_NAME_H
#define QG_LAYOUT_NAME_H

#include <qg_layout.h>
#include <qg_scale_order.h>
#include <qg_status.h>
#include <stddef.h>

QG_EXTERN_C_BEGIN

enum { QG_LAYOUT_NAME_SIZE = 48 };

// per_tensor | per_row | group:G | block:RxC, with 1 <= G, R, C <= 2^20.
void qg_layout_name(qg_layout layout, char name[QG_LAYOUT_NAME_SIZE]);
qg_status qg_layout_parse(const char *text, qg_layout *out);
const char *qg_layout_listed(size_t i);

// row_major | k_major[:P] | tile128x4 | tile8x4 | block128_padded.
void qg_scale_order_name(qg_scale_order order, char name[QG_LAYOUT_NAME_SIZE]);
qg_status qg_scale_order_parse(const char *text, qg_scale_order *out);
const char *qg_scale_order_listed(size_t i);

// *out = bytes of the padded buffer of a (rows, columns) grid of scales of `bytes` bytes each.
// QG_ERROR_ARGUMENT (a size below 1), QG_ERROR_OVERFLOW.
qg_status qg_scale_order_bytes(qg_scale_order order, int64_t rows, int64_t columns, int bytes,
                               int64_t *out);

// Checks m and k (at least 1, m * k and every scale buffer, padded with the default padding, within
// 2^63 - 1) and applies the layout. QG_ERROR_ARGUMENT or QG_ERROR_OVERFLOW with a detail that names
// the sizes.
qg_status qg_layout_blocks(qg_layout layout, int64_t m, int64_t k, qg_blocks *out);

QG_EXTERN_C_END

#endif
