// Types of the ops that are not scaled: one function each. The details of failures name no node:
// who calls adds it. See graph_internal.h.
#include "graph_internal.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

typedef struct inference {
    int32_t count;
    const qg_tensor_type *const *types;
    const qg_attributes *attributes;
    qg_tensor_type *out;
} inference;

static qg_status differs(const char *what, const qg_tensor_type *a, const qg_tensor_type *b) {
    char left[QG_TENSOR_TEXT_SIZE], right[QG_TENSOR_TEXT_SIZE];
    qg_tensor_text(a, left);
    qg_tensor_text(b, right);
    return qg_fail(QG_ERROR_ARGUMENT, "%s: %s and %s", what, left, right);
}

static qg_status wrong(const char *what, const qg_tensor_type *type) {
    char text[QG_TENSOR_TEXT_SIZE];
    qg_tensor_text(type, text);
    return qg_fail(QG_ERROR_ARGUMENT, "%s: %s", what, text);
}

static bool same_shape(const qg_tensor_type *a, const qg_tensor_type *b) {
    qg_tensor_type c = *b;
    c.dtype = a->dtype;
    return qg_tensor_equal(a, &c);
}

// All inputs are floats of one dtype.
static qg_status check_floats(const inference *i) {
    for (int32_t j = 0; j < i->count; j++) {
        if (!qg_dtype_is_float((qg_dtype)i->types[j]->dtype))
            return wrong("an input is no float", i->types[j]);
        if (i->types[j]->dtype != i->types[0]->dtype)
            return differs("inputs of different dtypes", i->types[0], i->types[j]);
    }
    return QG_OK;
}

static qg_status infer_given(const inference *i) {
    *i->out = i->attributes->type;
    return qg_tensor_check(i->out);
}

static qg_status infer_same(const inference *i) {
    *i->out = *i->types[0];
    return QG_OK;
}

// ------------------------------------------------------------------------------------- combination

static qg_status infer_matmul(const inference *i) {
    const qg_tensor_type *a = i->types[0], *b = i->types[1];
    int32_t r = a->rank;
    if (r < 2 || b->rank != r)
        return differs("a product takes two inputs of one rank of at least 2", a, b);
    if (a->shape[r - 1] != b->shape[r - 2])
        return differs("K differs: the last axis of a, the one before the last of b", a, b);
    *i->out = *a;
    for (int32_t axis = 0; axis < r - 2; axis++)
        if (a->shape[axis] != b->shape[axis])
            return differs("leading axes differ", a, b);
    i->out->shape[r - 1] = b->shape[r - 1];
    return QG_OK;
}

static qg_status infer_broadcast(const inference *i) {
    const qg_tensor_type *a = i->types[0], *b = i->types[1];
    *i->out = a->rank >= b->rank ? *a : *b;
    for (int32_t back = 1; back <= i->out->rank; back++) {
        int64_t x = back <= a->rank ? a->shape[a->rank - back] : 1;
        int64_t y = back <= b->rank ? b->shape[b->rank - back] : 1;
        if (x != y && x != 1 && y != 1)
            return differs("shapes do not broadcast", a, b);
        i->out->shape[i->out->rank - back] = x == 1 ? y : x;
    }
    return QG_OK;
}

static qg_status infer_softmax(const inference *i) {
    return i->types[0]->rank < 1 ? wrong("softmax needs a last axis", i->types[0]) : infer_same(i);
}

static qg_status infer_layer_norm(const inference *i) {
    const qg_tensor_type *x = i->types[0];
    if (x->rank < 1)
        return wrong("layer norm needs a last axis", x);
    for (int32_t j = 1; j < 3; j++)
        if (i->types[j]->rank != 1 || i->types[j]->shape[0] != x->shape[x->rank - 1])
            return differs("gain and bias have one element for each of the last axis", x,
                           i->types[j]);
    if (!(i->attributes->eps >= 0) || !isfinite(i->attributes->eps))
        return qg_fail(QG_ERROR_ARGUMENT, "eps %g is not a finite number of at least 0",
                       (double)i->attributes->eps);
    return infer_same(i);
}

// ---------------------------------------------------------------------------------------- movement

static qg_status check_axis(const qg_tensor_type *x, int32_t axis) {
    if (axis >= 0 && axis < x->rank)
        return QG_OK;
    return qg_fail(QG_ERROR_ARGUMENT, "axis %" PRId32 " is not one of %" PRId32, axis, x->rank);
}

// Distinct axes of x.
static qg_status check_axes(const qg_tensor_type *x, const qg_attributes *a) {
    bool seen[QG_RANK_MOST] = {false};
    if (a->axis_count < 0 || a->axis_count > QG_RANK_MOST)
        return qg_fail(QG_ERROR_ARGUMENT, "%" PRId32 " axes", a->axis_count);
    for (int32_t j = 0; j < a->axis_count; j++) {
        qg_status status = check_axis(x, a->axes[j]);
        if (status)
            return status;
        if (seen[a->axes[j]])
            return qg_fail(QG_ERROR_ARGUMENT, "axis %" PRId32 " is named twice", a->axes[j]);
        seen[a->axes[j]] = true;
    }
    return QG_OK;
}

static qg_status infer_transpose(const inference *i) {
    const qg_tensor_type *x = i->types[0];
    const qg_attributes *a = i->attributes;
    if (a->axis_count != x->rank)
        return qg_fail(QG_ERROR_ARGUMENT, "%" PRId32 " axes of a tensor of rank %" PRId32,
                       a->axis_count, x->rank);
    qg_status status = check_axes(x, a);
    *i->out = *x;
    for (int32_t j = 0; j < x->rank && !status; j++)
        i->out->shape[j] = x->shape[a->axes[j]];
    return status;
}

static qg_status infer_reshape(const inference *i) {
    *i->out = i->attributes->type;
    i->out->dtype = i->types[0]->dtype;
    qg_status status = qg_tensor_check(i->out);
    if (!status && qg_tensor_elements(i->out) != qg_tensor_elements(i->types[0]))
        return differs("the number of elements differs", i->types[0], i->out);
    return status;
}

static qg_status infer_slice(const inference *i) {
    const qg_tensor_type *x = i->types[0];
    *i->out = *x;
    for (int32_t j = 0; j < x->rank; j++) {
        int64_t begin = i->attributes->begin[j], end = i->attributes->end[j];
        if (begin < 0 || end > x->shape[j] || begin >= end)
            return qg_fail(QG_ERROR_ARGUMENT,
                           "%" PRId64 " to %" PRId64 " of axis %" PRId32 " with extent %" PRId64,
                           begin, end, j, x->shape[j]);
        i->out->shape[j] = end - begin;
    }
    return QG_OK;
}

static qg_status infer_concatenate(const inference *i) {
    int32_t axis = i->attributes->axes[0];
    if (i->attributes->axis_count != 1)
        return qg_fail(QG_ERROR_ARGUMENT, "%" PRId32 " axes, not 1", i->attributes->axis_count);
    qg_status status = check_axis(i->types[0], axis);
    if (status)
        return status;
    *i->out = *i->types[0];
    for (int32_t j = 1; j < i->count; j++) {
        qg_tensor_type other = *i->types[j];
        if (other.rank != i->out->rank || other.dtype != i->out->dtype)
            return differs("inputs differ beyond the axis", i->types[0], i->types[j]);
        other.shape[axis] = i->types[0]->shape[axis];
        if (!qg_tensor_equal(&other, i->types[0]))
            return differs("inputs differ beyond the axis", i->types[0], i->types[j]);
        if (i->types[j]->shape[axis] > INT64_MAX - i->out->shape[axis])
            return qg_fail(QG_ERROR_OVERFLOW, "the tensor exceeds 2^62 bytes");
        i->out->shape[axis] += i->types[j]->shape[axis];
    }
    return qg_tensor_check(i->out);
}

static qg_status infer_gather(const inference *i) {
    const qg_tensor_type *table = i->types[0], *indices = i->types[1];
    if (table->rank < 1)
        return wrong("a table has a first axis", table);
    if (indices->dtype != QG_DTYPE_I64)
        return wrong("indices are i64", indices);
    if (indices->rank + table->rank - 1 > QG_RANK_MOST)
        return differs("the rank exceeds the largest", table, indices);
    *i->out = *indices;
    i->out->dtype = table->dtype;
    for (int32_t j = 1; j < table->rank; j++)
        i->out->shape[i->out->rank++] = table->shape[j];
    return qg_tensor_check(i->out);
}

static qg_status infer_cast(const inference *i) {
    *i->out = *i->types[0];
    i->out->dtype = i->attributes->type.dtype;
    if (i->out->dtype < 0 || i->out->dtype >= QG_DTYPE_COUNT ||
        !qg_dtype_is_float((qg_dtype)i->out->dtype))
        return wrong("the output is no float", i->out);
    return QG_OK;
}

// -------------------------------------------------------------------------------------- reductions

static qg_status reduce(const qg_tensor_type *x, const qg_attributes *a, bool keepdims,
                        qg_tensor_type *out) {
    bool gone[QG_RANK_MOST] = {false};
    qg_status status = check_axes(x, a);
    if (status)
        return status;
    if (a->axis_count == 0)
        return qg_fail(QG_ERROR_ARGUMENT, "a reduction names at least one axis");
    for (int32_t j = 0; j < a->axis_count; j++)
        gone[a->axes[j]] = true;
    *out = (qg_tensor_type){.dtype = x->dtype};
    for (int32_t j = 0; j < x->rank; j++)
        if (!gone[j] || keepdims)
            out->shape[out->rank++] = gone[j] ? 1 : x->shape[j];
    return QG_OK;
}

static qg_status infer_reduce(const inference *i) {
    return reduce(i->types[0], i->attributes, i->attributes->keepdims, i->out);
}

static qg_status infer_gradient(const inference *i) {
    if (!same_shape(i->types[0], i->types[1]))
        return differs("x and dy differ", i->types[0], i->types[1]);
    return infer_same(i);
}

static qg_status infer_reduce_max_gradient(const inference *i) {
    qg_tensor_type reduced;
    qg_status status = reduce(i->types[0], i->attributes, true, &reduced);
    for (int32_t j = 1; j < 3 && !status; j++)
        if (!same_shape(&reduced, i->types[j]))
            return differs("y and dy are the reduced x", &reduced, i->types[j]);
    return status ? status : infer_same(i);
}

// --------------------------------------------------------------------------------------- the table

static qg_status infer_float(qg_graph_op op, const inference *i) {
    qg_status status = check_floats(i);
    if (status)
        return status;
    switch (op) {
    case QG_GRAPH_MATMUL: return infer_matmul(i);
    case QG_GRAPH_ADD:
    case QG_GRAPH_SUBTRACT:
    case QG_GRAPH_MULTIPLY:
    case QG_GRAPH_DIVIDE:
    case QG_GRAPH_MAXIMUM: return infer_broadcast(i);
    case QG_GRAPH_LAYER_NORM: return infer_layer_norm(i);
    case QG_GRAPH_REDUCE_SUM:
    case QG_GRAPH_REDUCE_MEAN:
    case QG_GRAPH_REDUCE_MAX: return infer_reduce(i);
    case QG_GRAPH_CAST: return infer_cast(i);
    case QG_GRAPH_RELU_GRADIENT:
    case QG_GRAPH_GELU_GRADIENT: return infer_gradient(i);
    case QG_GRAPH_REDUCE_MAX_GRADIENT: return infer_reduce_max_gradient(i);
    case QG_GRAPH_SOFTMAX: return infer_softmax(i);
    default: return infer_same(i); // sqrt, gelu, relu, tanh
    }
}

static qg_status infer(qg_graph_op op, const inference *i) {
    switch (op) {
    case QG_GRAPH_INPUT:
    case QG_GRAPH_PARAMETER:
    case QG_GRAPH_CONSTANT: return infer_given(i);
    case QG_GRAPH_TRANSPOSE: return infer_transpose(i);
    case QG_GRAPH_RESHAPE: return infer_reshape(i);
    case QG_GRAPH_SLICE: return infer_slice(i);
    case QG_GRAPH_CONCATENATE: return infer_concatenate(i);
    case QG_GRAPH_GATHER: return infer_gather(i);
    default: return infer_float(op, i);
    }
}

qg_status graph_infer(qg_graph_op op, int32_t count, const qg_tensor_type *const *types,
                      const qg_attributes *attributes, qg_tensor_type *out) {
    inference i = {count, types, attributes, out};
    qg_status status = graph_op_is_scaled(op)
                           ? graph_infer_scaled(op, count, types, attributes, out)
                           : infer(op, &i);
    return status ? status : qg_tensor_check(out);
}
