// Builders of single ops. See qg_graph.h.
#include "graph_internal.h"

#include <string.h>

static qg_node one(qg_graph *graph, qg_graph_op op, qg_node x, const qg_attributes *attributes) {
    return qg_graph_add_node(graph, op, 1, &x, attributes, NULL);
}

static qg_node two(qg_graph *graph, qg_graph_op op, qg_node a, qg_node b) {
    qg_node inputs[] = {a, b};
    return qg_graph_add_node(graph, op, 2, inputs, NULL, NULL);
}

// The rank of a node, 0 for none.
static int32_t rank_of(const qg_graph *graph, qg_node node) {
    bool known = node >= 0 && node < graph->count;
    return known ? graph->nodes[node].type.rank : 0;
}

qg_node qg_graph_scalar(qg_graph *graph, float value) {
    return qg_graph_constant(graph, NULL, (qg_tensor_type){.dtype = QG_DTYPE_FP32}, &value);
}

qg_node qg_graph_matmul(qg_graph *graph, qg_node a, qg_node b) {
    return two(graph, QG_GRAPH_MATMUL, a, b);
}

qg_node qg_graph_transpose(qg_graph *graph, qg_node x, const int32_t *axes) {
    qg_attributes attributes = {.axis_count = rank_of(graph, x)};
    for (int32_t i = 0; i < attributes.axis_count; i++)
        attributes.axes[i] = axes[i];
    return one(graph, QG_GRAPH_TRANSPOSE, x, &attributes);
}

qg_node qg_graph_reshape(qg_graph *graph, qg_node x, int32_t rank, const int64_t *shape) {
    qg_attributes attributes = {.type.rank = rank};
    for (int32_t i = 0; i < rank && i < QG_RANK_MOST; i++)
        attributes.type.shape[i] = shape[i];
    return one(graph, QG_GRAPH_RESHAPE, x, &attributes);
}

qg_node qg_graph_slice(qg_graph *graph, qg_node x, const int64_t *begin, const int64_t *end) {
    qg_attributes attributes = {0};
    for (int32_t i = 0; i < rank_of(graph, x); i++) {
        attributes.begin[i] = begin[i];
        attributes.end[i] = end[i];
    }
    return one(graph, QG_GRAPH_SLICE, x, &attributes);
}

qg_node qg_graph_concatenate(qg_graph *graph, int32_t count, const qg_node *inputs, int32_t axis) {
    qg_attributes attributes = {.axis_count = 1, .axes = {axis}};
    return qg_graph_add_node(graph, QG_GRAPH_CONCATENATE, count, inputs, &attributes, NULL);
}

qg_node qg_graph_add(qg_graph *graph, qg_node a, qg_node b) {
    return two(graph, QG_GRAPH_ADD, a, b);
}
qg_node qg_graph_subtract(qg_graph *graph, qg_node a, qg_node b) {
    return two(graph, QG_GRAPH_SUBTRACT, a, b);
}
qg_node qg_graph_multiply(qg_graph *graph, qg_node a, qg_node b) {
    return two(graph, QG_GRAPH_MULTIPLY, a, b);
}
qg_node qg_graph_divide(qg_graph *graph, qg_node a, qg_node b) {
    return two(graph, QG_GRAPH_DIVIDE, a, b);
}
qg_node qg_graph_maximum(qg_graph *graph, qg_node a, qg_node b) {
    return two(graph, QG_GRAPH_MAXIMUM, a, b);
}
qg_node qg_graph_sqrt(qg_graph *graph, qg_node x) { return one(graph, QG_GRAPH_SQRT, x, NULL); }
qg_node qg_graph_relu(qg_graph *graph, qg_node x) { return one(graph, QG_GRAPH_RELU, x, NULL); }
qg_node qg_graph_tanh(qg_graph *graph, qg_node x) { return one(graph, QG_GRAPH_TANH, x, NULL); }
qg_node qg_graph_softmax(qg_graph *graph, qg_node x) {
    return one(graph, QG_GRAPH_SOFTMAX, x, NULL);
}

qg_node qg_graph_gelu(qg_graph *graph, qg_node x, bool tanh_form) {
    qg_attributes attributes = {.tanh_form = tanh_form};
    return one(graph, QG_GRAPH_GELU, x, &attributes);
}

qg_node qg_graph_layer_norm(qg_graph *graph, qg_node x, qg_node gain, qg_node bias, float eps) {
    qg_attributes attributes = {.eps = eps};
    qg_node inputs[] = {x, gain, bias};
    return qg_graph_add_node(graph, QG_GRAPH_LAYER_NORM, 3, inputs, &attributes, NULL);
}

qg_node qg_graph_gather(qg_graph *graph, qg_node table, qg_node indices) {
    return two(graph, QG_GRAPH_GATHER, table, indices);
}

qg_node qg_graph_reduce(qg_graph *graph, qg_graph_op op, qg_node x, int32_t count,
                        const int32_t *axes, bool keepdims) {
    qg_attributes attributes = {.axis_count = count, .keepdims = keepdims};
    for (int32_t i = 0; i < count && i < QG_RANK_MOST; i++)
        attributes.axes[i] = axes[i];
    return one(graph, op, x, &attributes);
}

qg_node qg_graph_cast(qg_graph *graph, qg_node x, qg_dtype dtype) {
    qg_attributes attributes = {.type.dtype = (int32_t)dtype};
    return one(graph, QG_GRAPH_CAST, x, &attributes);
}

// -------------------------------------------------------------------------------------- scaled ops

// What does not fit stays without an end, which is no recipe; nor is none.
static void put_recipe(char to[QG_RECIPE_TEXT_SIZE], const char *recipe) {
    size_t length = recipe ? strnlen(recipe, QG_RECIPE_TEXT_SIZE) : 0;
    memset(to, 0, QG_RECIPE_TEXT_SIZE);
    if (length)
        memcpy(to, recipe, length);
}

// Codes and scales go in as they are; a tensor scale where there is one.
static int32_t put_scales(qg_node *inputs, int32_t count, qg_scaled x) {
    inputs[count++] = x.codes;
    inputs[count++] = x.scale;
    if (x.tensor_scale != QG_NODE_NONE)
        inputs[count++] = x.tensor_scale;
    return count;
}

qg_scaled qg_graph_quantize(qg_graph *graph, qg_node x, const char *recipe) {
    qg_scaled out = {QG_NODE_NONE, QG_NODE_NONE, QG_NODE_NONE, recipe};
    qg_attributes attributes = {0};
    qg_scaled_shape shape;
    if (graph->status != QG_OK)
        return out;
    if (x < 0 || x >= graph->count) {
        graph_fail(graph, qg_fail(QG_ERROR_ARGUMENT, "what is to be quantized is no node"));
        return out;
    }
    const graph_node *node = &graph->nodes[x];
    put_recipe(attributes.recipe, recipe);
    qg_status status = qg_scaled_shape_of(attributes.recipe, &node->type, &shape);
    if (status) {
        graph_fail(graph, graph_at_node(node->name, node->op, status));
        return out;
    }
    if (shape.has_tensor_scale)
        out.tensor_scale = one(graph, QG_GRAPH_SCALED_TENSOR_SCALE, x, &attributes);
    out.scale = one(graph, QG_GRAPH_SCALED_QUANT_SCALE, x, &attributes);
    qg_node inputs[3];
    int32_t count = put_scales(inputs, 0, (qg_scaled){x, out.scale, out.tensor_scale, recipe});
    out.codes =
        qg_graph_add_node(graph, QG_GRAPH_SCALED_QUANTIZE, count, inputs, &attributes, NULL);
    return out;
}

qg_node qg_graph_dequantize(qg_graph *graph, qg_scaled x) {
    qg_attributes attributes = {0};
    qg_node inputs[3];
    put_recipe(attributes.recipe, x.recipe);
    int32_t count = put_scales(inputs, 0, x);
    return qg_graph_add_node(graph, QG_GRAPH_SCALED_DEQUANTIZE, count, inputs, &attributes, NULL);
}

static qg_node add_product(qg_graph *graph, qg_graph_op op, qg_scaled lhs, qg_scaled rhs,
                           qg_node index, qg_node bias, qg_dtype dtype) {
    qg_attributes attributes = {.type.dtype = (int32_t)dtype};
    qg_node inputs[8];
    int32_t count = 0;
    put_recipe(attributes.recipe, lhs.recipe);
    put_recipe(attributes.recipe_b, rhs.recipe);
    inputs[count++] = lhs.codes;
    inputs[count++] = rhs.codes;
    if (op == QG_GRAPH_SCALED_GROUPED_MATMUL)
        inputs[count++] = index;
    inputs[count++] = lhs.scale;
    inputs[count++] = rhs.scale;
    if (lhs.tensor_scale != QG_NODE_NONE)
        inputs[count++] = lhs.tensor_scale;
    if (rhs.tensor_scale != QG_NODE_NONE)
        inputs[count++] = rhs.tensor_scale;
    if (bias != QG_NODE_NONE)
        inputs[count++] = bias;
    return qg_graph_add_node(graph, op, count, inputs, &attributes, NULL);
}

qg_node qg_graph_scaled_matmul(qg_graph *graph, qg_scaled lhs, qg_scaled rhs, qg_node bias,
                               qg_dtype dtype) {
    return add_product(graph, QG_GRAPH_SCALED_MATMUL, lhs, rhs, QG_NODE_NONE, bias, dtype);
}

qg_node qg_graph_scaled_grouped_matmul(qg_graph *graph, qg_scaled tokens, qg_scaled experts,
                                       qg_node index, qg_node bias, qg_dtype dtype) {
    return add_product(graph, QG_GRAPH_SCALED_GROUPED_MATMUL, tokens, experts, index, bias, dtype);
}
