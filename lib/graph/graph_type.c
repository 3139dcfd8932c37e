// Dtypes, ops and tensor types. See qg_graph.h.
#include <qg_graph.h>

#include <qg_size.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const int64_t MOST_BYTES = INT64_C(1) << 62;

static const struct {
    const char *name;
    int bytes;
} DTYPES[] = {
#define DTYPE_ROW(ID, name, bytes) {name, bytes},
    QG_DTYPE_TABLE(DTYPE_ROW)
#undef DTYPE_ROW
};

static const qg_graph_op_info OPS[] = {
#define OP_ROW(ID, name, fewest, most, what) {name, what, fewest, most},
    QG_GRAPH_OP_TABLE(OP_ROW)
#undef OP_ROW
};

const char *qg_dtype_name(qg_dtype dtype) { return DTYPES[dtype].name; }
int qg_dtype_bytes(qg_dtype dtype) { return DTYPES[dtype].bytes; }

qg_dtype qg_dtype_find(const char *name) {
    int i = 0;
    while (i < QG_DTYPE_COUNT && strcmp(DTYPES[i].name, name) != 0)
        i++;
    return (qg_dtype)i;
}

const qg_graph_op_info *qg_graph_op_describe(qg_graph_op op) { return &OPS[op]; }

qg_graph_op qg_graph_op_find(const char *name) {
    int i = 0;
    while (i < QG_GRAPH_OP_COUNT && strcmp(OPS[i].name, name) != 0)
        i++;
    return (qg_graph_op)i;
}

// ---------------------------------------------------------------------------------- tensor types

qg_status qg_tensor_check(const qg_tensor_type *type) {
    if (type->dtype < 0 || type->dtype >= QG_DTYPE_COUNT)
        return qg_fail(QG_ERROR_ARGUMENT, "dtype %" PRId32 " is none", type->dtype);
    if (type->rank < 0 || type->rank > QG_RANK_MOST)
        return qg_fail(QG_ERROR_ARGUMENT, "rank %" PRId32 " is not 0 to %d", type->rank,
                       QG_RANK_MOST);
    int64_t bytes = qg_dtype_bytes((qg_dtype)type->dtype);
    for (int i = type->rank; i < QG_RANK_MOST; i++)
        if (type->shape[i] != 0)
            return qg_fail(QG_ERROR_ARGUMENT,
                           "extent %" PRId64 " of axis %d lies past rank %" PRId32, type->shape[i],
                           i, type->rank);
    for (int i = 0; i < type->rank; i++) {
        if (type->shape[i] < 1)
            return qg_fail(QG_ERROR_ARGUMENT, "extent %" PRId64 " of axis %d is below 1",
                           type->shape[i], i);
        if (!qg_size_multiply(bytes, type->shape[i], &bytes) || bytes > MOST_BYTES)
            return qg_fail(QG_ERROR_OVERFLOW, "the tensor exceeds 2^62 bytes");
    }
    return QG_OK;
}

int64_t qg_tensor_elements(const qg_tensor_type *type) {
    int64_t count = 1;
    for (int i = 0; i < type->rank; i++)
        count *= type->shape[i];
    return count;
}

int64_t qg_tensor_bytes(const qg_tensor_type *type) {
    return qg_tensor_elements(type) * qg_dtype_bytes((qg_dtype)type->dtype);
}

bool qg_tensor_equal(const qg_tensor_type *a, const qg_tensor_type *b) {
    if (a->dtype != b->dtype || a->rank != b->rank)
        return false;
    for (int i = 0; i < a->rank; i++)
        if (a->shape[i] != b->shape[i])
            return false;
    return true;
}

void qg_tensor_text(const qg_tensor_type *type, char text[QG_TENSOR_TEXT_SIZE]) {
    bool known = type->dtype >= 0 && type->dtype < QG_DTYPE_COUNT;
    int length = snprintf(text, QG_TENSOR_TEXT_SIZE, "%s[",
                          known ? qg_dtype_name((qg_dtype)type->dtype) : "?");
    for (int i = 0; i < type->rank && i < QG_RANK_MOST; i++)
        length += snprintf(text + length, QG_TENSOR_TEXT_SIZE - (size_t)length, "%s%" PRId64,
                           i ? "," : "", type->shape[i]);
    snprintf(text + length, QG_TENSOR_TEXT_SIZE - (size_t)length, "]");
}

void qg_tensor_matrix(const qg_tensor_type *type, int64_t *rows, int64_t *k) {
    *k = type->shape[type->rank - 1];
    *rows = qg_tensor_elements(type) / *k;
}
