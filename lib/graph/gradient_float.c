// What ops that are not scaled pass to their inputs. Broadcasting is undone by sums; everything has
// the dtype of the node it is the gradient of, fp32 for codes. See gradient_internal.h.
#include "gradient_internal.h"

#include <string.h>

// A node whose gradient is being passed on.
typedef struct step {
    gradient *g;
    qg_graph *made;
    const graph_node *node;
    qg_node place, dy;
} step;

static bool needs(const step *s, int32_t i) { return s->g->needed[s->node->inputs[i]]; }
static const qg_tensor_type *type_of(const step *s, int32_t i) {
    return &s->g->from->nodes[s->node->inputs[i]].type;
}
static void give(const step *s, int32_t i, qg_node contribution) {
    gradient_contribute(s->g, s->node->inputs[i], contribution);
}

static qg_node shaped(const step *s, qg_node x, const qg_tensor_type *type) {
    qg_tensor_type now = gradient_type(s->g, x);
    return qg_tensor_equal(&now, type) ? x : qg_graph_reshape(s->made, x, type->rank, type->shape);
}

// A number of the dtype of the node, for ops that broadcast.
static qg_node number(const step *s, int value) {
    return gradient_filled(s->g, (qg_tensor_type){.dtype = s->node->type.dtype}, value);
}

// ------------------------------------------------------------------------------------ combinations

// x, of the broadcast shape, summed over the axes along which a tensor of this type was repeated.
static qg_node unbroadcast(const step *s, qg_node x, const qg_tensor_type *type) {
    qg_tensor_type wide = gradient_type(s->g, x);
    int32_t axes[QG_RANK_MOST], count = 0, more = wide.rank - type->rank;
    for (int32_t i = 0; i < wide.rank; i++)
        if (wide.shape[i] > 1 && (i < more || type->shape[i - more] == 1))
            axes[count++] = i;
    if (count)
        x = qg_graph_reduce(s->made, QG_GRAPH_REDUCE_SUM, x, count, axes, true);
    return shaped(s, x, type);
}

static void of_add(const step *s) {
    for (int32_t i = 0; i < 2; i++)
        if (needs(s, i))
            give(s, i, unbroadcast(s, s->dy, type_of(s, i)));
}

static void of_subtract(const step *s) {
    if (needs(s, 0))
        give(s, 0, unbroadcast(s, s->dy, type_of(s, 0)));
    if (needs(s, 1))
        give(s, 1, qg_graph_multiply(s->made, unbroadcast(s, s->dy, type_of(s, 1)), number(s, -1)));
}

static void of_multiply(const step *s) {
    for (int32_t i = 0; i < 2; i++)
        if (needs(s, i))
            give(s, i,
                 unbroadcast(s, qg_graph_multiply(s->made, s->dy, s->node->inputs[1 - i]),
                             type_of(s, i)));
}

static void of_matmul(const step *s) {
    qg_node a = s->node->inputs[0], b = s->node->inputs[1];
    if (needs(s, 0))
        give(s, 0, qg_graph_matmul(s->made, s->dy, gradient_exchanged(s->g, b)));
    if (needs(s, 1))
        give(s, 1, qg_graph_matmul(s->made, gradient_exchanged(s->g, a), s->dy));
}

// ---------------------------------------------------------------------------------------- movement

static void of_transpose(const step *s) {
    int32_t back[QG_RANK_MOST];
    for (int32_t i = 0; i < s->node->type.rank; i++)
        back[s->node->attributes.axes[i]] = i;
    give(s, 0, qg_graph_transpose(s->made, s->dy, back));
}

static void of_reshape(const step *s) { give(s, 0, shaped(s, s->dy, type_of(s, 0))); }

static void of_cast(const step *s) { give(s, 0, gradient_cast(s->g, s->dy, type_of(s, 0)->dtype)); }

// ------------------------------------------------------------------------------------- activations

// dy times the derivative, in one op of x and dy.
static void of_activation(const step *s, qg_graph_op op) {
    qg_attributes attributes = {.tanh_form = s->node->attributes.tanh_form};
    qg_node inputs[] = {s->node->inputs[0], s->dy};
    give(s, 0, qg_graph_add_node(s->made, op, 2, inputs, &attributes, NULL));
}

static void of_tanh(const step *s) {
    qg_node squared = qg_graph_multiply(s->made, s->place, s->place);
    qg_node slope = qg_graph_subtract(s->made, number(s, 1), squared);
    give(s, 0, qg_graph_multiply(s->made, s->dy, slope));
}

// -------------------------------------------------------------------------------------- reductions

// The input's shape with the extents along the reduced axes replaced: by 1, or all others by 1.
static qg_tensor_type reduced_type(const step *s, bool reduced_are_one) {
    qg_tensor_type type = *type_of(s, 0);
    bool reduced[QG_RANK_MOST] = {false};
    for (int32_t i = 0; i < s->node->attributes.axis_count; i++)
        reduced[s->node->attributes.axes[i]] = true;
    for (int32_t i = 0; i < type.rank; i++)
        if (reduced[i] == reduced_are_one)
            type.shape[i] = 1;
    return type;
}

static qg_node kept(const step *s, qg_node x) {
    qg_tensor_type type = reduced_type(s, true);
    return shaped(s, x, &type);
}

// Multiplying by ones repeats exactly.
static void of_sum(const step *s, qg_node dy) {
    qg_tensor_type repeats = reduced_type(s, false);
    qg_node x = kept(s, dy);
    if (qg_tensor_elements(&repeats) > 1)
        x = qg_graph_multiply(s->made, x, gradient_filled(s->g, repeats, 1));
    give(s, 0, x);
}

// The quotient is formed in fp32: fp16 does not hold every count.
static void of_mean(const step *s) {
    qg_tensor_type repeats = reduced_type(s, false);
    qg_node count = qg_graph_scalar(s->made, (float)qg_tensor_elements(&repeats));
    qg_node share = qg_graph_divide(s->made, gradient_cast(s->g, s->dy, QG_DTYPE_FP32), count);
    of_sum(s, gradient_cast(s->g, share, s->node->type.dtype));
}

static void of_max(const step *s) {
    qg_attributes attributes = {.axis_count = s->node->attributes.axis_count};
    memcpy(attributes.axes, s->node->attributes.axes, sizeof attributes.axes);
    qg_node inputs[] = {s->node->inputs[0], kept(s, s->place), kept(s, s->dy)};
    give(s, 0,
         qg_graph_add_node(s->made, QG_GRAPH_REDUCE_MAX_GRADIENT, 3, inputs, &attributes, NULL));
}

// --------------------------------------------------------------------------------------- the table

// Codes that are moved take the tensor that they stand for along, unless there are two for an
// element.
static bool moves_codes(const step *s) {
    qg_tensor_type type = s->node->type;
    type.dtype = QG_DTYPE_FP32;
    qg_tensor_type decoded = gradient_type(s->g, s->dy);
    return (s->node->op == QG_GRAPH_TRANSPOSE || s->node->op == QG_GRAPH_RESHAPE) &&
           qg_tensor_equal(&decoded, &type);
}

qg_status gradient_of_float(gradient *g, const graph_node *node, qg_node place, qg_node dy) {
    step s = {g, g->made, node, place, dy};
    if (!qg_dtype_is_float((qg_dtype)node->type.dtype) && !moves_codes(&s))
        return QG_ERROR_UNSUPPORTED;
    switch (node->op) {
    case QG_GRAPH_MATMUL: of_matmul(&s); return QG_OK;
    case QG_GRAPH_ADD: of_add(&s); return QG_OK;
    case QG_GRAPH_SUBTRACT: of_subtract(&s); return QG_OK;
    case QG_GRAPH_MULTIPLY: of_multiply(&s); return QG_OK;
    case QG_GRAPH_TRANSPOSE: of_transpose(&s); return QG_OK;
    case QG_GRAPH_RESHAPE: of_reshape(&s); return QG_OK;
    case QG_GRAPH_CAST: of_cast(&s); return QG_OK;
    case QG_GRAPH_RELU: of_activation(&s, QG_GRAPH_RELU_GRADIENT); return QG_OK;
    case QG_GRAPH_GELU: of_activation(&s, QG_GRAPH_GELU_GRADIENT); return QG_OK;
    case QG_GRAPH_TANH: of_tanh(&s); return QG_OK;
    case QG_GRAPH_REDUCE_SUM: of_sum(&s, dy); return QG_OK;
    case QG_GRAPH_REDUCE_MEAN: of_mean(&s); return QG_OK;
    case QG_GRAPH_REDUCE_MAX: of_max(&s); return QG_OK;
    default: return QG_ERROR_UNSUPPORTED;
    }
}
