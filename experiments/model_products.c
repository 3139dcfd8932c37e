// Products of a model's graph: which are quantized, and rounding what they give. See model_run.h.
#include <model_run.h>

#include <stdlib.h>

bool model_product(const qg_graph *graph, qg_node node, int64_t *m, int64_t *n, int64_t *k) {
    const qg_node *inputs;
    const qg_tensor_type *out = qg_graph_node_type(graph, node);
    if (qg_graph_node_op(graph, node) != QG_GRAPH_MATMUL || out->rank != 2)
        return false;
    qg_graph_node_inputs(graph, node, &inputs);
    *m = out->shape[0];
    *n = out->shape[1];
    *k = qg_graph_node_type(graph, inputs[0])->shape[1];
    return true;
}

typedef struct copying {
    const qg_graph *from;
    qg_graph *to;
    qg_node *map; // by place in `from`
    qg_dtype dtype;
} copying;

static const char *given_name(const copying *c, qg_node node) {
    return qg_graph_node_is_named(c->from, node) ? qg_graph_node_name(c->from, node) : NULL;
}

static qg_node copy_node(copying *c, qg_node node, const qg_attributes *attributes) {
    const qg_node *inputs;
    qg_node mapped[64];
    int32_t count = qg_graph_node_inputs(c->from, node, &inputs);
    for (int32_t i = 0; i < count; i++)
        mapped[i] = c->map[inputs[i]];
    return qg_graph_add_node(c->to, qg_graph_node_op(c->from, node), count, mapped, attributes,
                             given_name(c, node));
}

// A cast back to fp32, where others read it.
static qg_node copy_product(copying *c, qg_node node) {
    qg_attributes attributes = *qg_graph_node_attributes(c->from, node);
    attributes.type.dtype = c->dtype;
    return qg_graph_cast(c->to, copy_node(c, node, &attributes), QG_DTYPE_FP32);
}

static qg_node copy_any(copying *c, qg_node node) {
    const char *name = given_name(c, node);
    const void *values = qg_graph_node_values(c->from, node);
    const qg_tensor_type *type = qg_graph_node_type(c->from, node);
    switch (qg_graph_node_op(c->from, node)) {
    case QG_GRAPH_INPUT: return qg_graph_input(c->to, name, *type);
    case QG_GRAPH_PARAMETER: return qg_graph_parameter(c->to, name, *type, values);
    case QG_GRAPH_CONSTANT: return qg_graph_constant(c->to, name, *type, values);
    case QG_GRAPH_SCALED_MATMUL: return copy_product(c, node);
    default: return copy_node(c, node, qg_graph_node_attributes(c->from, node));
    }
}

static void copy_all(copying *c) {
    const qg_node *outputs;
    for (qg_node node = 0; node < qg_graph_count(c->from); node++)
        c->map[node] = copy_any(c, node);
    int32_t count = qg_graph_outputs(c->from, &outputs);
    for (int32_t i = 0; i < count; i++)
        qg_graph_output(c->to, c->map[outputs[i]]);
}

qg_status model_round_products(const qg_graph *graph, qg_dtype dtype, qg_graph **out) {
    copying c = {.from = graph, .dtype = dtype};
    qg_status status = qg_graph_create(&c.to);
    *out = NULL;
    if (status)
        return status;
    c.map = malloc(((size_t)qg_graph_count(graph) + 1) * sizeof *c.map);
    if (c.map)
        copy_all(&c);
    status = c.map ? qg_graph_status(c.to) : qg_fail(QG_ERROR_MEMORY, "no memory for a graph");
    free(c.map);
    if (status)
        qg_graph_free(c.to);
    else
        *out = c.to;
    return status;
}
