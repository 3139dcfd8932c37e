// What the scaled ops pass to their inputs: quantization passes gradients straight through, scales
// are detached, products multiply by the dequantized other operand (statement R16 of the
// specification) or, where gradients have a recipe, by that operand quantized along the axis that
// is summed. See gradient_internal.h.
//
// A grouped product is a product with all experts, stacked, of which each token keeps its own
// columns: its incoming gradient is put at those columns, zeros elsewhere. A gradient that is not
// finite thereby becomes NaN at the other experts.
#include "gradient_internal.h"

#include <qg_memory.h>

#include <string.h>

bool gradient_passes(const graph_node *node, int32_t i) {
    graph_product_inputs in;
    switch (node->op) {
    case QG_GRAPH_SCALED_TENSOR_SCALE:
    case QG_GRAPH_SCALED_QUANT_SCALE: return false;
    case QG_GRAPH_SCALED_QUANTIZE:
    case QG_GRAPH_SCALED_DEQUANTIZE: return i == 0;
    case QG_GRAPH_SCALED_MATMUL:
    case QG_GRAPH_SCALED_GROUPED_MATMUL:
        return graph_product_inputs_of(node->op, &node->attributes, node->input_count, &in) ==
                   QG_OK &&
               (i == in.lhs || i == in.rhs || i == in.bias);
    default: return true;
    }
}

// ---------------------------------------------------------------------------------------- operands

// Quantized for the backward pass. Each stochastic rounding has random numbers of its own.
static qg_scaled quantized(gradient *g, qg_node x, const char *recipe) {
    qg_scaled out = qg_graph_quantize(g->made, x, recipe);
    if (out.codes != QG_NODE_NONE && graph_rounds_stochastically(recipe))
        g->made->nodes[out.codes].attributes.seed = g->next_seed++;
    return out;
}

// One side of a product: where its parts are among the node's inputs, -1 for none.
typedef struct side {
    int codes, scale, tensor_scale;
    const char *recipe;
} side;

// The operand that a side of this node is, dequantized once for all products that it is part of.
static gradient_operand *operand_of(gradient *g, const graph_node *node, side s, bool stacked) {
    qg_node codes = node->inputs[s.codes], scale = node->inputs[s.scale];
    qg_node tensor_scale = s.tensor_scale < 0 ? QG_NODE_NONE : node->inputs[s.tensor_scale];
    gradient_operand *o = &g->operands[codes + (stacked ? g->from->count : 0)];
    if (o->recipe && strcmp(o->recipe, s.recipe) == 0 && o->scale == scale &&
        o->tensor_scale == tensor_scale)
        return o;
    *o = (gradient_operand){.recipe = s.recipe,
                            .scale = scale,
                            .tensor_scale = tensor_scale,
                            .crossed.codes = QG_NODE_NONE};
    o->values = qg_graph_dequantize(g->made, (qg_scaled){codes, scale, tensor_scale, o->recipe});
    qg_tensor_type type = gradient_type(g, o->values);
    if (stacked && o->values != QG_NODE_NONE)
        o->values = qg_graph_reshape(g->made, o->values, 2,
                                     (int64_t[]){type.shape[0] * type.shape[1], type.shape[2]});
    return o;
}

// x (..., m, n) times the operand's values (..., n, k).
static qg_node times(gradient *g, qg_node x, gradient_operand *operand) {
    if (!g->recipe)
        return qg_graph_matmul(g->made, x, operand->values);
    if (operand->crossed.codes == QG_NODE_NONE)
        operand->crossed = quantized(g, gradient_exchanged(g, operand->values), operand->recipe);
    return qg_graph_scaled_matmul(g->made, quantized(g, x, g->recipe), operand->crossed,
                                  QG_NODE_NONE, QG_DTYPE_FP32);
}

// ---------------------------------------------------------------------------------------- products

static qg_node identity_matrix(gradient *g, int64_t n) {
    void *values;
    qg_tensor_type type = qg_tensor(QG_DTYPE_FP32, 2, n, n);
    qg_status status = qg_tensor_check(&type);
    if (!status)
        status = qg_allocate(&values, n * n, sizeof(float), "a matrix that selects experts");
    if (status)
        return graph_fail(g->made, status);
    for (int64_t i = 0; i < n; i++)
        ((float *)values)[i * n + i] = 1;
    qg_node made = qg_graph_constant(g->made, NULL, type, values);
    qg_release(values);
    return made;
}

// dy (m, n) of a grouped product as that of all experts' columns, (m, e n).
static qg_node spread(gradient *g, qg_node dy, qg_node index, int64_t experts) {
    qg_tensor_type type = gradient_type(g, dy);
    int64_t m = type.shape[0], n = type.shape[1];
    qg_node chosen = qg_graph_gather(g->made, identity_matrix(g, experts), index);
    qg_node wide =
        qg_graph_multiply(g->made, qg_graph_reshape(g->made, chosen, 3, (int64_t[]){m, experts, 1}),
                          qg_graph_reshape(g->made, dy, 3, (int64_t[]){m, 1, n}));
    return qg_graph_reshape(g->made, wide, 2, (int64_t[]){m, experts * n});
}

// dy summed over its rows, in the bias's shape.
static qg_node summed_rows(gradient *g, qg_node dy, const qg_tensor_type *bias) {
    int32_t axes[QG_RANK_MOST], count = gradient_type(g, dy).rank - 1;
    for (int32_t i = 0; i < count; i++)
        axes[i] = i;
    qg_node sum = qg_graph_reduce(g->made, QG_GRAPH_REDUCE_SUM, dy, count, axes, false);
    return bias->rank == 1 ? sum : qg_graph_reshape(g->made, sum, bias->rank, bias->shape);
}

static qg_status of_product(gradient *g, const graph_node *node, qg_node dy) {
    graph_product_inputs in;
    bool grouped = node->op == QG_GRAPH_SCALED_GROUPED_MATMUL;
    qg_status status = graph_product_inputs_of(node->op, &node->attributes, node->input_count, &in);
    if (status)
        return status;
    side lhs = {in.lhs, in.lhs_scale, in.lhs_tensor_scale, node->attributes.recipe};
    side rhs = {in.rhs, in.rhs_scale, in.rhs_tensor_scale, node->attributes.recipe_b};
    const qg_tensor_type *codes = &g->from->nodes[node->inputs[in.rhs]].type; // perhaps two planes
    const int64_t *experts = codes->shape + codes->rank - 3;                  // e, n, k
    dy = gradient_cast(g, dy, QG_DTYPE_FP32);
    if (grouped)
        dy = spread(g, dy, node->inputs[in.index], experts[0]);
    if (g->needed[node->inputs[in.lhs]])
        gradient_contribute(g, node->inputs[in.lhs],
                            times(g, dy, operand_of(g, node, rhs, grouped)));
    if (g->needed[node->inputs[in.rhs]]) {
        qg_node given = times(g, gradient_exchanged(g, dy), operand_of(g, node, lhs, false));
        gradient_contribute(g, node->inputs[in.rhs],
                            grouped ? qg_graph_reshape(g->made, given, 3, experts) : given);
    }
    if (in.bias >= 0 && g->needed[node->inputs[in.bias]])
        gradient_contribute(g, node->inputs[in.bias],
                            summed_rows(g, dy, &g->from->nodes[node->inputs[in.bias]].type));
    return QG_OK;
}

// --------------------------------------------------------------------------------------- the table

// Two planes of codes that were reshaped and read as one stand for another tensor than x.
static qg_status of_quantize(gradient *g, const graph_node *node, qg_node dy) {
    qg_node x = node->inputs[0];
    qg_tensor_type type = g->from->nodes[x].type, decoded = gradient_type(g, dy);
    decoded.dtype = type.dtype;
    if (!qg_tensor_equal(&type, &decoded))
        return QG_ERROR_UNSUPPORTED;
    gradient_contribute(g, x, gradient_cast(g, dy, type.dtype));
    return QG_OK;
}

qg_status gradient_of_scaled(gradient *g, const graph_node *node, qg_node dy) {
    switch (node->op) {
    case QG_GRAPH_SCALED_QUANTIZE: return of_quantize(g, node, dy);
    case QG_GRAPH_SCALED_DEQUANTIZE: gradient_contribute(g, node->inputs[0], dy); return QG_OK;
    default: return of_product(g, node, dy);
    }
}
