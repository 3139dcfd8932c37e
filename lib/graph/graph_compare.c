// Errors of nodes: one graph against another that ran beside it. See qg_graph_run.h.
#include "run_parts_internal.h"

#include <qg_memory.h>

static bool is_float(const qg_graph *graph, qg_node node) {
    return qg_dtype_is_float((qg_dtype)graph->nodes[node].type.dtype);
}

// The node that `node` of `graph` is compared with, QG_NODE_NONE for none.
static qg_node partner_of(const qg_graph *graph, qg_node node, const qg_graph *reference) {
    qg_graph_op op = graph->nodes[node].op;
    if (graph_op_has_values(op) || op == QG_GRAPH_INPUT || !is_float(graph, node))
        return QG_NODE_NONE;
    qg_node other = qg_graph_find(reference, graph->nodes[node].name);
    if (other == QG_NODE_NONE || !is_float(reference, other))
        return QG_NODE_NONE;
    qg_tensor_type type = reference->nodes[other].type;
    type.dtype = graph->nodes[node].type.dtype;
    return qg_tensor_equal(&type, &graph->nodes[node].type) ? other : QG_NODE_NONE;
}

// Values of a node as binary32: where they are, or widened into *room, which the caller releases.
static qg_status values_of(const qg_graph_runner *runner, qg_node node, void **room,
                           const float **values) {
    const qg_tensor_type *type = qg_graph_node_type(graph_runner_graph(runner), node);
    const void *held = qg_graph_runner_values(runner, node);
    if (!held)
        return qg_fail(QG_ERROR_ARGUMENT, "no values: both graphs must have run, with `keep`");
    *values = held;
    if (type->dtype == QG_DTYPE_FP32)
        return QG_OK;
    qg_status status =
        qg_allocate(room, qg_tensor_elements(type), sizeof(float), "widened values of a node");
    *values = *room;
    return status ? status : run_widen(type, held, graph_runner_threads(runner), *room);
}

typedef struct comparison {
    const qg_graph_runner *reference, *runner;
    qg_status (*each)(void *context, const qg_node_error *error);
    void *context;
} comparison;

static qg_status compare_values(const comparison *c, qg_node node, qg_node other, void **x_room,
                                void **q_room) {
    const qg_graph *graph = graph_runner_graph(c->runner);
    qg_node_error e = {.name = qg_graph_node_name(graph, node),
                       .node = node,
                       .count = qg_tensor_elements(qg_graph_node_type(graph, node))};
    qg_status status = values_of(c->reference, other, x_room, &e.x);
    if (!status)
        status = values_of(c->runner, node, q_room, &e.q);
    if (!status)
        status = qg_sums_measure(e.count, e.x, e.q, graph_runner_threads(c->runner), &e.sums);
    if (status)
        return graph_at_node(e.name, qg_graph_node_op(graph, node), status);
    return c->each(c->context, &e);
}

static qg_status compare_node(const comparison *c, qg_node node) {
    void *x_room = NULL, *q_room = NULL;
    qg_node other =
        partner_of(graph_runner_graph(c->runner), node, graph_runner_graph(c->reference));
    if (other == QG_NODE_NONE)
        return QG_OK;
    qg_status status = compare_values(c, node, other, &x_room, &q_room);
    qg_release(x_room);
    qg_release(q_room);
    return status;
}

qg_status qg_graph_compare(const qg_graph_runner *reference, const qg_graph_runner *runner,
                           qg_status (*each)(void *context, const qg_node_error *error),
                           void *context) {
    const comparison c = {reference, runner, each, context};
    qg_status status = QG_OK;
    for (qg_node i = 0; i < graph_runner_graph(runner)->count && !status; i++)
        status = compare_node(&c, i);
    return status;
}
