// Storage of graphs: nodes, names, values, outputs. See qg_graph.h.
#include "graph_internal.h"

#include <qg_digest.h>
#include <qg_memory.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static qg_status no_memory(void) { return qg_fail(QG_ERROR_MEMORY, "no memory for the graph"); }

// ------------------------------------------------------------------------------------------ values

// Takes `owned`, also where it fails.
static graph_values *values_make(const void *bytes, void *owned) {
    graph_values *values = malloc(sizeof *values);
    if (!values) {
        qg_release(owned);
        no_memory();
        return NULL;
    }
    *values = (graph_values){.users = 1, .bytes = bytes, .owned = owned};
    return values;
}

void graph_values_drop(graph_values *values) {
    if (!values || --values->users > 0)
        return;
    qg_release(values->owned);
    free(values);
}

graph_values *graph_values_copy(const void *bytes, int64_t size) {
    void *owned;
    if (qg_allocate(&owned, size, 1, "values of a constant") != QG_OK)
        return NULL;
    memcpy(owned, bytes, (size_t)size);
    return values_make(owned, owned);
}

// ------------------------------------------------------------------------------------ create, free

qg_status qg_graph_create(qg_graph **out) {
    *out = calloc(1, sizeof **out);
    return *out ? QG_OK : no_memory();
}

static void free_node(graph_node *node) {
    free(node->name);
    free(node->inputs);
    graph_values_drop(node->values);
}

void qg_graph_free(qg_graph *graph) {
    if (!graph)
        return;
    for (int32_t i = 0; i < graph->count; i++)
        free_node(&graph->nodes[i]);
    free(graph->nodes);
    free(graph->outputs);
    free(graph->places);
    free(graph);
}

qg_node graph_fail(qg_graph *graph, qg_status status) {
    if (graph->status == QG_OK) {
        graph->status = status;
        snprintf(graph->detail, sizeof graph->detail, "%s", qg_detail());
    }
    return QG_NODE_NONE;
}

qg_status qg_graph_status(const qg_graph *graph) {
    return graph->status == QG_OK ? QG_OK : qg_fail(graph->status, "%s", graph->detail);
}

// ------------------------------------------------------------------------------------------- nodes

static qg_status grow_nodes(qg_graph *graph) {
    if (graph->count >= GRAPH_NODES_MOST)
        return qg_fail(QG_ERROR_ARGUMENT, "a graph has at most %d nodes", GRAPH_NODES_MOST);
    if (graph->count < graph->capacity)
        return QG_OK;
    int32_t wanted = graph->capacity ? 2 * graph->capacity : 32;
    graph_node *nodes = realloc(graph->nodes, (size_t)wanted * sizeof *nodes);
    if (!nodes)
        return no_memory();
    graph->nodes = nodes;
    graph->capacity = wanted;
    return QG_OK;
}

static qg_status make_node(graph_node *node, const char *name, int32_t count,
                           const qg_node *inputs) {
    node->name = strdup(name);
    node->inputs = malloc(((size_t)count + 1) * sizeof *node->inputs);
    if (!node->name || !node->inputs) {
        free_node(node);
        return no_memory();
    }
    if (count > 0)
        memcpy(node->inputs, inputs, (size_t)count * sizeof *inputs);
    node->input_count = count;
    return QG_OK;
}

qg_node graph_append(qg_graph *graph, qg_graph_op op, const char *name, const qg_tensor_type *type,
                     int32_t count, const qg_node *inputs, const qg_attributes *attributes,
                     graph_values *values, uint64_t digest) {
    char own[GRAPH_OWN_NAME_SIZE];
    if (graph->status != QG_OK)
        return QG_NODE_NONE;
    if (!name) {
        graph_make_name(graph, op, own);
        name = own;
    }
    graph_node node = {.op = op,
                       .named = !graph_name_is_own(op, name),
                       .type = graph_used_type(type),
                       .attributes = graph_used_attributes(op, attributes),
                       .digest = digest};
    qg_status status = graph_check_name(graph, name);
    if (!status && (count < 0 || count > GRAPH_INPUTS_MOST))
        status = qg_fail(QG_ERROR_ARGUMENT, "node '%s' with %" PRId32 " inputs", name, count);
    if (!status)
        status = grow_nodes(graph);
    if (!status)
        status = graph_grow_places(graph);
    if (!status)
        status = make_node(&node, name, count, inputs);
    if (status)
        return graph_fail(graph, status);
    node.values = values;
    if (values)
        values->users++;
    graph->nodes[graph->count++] = node;
    graph_put_place(graph, graph->count - 1);
    return graph->count - 1;
}

qg_status graph_at_node(const char *name, qg_graph_op op, qg_status status) {
    char detail[GRAPH_DETAIL_SIZE];
    if (!status)
        return QG_OK;
    snprintf(detail, sizeof detail, "%s", qg_detail());
    return qg_fail(status, "node '%.255s' (%s): %s", name, qg_graph_op_describe(op)->name, detail);
}

static qg_node add_with_values(qg_graph *graph, qg_graph_op op, int32_t count,
                               const qg_node *inputs, const qg_attributes *attributes,
                               const char *name, graph_values *values) {
    static const qg_attributes NOTHING = {0};
    char own[GRAPH_OWN_NAME_SIZE];
    qg_tensor_type type;
    const qg_attributes *a = attributes ? attributes : &NOTHING;
    if (graph->status != QG_OK)
        return QG_NODE_NONE;
    if ((int)op < 0 || op >= QG_GRAPH_OP_COUNT)
        return graph_fail(graph, qg_fail(QG_ERROR_ARGUMENT, "op %d is none", (int)op));
    if (!name)
        graph_make_name(graph, op, own);
    qg_status status = name ? graph_check_name(graph, name) : QG_OK;
    if (status)
        return graph_fail(graph, status);
    name = name ? name : own;
    status = graph_check_node(graph, graph->count, op, count, inputs, a, &type);
    if (status)
        return graph_fail(graph, graph_at_node(name, op, status));
    return graph_append(graph, op, name, &type, count, inputs, a, values, 0);
}

qg_node qg_graph_add_node(qg_graph *graph, qg_graph_op op, int32_t count, const qg_node *inputs,
                          const qg_attributes *attributes, const char *name) {
    return add_with_values(graph, op, count, inputs, attributes, name, NULL);
}

static qg_node add_valued(qg_graph *graph, qg_graph_op op, const char *name, qg_tensor_type type,
                          graph_values *values) {
    qg_attributes attributes = {.type = type};
    qg_node node = add_with_values(graph, op, 0, NULL, &attributes, name, values);
    graph_values_drop(values);
    return node;
}

qg_node qg_graph_input(qg_graph *graph, const char *name, qg_tensor_type type) {
    return add_valued(graph, QG_GRAPH_INPUT, name, type, NULL);
}

qg_node qg_graph_parameter(qg_graph *graph, const char *name, qg_tensor_type type,
                           const void *bytes) {
    if (graph->status != QG_OK)
        return QG_NODE_NONE;
    graph_values *values = bytes ? values_make(bytes, NULL) : NULL;
    if (bytes && !values)
        return graph_fail(graph, QG_ERROR_MEMORY);
    return add_valued(graph, QG_GRAPH_PARAMETER, name, type, values);
}

qg_node qg_graph_constant(qg_graph *graph, const char *name, qg_tensor_type type,
                          const void *bytes) {
    if (graph->status != QG_OK)
        return QG_NODE_NONE;
    qg_status status = qg_tensor_check(&type);
    if (!status && !bytes)
        status = qg_fail(QG_ERROR_ARGUMENT, "a constant has values");
    if (status)
        return graph_fail(graph,
                          graph_at_node(name ? name : "of no name", QG_GRAPH_CONSTANT, status));
    graph_values *values = graph_values_copy(bytes, qg_tensor_bytes(&type));
    if (!values)
        return graph_fail(graph, QG_ERROR_MEMORY);
    return add_valued(graph, QG_GRAPH_CONSTANT, name, type, values);
}

// ----------------------------------------------------------------------------------------- outputs

qg_node qg_graph_output(qg_graph *graph, qg_node node) {
    if (graph->status != QG_OK)
        return QG_NODE_NONE;
    if (node < 0 || node >= graph->count)
        return graph_fail(graph, qg_fail(QG_ERROR_ARGUMENT, "what is to be an output is no node"));
    if (graph->nodes[node].is_output)
        return graph_fail(graph, qg_fail(QG_ERROR_ARGUMENT, "node '%s' is an output already",
                                         graph->nodes[node].name));
    if (graph->output_count == graph->output_capacity) {
        int32_t wanted = graph->output_capacity ? 2 * graph->output_capacity : 8;
        qg_node *outputs = realloc(graph->outputs, (size_t)wanted * sizeof *outputs);
        if (!outputs)
            return graph_fail(graph, no_memory());
        graph->outputs = outputs;
        graph->output_capacity = wanted;
    }
    graph->outputs[graph->output_count++] = node;
    graph->nodes[node].is_output = true;
    return node;
}

// ---------------------------------------------------------------------------------------- binding

qg_status qg_graph_bind(qg_graph *graph, const char *name, const void *bytes) {
    qg_node node = qg_graph_find(graph, name);
    if (node == QG_NODE_NONE || !graph_op_has_values(graph->nodes[node].op))
        return qg_fail(QG_ERROR_ARGUMENT, "'%.100s' is no parameter or constant of the graph",
                       name ? name : "");
    if (!bytes)
        return qg_fail(QG_ERROR_ARGUMENT, "node '%s': no values to bind", name);
    graph_node *n = &graph->nodes[node];
    uint64_t must = n->op == QG_GRAPH_CONSTANT ? qg_graph_node_digest(graph, node) : n->digest;
    uint64_t digest = must ? qg_digest_bytes(bytes, (size_t)qg_tensor_bytes(&n->type)) : 0;
    if (digest != must)
        return qg_fail(QG_ERROR_ARGUMENT,
                       "node '%s': the values have digest %016" PRIx64 ", not %016" PRIx64, name,
                       digest, must);
    graph_values *values = values_make(bytes, NULL);
    if (!values)
        return QG_ERROR_MEMORY;
    graph_values_drop(n->values);
    n->values = values;
    return QG_OK;
}

// -------------------------------------------------------------------------------------------- copy

qg_node graph_copy_node(qg_graph *graph, const qg_graph *from, qg_node node, const qg_node *map) {
    const graph_node *n = &from->nodes[node];
    qg_node inputs[GRAPH_INPUTS_MOST];
    for (int32_t i = 0; i < n->input_count; i++)
        inputs[i] = map[n->inputs[i]];
    bool keeps = qg_graph_find(graph, n->name) == QG_NODE_NONE;
    return graph_append(graph, n->op, keeps ? n->name : NULL, &n->type, n->input_count, inputs,
                        &n->attributes, n->values, n->digest);
}

qg_status qg_graph_copy(const qg_graph *graph, qg_graph **out) {
    *out = NULL;
    qg_graph *made;
    qg_status status = qg_graph_status(graph);
    if (!status)
        status = qg_graph_create(&made);
    if (status)
        return status;
    for (qg_node i = 0; i < graph->count; i++) {
        const graph_node *n = &graph->nodes[i];
        graph_append(made, n->op, n->name, &n->type, n->input_count, n->inputs, &n->attributes,
                     n->values, n->digest);
    }
    for (int32_t i = 0; i < graph->output_count; i++)
        qg_graph_output(made, graph->outputs[i]);
    status = qg_graph_status(made);
    if (status)
        qg_graph_free(made);
    else
        *out = made;
    return status;
}

// ---------------------------------------------------------------------------------------- looking

int32_t qg_graph_count(const qg_graph *graph) { return graph->count; }
qg_graph_op qg_graph_node_op(const qg_graph *graph, qg_node node) { return graph->nodes[node].op; }
const char *qg_graph_node_name(const qg_graph *graph, qg_node node) {
    return graph->nodes[node].name;
}
bool qg_graph_node_is_named(const qg_graph *graph, qg_node node) {
    return graph->nodes[node].named;
}
const qg_tensor_type *qg_graph_node_type(const qg_graph *graph, qg_node node) {
    return &graph->nodes[node].type;
}
int32_t qg_graph_node_inputs(const qg_graph *graph, qg_node node, const qg_node **inputs) {
    *inputs = graph->nodes[node].inputs;
    return graph->nodes[node].input_count;
}
const qg_attributes *qg_graph_node_attributes(const qg_graph *graph, qg_node node) {
    return &graph->nodes[node].attributes;
}
const void *qg_graph_node_values(const qg_graph *graph, qg_node node) {
    const graph_values *values = graph->nodes[node].values;
    return values ? values->bytes : NULL;
}

uint64_t qg_graph_node_digest(const qg_graph *graph, qg_node node) {
    const graph_node *n = &graph->nodes[node];
    if (n->digest || !n->values)
        return n->digest;
    return qg_digest_bytes(n->values->bytes, (size_t)qg_tensor_bytes(&n->type));
}

int32_t qg_graph_outputs(const qg_graph *graph, const qg_node **outputs) {
    *outputs = graph->outputs;
    return graph->output_count;
}

int32_t qg_graph_count_op(const qg_graph *graph, qg_graph_op op) {
    int32_t count = 0;
    for (int32_t i = 0; i < graph->count; i++)
        count += graph->nodes[i].op == op;
    return count;
}
