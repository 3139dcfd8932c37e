// Names of layouts and scale orders, and the size checks of the border. See qg_layout_name.h.
// Reading ignores case; printing gives the canonical lower-case form.
#include <qg_layout_name.h>
#include <qg_nearest.h>
#include <qg_size.h>

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { LARGEST_SIZE = 1 << 20, DEFAULT_PADDING = 16, LARGEST_SCALE_BYTES = 8 };

static const char *const layout_names[] = {"per_tensor", "per_row", "group:128", "block:128x128"};

static const char *const order_names[] = {"row_major", "k_major", "tile128x4", "tile8x4",
                                          "block128_padded"};

enum { ORDER_COUNT = sizeof order_names / sizeof order_names[0] };

const char *qg_layout_listed(size_t i) {
    return i < sizeof layout_names / sizeof layout_names[0] ? layout_names[i] : NULL;
}

const char *qg_scale_order_listed(size_t i) { return i < ORDER_COUNT ? order_names[i] : NULL; }

// Moves *text past a word, case ignored.
static bool read_word(const char **text, const char *word) {
    const char *t = *text;
    for (; *word; word++, t++) {
        char c = *t >= 'A' && *t <= 'Z' ? (char)(*t - 'A' + 'a') : *t;
        if (c != *word)
            return false;
    }
    *text = t;
    return true;
}

// Moves *text past a decimal number in 1 .. LARGEST_SIZE without leading zeros.
static bool read_size(const char **text, int32_t *out) {
    const char *t = *text;
    int32_t value = 0;
    if (*t < '1' || *t > '9')
        return false;
    for (; *t >= '0' && *t <= '9'; t++) {
        value = value * 10 + (*t - '0');
        if (value > LARGEST_SIZE)
            return false;
    }
    *text = t;
    *out = value;
    return true;
}

static bool reads_whole_word(const char *text, const char *word) {
    return read_word(&text, word) && !*text;
}

static bool layout_is_valid(qg_layout layout) {
    bool has_rows = layout.kind == QG_LAYOUT_BLOCK;
    bool has_columns = has_rows || layout.kind == QG_LAYOUT_GROUP;
    if (layout.kind < QG_LAYOUT_PER_TENSOR || layout.kind > QG_LAYOUT_BLOCK)
        return false;
    if (has_rows && (layout.rows < 1 || layout.rows > LARGEST_SIZE))
        return false;
    return !has_columns || (layout.columns >= 1 && layout.columns <= LARGEST_SIZE);
}

void qg_layout_name(qg_layout layout, char name[QG_LAYOUT_NAME_SIZE]) {
    switch (layout.kind) {
    case QG_LAYOUT_PER_TENSOR:
    case QG_LAYOUT_PER_ROW:
        snprintf(name, QG_LAYOUT_NAME_SIZE, "%s", layout_names[layout.kind]);
        break;
    case QG_LAYOUT_GROUP: snprintf(name, QG_LAYOUT_NAME_SIZE, "group:%d", layout.columns); break;
    case QG_LAYOUT_BLOCK:
        snprintf(name, QG_LAYOUT_NAME_SIZE, "block:%dx%d", layout.rows, layout.columns);
        break;
    default: snprintf(name, QG_LAYOUT_NAME_SIZE, "unknown"); break;
    }
}

// "group:G" and "block:RxC", after the colon.
static bool parse_sizes(const char *text, qg_layout *out) {
    if (out->kind == QG_LAYOUT_BLOCK && !(read_size(&text, &out->rows) && read_word(&text, "x")))
        return false;
    return read_size(&text, &out->columns) && !*text;
}

qg_status qg_layout_parse(const char *text, qg_layout *out) {
    qg_layout layout = {QG_LAYOUT_PER_TENSOR, 0, 0};
    const char *rest = text;
    if (reads_whole_word(text, "per_tensor") || reads_whole_word(text, "per_row")) {
        if (reads_whole_word(text, "per_row"))
            layout.kind = QG_LAYOUT_PER_ROW;
        *out = layout;
        return QG_OK;
    }
    bool is_group = read_word(&rest, "group:");
    if (is_group || read_word(&rest, "block:")) {
        layout.kind = is_group ? QG_LAYOUT_GROUP : QG_LAYOUT_BLOCK;
        if (!parse_sizes(rest, &layout))
            return qg_fail(QG_ERROR_ARGUMENT, "layout '%s': write %s with sizes from 1 to %d", text,
                           is_group ? "group:G" : "block:RxC", LARGEST_SIZE);
        *out = layout;
        return QG_OK;
    }
    const char *nearest = qg_nearest(text, qg_layout_listed);
    return qg_fail(QG_ERROR_ARGUMENT,
                   "unknown layout '%s'; %s%s%sthere are per_tensor, per_row, group:G, block:RxC",
                   text, nearest ? "the nearest is " : "", nearest ? nearest : "",
                   nearest ? "; " : "");
}

// ---------------------------------------------------------------------------------- scale orders

void qg_scale_order_name(qg_scale_order order, char name[QG_LAYOUT_NAME_SIZE]) {
    if (order.kind < 0 || order.kind >= ORDER_COUNT)
        snprintf(name, QG_LAYOUT_NAME_SIZE, "unknown");
    else if (order.kind == QG_ORDER_K_MAJOR && order.padding != DEFAULT_PADDING)
        snprintf(name, QG_LAYOUT_NAME_SIZE, "k_major:%d", order.padding);
    else
        snprintf(name, QG_LAYOUT_NAME_SIZE, "%s", order_names[order.kind]);
}

qg_status qg_scale_order_parse(const char *text, qg_scale_order *out) {
    for (int kind = 0; kind < ORDER_COUNT; kind++)
        if (reads_whole_word(text, order_names[kind])) {
            *out = (qg_scale_order){kind, kind == QG_ORDER_K_MAJOR ? DEFAULT_PADDING : 0};
            return QG_OK;
        }
    const char *rest = text;
    qg_scale_order order = {QG_ORDER_K_MAJOR, 0};
    if (read_word(&rest, "k_major:")) {
        if (!read_size(&rest, &order.padding) || *rest)
            return qg_fail(QG_ERROR_ARGUMENT,
                           "scale order '%s': write k_major:P with P from 1 to %d", text,
                           LARGEST_SIZE);
        *out = order;
        return QG_OK;
    }
    const char *nearest = qg_nearest(text, qg_scale_order_listed);
    if (nearest)
        return qg_fail(QG_ERROR_ARGUMENT, "unknown scale order '%s'; the nearest is %s", text,
                       nearest);
    return qg_fail(QG_ERROR_ARGUMENT,
                   "unknown scale order '%s'; there are row_major, k_major[:P], tile128x4, "
                   "tile8x4, block128_padded",
                   text);
}

// ---------------------------------------------------------------------------------------- sizes

static bool round_up_fits(int64_t a, int64_t multiple, int64_t *out) {
    return qg_size_add(a, multiple - 1, out) && (*out -= *out % multiple, true);
}

qg_status qg_scale_order_bytes(qg_scale_order order, int64_t rows, int64_t columns, int bytes,
                               int64_t *out) {
    if (rows < 1 || columns < 1 || bytes < 1 || order.kind < 0 || order.kind >= ORDER_COUNT ||
        (order.kind == QG_ORDER_K_MAJOR && order.padding < 1))
        return qg_fail(QG_ERROR_ARGUMENT, "no buffer of %lld x %lld scales of %d bytes",
                       (long long)rows, (long long)columns, bytes);
    int64_t row_multiple = order.kind == QG_ORDER_K_MAJOR     ? order.padding
                           : order.kind == QG_ORDER_TILE128X4 ? 128
                           : order.kind == QG_ORDER_TILE8X4   ? 8
                                                              : 1;
    int64_t column_multiple =
        order.kind == QG_ORDER_ROW_MAJOR || order.kind == QG_ORDER_K_MAJOR ? 1 : 4;
    int64_t padded_rows, padded_columns, size;
    if (!round_up_fits(rows, row_multiple, &padded_rows) ||
        !round_up_fits(columns, column_multiple, &padded_columns) ||
        !qg_size_multiply(padded_rows, padded_columns, &size) ||
        !qg_size_multiply(size, bytes, out))
        return qg_fail(QG_ERROR_OVERFLOW,
                       "a padded buffer of %lld x %lld scales exceeds 2^63 bytes", (long long)rows,
                       (long long)columns);
    return QG_OK;
}

qg_status qg_layout_blocks(qg_layout layout, int64_t m, int64_t k, qg_blocks *out) {
    if (!layout_is_valid(layout))
        return qg_fail(QG_ERROR_ARGUMENT, "layout of kind %d with %d rows and %d columns",
                       (int)layout.kind, (int)layout.rows, (int)layout.columns);
    if (m < 1 || k < 1)
        return qg_fail(QG_ERROR_ARGUMENT, "a tensor of %lld x %lld: both sizes must be at least 1",
                       (long long)m, (long long)k);
    int64_t elements;
    if (!qg_size_multiply(m, k, &elements))
        return qg_fail(QG_ERROR_OVERFLOW, "a tensor of %lld x %lld exceeds 2^63 - 1 elements",
                       (long long)m, (long long)k);
    qg_blocks blocks = qg_layout_apply(layout, m, k);
    for (int kind = 0; kind < ORDER_COUNT; kind++) {
        int64_t size;
        qg_status status =
            qg_scale_order_bytes((qg_scale_order){kind, DEFAULT_PADDING}, blocks.block_rows,
                                 blocks.block_columns, LARGEST_SCALE_BYTES, &size);
        if (status != QG_OK)
            return status;
    }
    *out = blocks;
    return QG_OK;
}
